/* SPDX-License-Identifier: Apache-2.0
 * Reads the script, keeps the diary, runs bodies.
 *
 *     program SCRIPT WORKDIR DIARY PLUGINS [BODY]
 *     program rescue LOGDIR SECONDS LEAST_MS
 *
 * BODY is given when the program has executed itself. The second form records
 * into a folder as any other program would, until nobody's pointer but its own
 * is left there or the time is over (status 1): its recorder closes what the
 * dead left. */
#include "storm.h"

#include <dirent.h>
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>

enum { TEXT = 1 << 18 };

struct diary *diary;
const char *logdir, *workdir, *plugin_dir;
uint32_t first_body;

static char text[TEXT];
static char **arguments;
static struct act acts[ACTS];
static struct { unsigned first, n; } bodies[BODIES];

/* --- the script ---------------------------------------------------------- */

static void broken(const char *what, const char *where) {
    dprintf(2, "storm: %s: %s\n", what, where);
    _exit(125);
}

static const struct verb *find_verb(const char *name) {
    static const struct verb *const tables[] = {
        record_verbs, session_verbs,    process_verbs,
        thread_verbs, descriptor_verbs, signal_verbs,
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct verb *v = tables[i]; v->name != NULL; v++)
            if (strcmp(v->name, name) == 0) return v;
    broken("no such act", name);
    return NULL;
}

static void read_act(struct act *a, char *line) {
    char *save, *word = strtok_r(line, " ", &save);
    a->id = (uint32_t)strtoul(word, NULL, 10);
    if (a->id == 0 || a->id >= ACTS) broken("bad number", word);
    word = strtok_r(NULL, " ", &save);
    if (word == NULL) broken("no verb", line);
    a->verb = find_verb(word);
    while ((word = strtok_r(NULL, " ", &save)) != NULL && a->nargs < ARGS) {
        char *equals = strchr(word, '=');
        if (equals == NULL) broken("no value", word);
        *equals = 0;
        a->key[a->nargs] = word;
        a->value[a->nargs++] = equals + 1;
        for (char *c = equals + 1; *c != 0; c++)
            if (*c == '+') *c = ' ';
    }
}

static void read_script(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0) broken("cannot be read", path);
    close(fd);
    unsigned at = 0, body = BODIES;
    char *save;
    for (char *l = strtok_r(text, "\n", &save); l != NULL;
         l = strtok_r(NULL, "\n", &save)) {
        if (strncmp(l, "body ", 5) == 0) {
            body = (unsigned)atoi(l + 5);
            if (body >= BODIES) broken("bad body", l);
            bodies[body].first = at;
        } else if (l[0] >= '0' && l[0] <= '9') {
            if (at == ACTS || body == BODIES) broken("too much", l);
            read_act(&acts[at++], l);
            bodies[body].n++;
        } /* the rest is for whoever runs us */
    }
}

const char *arg_text(const struct act *a, const char *key, const char *none) {
    for (unsigned i = 0; i < a->nargs; i++)
        if (strcmp(a->key[i], key) == 0) return a->value[i];
    return none;
}

int64_t arg_num(const struct act *a, const char *key, int64_t none) {
    const char *t = arg_text(a, key, NULL);
    return t == NULL ? none : strtoll(t, NULL, 10);
}

bool arg_is(const struct act *a, const char *key, const char *value) {
    const char *t = arg_text(a, key, NULL);
    return t != NULL && strcmp(t, value) == 0;
}

enum flow run_body(uint32_t body) {
    unsigned from = bodies[body].first, to = from + bodies[body].n;
    enum flow flow = GO_ON;
    diary->body[body].pid = (uint64_t)getpid();
    diary->body[body].tid = (uint64_t)syscall(SYS_gettid);
    __atomic_fetch_add(&diary->body[body].began, 1, __ATOMIC_RELAXED);
    for (unsigned i = from; i < to && flow == GO_ON; i++)
        flow = acts[i].verb->run(&acts[i]);
    if (flow == GO_ON)
        __atomic_fetch_add(&diary->body[body].ended, 1, __ATOMIC_RELAXED);
    return flow;
}

/* --- the diary ----------------------------------------------------------- */

static void map_diary(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) broken("cannot be opened", path);
    diary = mmap(NULL, sizeof *diary, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                 0);
    if (diary == MAP_FAILED) broken("cannot be mapped", path);
    close(fd);
}

void note_tried(uint32_t act, unsigned kind, uint64_t n) {
    __atomic_fetch_add(&diary->act[act].tried[kind], n, __ATOMIC_SEQ_CST);
}

void note_done(uint32_t act, unsigned kind, uint64_t n) {
    __atomic_fetch_add(&diary->act[act].done[kind], n, __ATOMIC_SEQ_CST);
}

void fault(uint32_t act, enum fault what, uint64_t a, uint64_t b) {
    uint64_t i = __atomic_fetch_add(&diary->nfaults, 1, __ATOMIC_RELAXED);
    if (i >= FAULTS) return;
    diary->fault[i].a = a;
    diary->fault[i].b = b;
    diary->fault[i].what = what;
    diary->fault[i].act = act;
}

