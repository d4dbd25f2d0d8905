/* SPDX-License-Identifier: Apache-2.0
 * See tf_config.h. Not a JSON reader but a walk over JSON that keeps two words
 * and five lengths: no memory, a bounded depth, and any text that is not JSON
 * ends it with a no. */
#include "rec/machine/tf_config.h"

#include <stddef.h>
#include <string.h>

enum { DEPTH = 16, JOBS = 5, MOST = 1 << 20 };

static const char *const jobs[JOBS] = {"chief", "master", "worker", "evaluator",
                                       "ps"};

struct walk {
    const char *at;
    bool bad;
    int tasks[JOBS]; /* -1: not in the cluster */
    char type[16];
    int index; /* -1: not said */
};

static bool take(struct walk *w, char c) {
    w->at += strspn(w->at, " \t\r\n");
    if (*w->at != c) return false;
    w->at++;
    return true;
}

static void must(struct walk *w, char c) {
    if (!take(w, c)) w->bad = true;
}

/* A string; out may be NULL. What is too long or has escapes is no word that
 * we look for: it becomes "". */
static void take_string(struct walk *w, char *out, size_t cap) {
    size_t n = 0;
    bool odd = false;
    must(w, '"');
    while (!w->bad && *w->at != '"') {
        if (*w->at == '\\') {
            odd = true;
            w->at++;
        }
        if (*w->at == '\0') {
            w->bad = true;
            return;
        }
        if (out && n + 1 < cap) out[n] = *w->at;
        n++;
        w->at++;
    }
    if (w->bad) return;
    w->at++;
    if (out) out[odd || n >= cap ? 0 : n] = '\0';
}

static void skip_value(struct walk *w, int depth);

/* Elements up to the closing bracket: how many. */
static int skip_list(struct walk *w, int depth) {
    int n = 0;
    if (take(w, ']')) return 0;
    do {
        skip_value(w, depth);
        if (++n > MOST) w->bad = true;
    } while (!w->bad && take(w, ','));
    must(w, ']');
    return n;
}

static void skip_object(struct walk *w, int depth) {
    if (take(w, '}')) return;
    do {
        take_string(w, NULL, 0);
        must(w, ':');
        if (!w->bad) skip_value(w, depth);
    } while (!w->bad && take(w, ','));
    must(w, '}');
}

static void skip_value(struct walk *w, int depth) {
    w->at += strspn(w->at, " \t\r\n");
    if (depth == 0) {
        w->bad = true;
    } else if (take(w, '{')) {
        skip_object(w, depth - 1);
    } else if (take(w, '[')) {
        skip_list(w, depth - 1);
    } else if (*w->at == '"') {
        take_string(w, NULL, 0);
    } else { /* a number, true, false, null */
        size_t n = strspn(w->at, "+-.0123456789abcdefghijklmnopqrstuvwxyzE");
        if (n == 0) w->bad = true;
        w->at += n;
    }
}

/* 3 or "3". */
static void take_index(struct walk *w) {
    bool quoted = take(w, '"');
    size_t n = strspn(w->at, "0123456789");
    if (n == 0 || n > 7) {
        w->bad = true;
        return;
    }
    w->index = 0;
    for (; n > 0; n--) w->index = w->index * 10 + (*w->at++ - '0');
    if (quoted) must(w, '"');
}

static void cluster_key(struct walk *w, const char *key) {
    for (int i = 0; i < JOBS; i++) {
        if (strcmp(key, jobs[i]) != 0) continue;
        must(w, '[');
        if (!w->bad) w->tasks[i] = skip_list(w, DEPTH);
        return;
    }
    skip_value(w, DEPTH);
}

static void task_key(struct walk *w, const char *key) {
    if (strcmp(key, "type") == 0) take_string(w, w->type, sizeof w->type);
    else if (strcmp(key, "index") == 0) take_index(w);
    else skip_value(w, DEPTH);
}

/* An object, each value read by `value`, which is told the key. */
static void each_key(struct walk *w,
                     void (*value)(struct walk *, const char *)) {
    char key[16] = "";
    must(w, '{');
    if (w->bad || take(w, '}')) return;
    do {
        take_string(w, key, sizeof key);
        must(w, ':');
        if (!w->bad) value(w, key);
    } while (!w->bad && take(w, ','));
    must(w, '}');
}

static void top_key(struct walk *w, const char *key) {
    if (strcmp(key, "cluster") == 0) each_key(w, cluster_key);
    else if (strcmp(key, "task") == 0) each_key(w, task_key);
    else skip_value(w, DEPTH);
}

bool tf_config_rank(const char *json, int *rank, int *world) {
    struct walk w = {.at = json, .tasks = {-1, -1, -1, -1, -1}, .index = -1};
    int sum = 0, found = -1;
    each_key(&w, top_key);
    if (w.bad || !(take(&w, '\0'))) return false;
    for (int i = 0; i < JOBS; i++) {
        if (w.tasks[i] < 0) continue;
        if (strcmp(w.type, jobs[i]) == 0 && w.index >= 0 &&
            w.index < w.tasks[i])
            found = sum + w.index;
        sum += w.tasks[i];
    }
    if (found < 0) return false;
    *rank = found;
    *world = sum;
    return true;
}