/* The name is written by hand, since handlers call this, too. */
struct name name_of(uint32_t act, unsigned kind) {
    struct name name = {{'s'}};
    char digits[12];
    unsigned n = 0, at = 1;
    do digits[n++] = (char)('0' + act % 10);
    while ((act /= 10) > 0);
    while (n > 0) name.text[at++] = digits[--n];
    name.text[at++] = '.';
    name.text[at] = (char)('0' + kind);
    return name;
}

void say(const struct act *a, const char *format, ...) {
    char line[256];
    va_list ap;
    int n = snprintf(line, 32, "%u ", a->id);
    va_start(ap, format);
    n += vsnprintf(line + n, sizeof line - 40, format, ap);
    va_end(ap);
    if (n > (int)sizeof line - 2) n = (int)sizeof line - 2;
    line[n++] = '\n';
    while (write(1, line, (size_t)n) < 0 && errno == EINTR) {
    }
}

/* --- this process -------------------------------------------------------- */

void sleep_us(int64_t us) {
    struct timespec ts = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR) {
    }
}

uint64_t now_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

char **self_argv(uint32_t body) {
    static __thread char number[16];
    static __thread char *v[8];
    for (int i = 0; i < 5; i++) v[i] = arguments[i];
    snprintf(number, sizeof number, "%u", body);
    v[5] = number;
    v[6] = NULL;
    return v;
}

/* Says what the program before us left open when it became this one. A recorder
 * that starts when it is loaded has been here before. */
static void say_descriptors(void) {
    char list[200] = "";
    size_t n = 0;
    struct act a = {.id = first_body};
    if (getenv("STORM_AUTOMATIC") != NULL) return;
    for (int fd = 0; fd < 4096 && n < sizeof list - 8; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            n += (size_t)snprintf(list + n, sizeof list - n, " %d", fd);
    say(&a, "body has descriptors%s", list);
}

/* Says which signals are blocked and ignored, too. Real-time signals are our
 * own acts', which other threads begin and end meanwhile. */
static void say_signals(void) {
    sigset_t now;
    struct act a = {.id = first_body};
    unsigned long long blocked = 0, ignored = 0;
    sigprocmask(SIG_SETMASK, NULL, &now);
    for (int i = 1; i < 32; i++) {
        struct sigaction sa;
        if (sigismember(&now, i) == 1) blocked |= 1ull << i;
        if (sigaction(i, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN)
            ignored |= 1ull << i;
    }
    say(&a, "body blocks %llx and ignores %llx", blocked, ignored);
}

/* --- rescue -------------------------------------------------------------- */

/* Does the pointer lead to a ring? A program that was killed between the two
 * has a pointer and no ring: the pointer stays for a minute, since its program
 * may be about to start. */
static bool points_to_ring(const char *path) {
    char line[PATH_MAX] = "";
    FILE *f = fopen(path, "re");
    if (f == NULL) return false;
    if (fgets(line, sizeof line, f) == NULL) line[0] = 0;
    fclose(f);
    line[strcspn(line, "\n")] = 0;
    return access(line, F_OK) == 0;
}

static unsigned pointers(const char *dir) {
    char pattern[PATH_MAX];
    unsigned n = 0;
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/plugins/profile/*/*.ring", dir);
    if (glob(pattern, 0, NULL, &g) != 0) return 0;
    for (size_t i = 0; i < g.gl_pathc; i++) n += points_to_ring(g.gl_pathv[i]);
    globfree(&g);
    return n;
}

static int rescue(const char *dir, int seconds, int least_ms) {
    struct ops_options o = {.run = "rescue"};
    if (ops_start(dir, &o) != 0) {
        char why[OPS_PROBLEM_MAX];
        ops_problem(why, sizeof why);
        printf("rescue: %s\n", why);
        return 1;
    }
    sleep_us(least_ms * 1000);
    for (int i = 0; i < seconds * 100 && pointers(dir) > 1; i++)
        sleep_us(10000);
    return pointers(dir) > 1;
}

int main(int argc, char **argv) {
    static struct self own;
    if (argc == 5 && strcmp(argv[1], "rescue") == 0)
        return rescue(argv[2], atoi(argv[3]), atoi(argv[4]));
    if (argc < 5) return 125;
    arguments = argv;
    workdir = argv[2];
    plugin_dir = argv[4];
    static char logs[PATH_MAX];
    snprintf(logs, sizeof logs, "%s/logs", workdir);
    logdir = logs;
    /* pthread_cancel() loads it, and ends a program that has no descriptor left
     * for that */
    dlopen("libgcc_s.so.1", RTLD_NOW);
    read_script(argv[1]);
    map_diary(argv[3]);
    if (argc > 5) first_body = (uint32_t)atoi(argv[5]);
    if (first_body > 0) {
        say_descriptors();
        say_signals();
    }
    self_begin(&own, true);
    if (run_body(first_body) == RETURN) return first_return;
    settle();
    last_words();
    return 0;
}
