/* SPDX-License-Identifier: Apache-2.0
 * Frames are read from the end: only their paths may hold anything. */
#include "names/frame_name.h"

#include "names/pattern.h"
#include <ctype.h>

static struct bytes cut(struct bytes b, size_t from, size_t to) {
    return (struct bytes){b.p + from, to > from ? to - from : 0};
}

static int64_t digits(struct bytes b) {
    int64_t v = 0;
    if (b.n == 0 || b.n > 9) return -1;
    for (size_t i = 0; i < b.n; i++) {
        if (b.p[i] < '0' || b.p[i] > '9') return -1;
        v = v * 10 + (b.p[i] - '0');
    }
    return v;
}

/* Splits "file(12): func" at the last "): " behind a number in brackets. */
static bool split_torch(struct bytes b, struct frame_name *f) {
    for (size_t i = b.n; i-- > 2;) {
        if (b.p[i] != ' ' || b.p[i - 1] != ':' || b.p[i - 2] != ')') continue;
        size_t close = i - 2, open = close;
        while (open > 0 && b.p[open] != '(') open--;
        int64_t line = digits(cut(b, open + 1, close));
        if (open == 0 || line < 0 || i + 1 >= b.n) continue;
        *f = (struct frame_name){cut(b, i + 1, b.n), cut(b, 0, open), line};
        return true;
    }
    return false;
}

/* Splits "$file.py:12 func" and "$module func". */
static bool split_xspace(struct bytes b, struct frame_name *f) {
    if (b.n < 2 || b.p[0] != '$') return false;
    size_t space = b.n - 1;
    while (space > 1 && b.p[space] != ' ') space--;
    *f = (struct frame_name){cut(b, 1, b.n), {0}, -1};
    if (space <= 1 || space + 1 >= b.n) return true;
    size_t colon = space;
    while (colon > 1 && b.p[colon] != ':') colon--;
    int64_t line = digits(cut(b, colon + 1, space));
    if (colon <= 1 || line < 0) return true;
    *f = (struct frame_name){cut(b, space + 1, b.n), cut(b, 1, colon), line};
    return true;
}

struct frame_name frame_name_split(struct bytes name) {
    struct frame_name f = {.function = name, .line = -1};
    if (!split_xspace(name, &f)) split_torch(name, &f);
    return f;
}

struct bytes frame_name_stable(struct bytes name, char buf[FRAME_NAME_MAX]) {
    static const char at[] =
        " at 0x"; /* before the digits and ">" at the end */
    size_t n = sizeof at - 1, i = name.n - 1;
    if (name.n < 2 || name.p[0] != '<' || name.p[i] != '>') return name;
    while (i > 0 && isxdigit(name.p[i - 1])) i--;
    if (i <= n || memcmp(name.p + i - n, at, n) != 0) return name;
    i -= n;
    if (i + 1 > FRAME_NAME_MAX) return name;
    memcpy(buf, name.p, i);
    buf[i] = '>';
    return (struct bytes){(const uint8_t *)buf, i + 1};
}

/* Files that are not the program's own: packages by the first folder of their
 * path, as torch writes it (relative to where Python found them), and files of
 * Python's own that real traces have in every stack. */
/* clang-format off */
static const char *const foreign[] = {
    "*site-packages/*", "*dist-packages/*", "*/lib/python*",
    "torch/*", "torchvision/*", "torchaudio/*", "numpy/*", "jax/*", "jaxlib/*",
    "tensorflow/*", "keras/*", "flax/*", "optax/*", "transformers/*",
    "accelerate/*", "pytorch_lightning/*", "lightning/*", "deepspeed/*",
    "triton/*", "multiprocessing/*", "concurrent/*", "asyncio/*", "logging/*",
    "importlib/*", "collections/*", "json/*", "<*",
    "threading.py", "contextlib.py", "functools.py", "typing.py", "queue.py",
    "runpy.py", "selectors.py", "socket.py", "traceback.py", "warnings.py",
    "weakref.py", "copy.py", "abc.py", "enum.py", "inspect.py", "random.py",
    "tempfile.py", "os.py", "posixpath.py", "re.py", "dataclasses.py",
    "profiler.py", "_twodim_base_impl.py", "fromnumeric.py", NULL,
};
/* clang-format on */

bool frame_name_is_users(const struct frame_name *f) {
    return f->file.n > 0 && !pattern_in(foreign, f->file);
}

bool frame_name_is_recorder(struct bytes name) {
    static const char *const list[] = {
        "torch::unwind::*", "torch::CapturedTraceback::*",
        "torch::cuda::(anonymous namespace)::gather*",
        "c10::cuda::CUDACachingAllocator::*", NULL};
    return pattern_in(list, name);
}

bool frame_name_is_jaxs(struct bytes name) {
    static const char *const files[] = {
        "traceback_util.py", "array_methods.py", "pjit.py", "dispatch.py",
        "partial_eval.py",   "linear_util.py",   NULL};
    return pattern_in(files, frame_name_split(name).file);
}

bool frame_name_takes(struct bytes name) {
    static const char *const files[] = {"*queue.py", "*queues.py", NULL};
    struct frame_name f = frame_name_split(name);
    return BYTES_IS(f.function, "get") && pattern_in(files, f.file);
}

bool frame_name_is_tf_data(struct bytes name) {
    static const char *const files[] = {"*iterator_ops.py",
                                        "*gen_dataset_ops.py", NULL};
    return pattern_in(files, frame_name_split(name).file);
}

bool frame_name_is_torch_loader(struct bytes name) {
    static const char *const files[] = {"dataloader.py", "*torch/utils/data/*",
                                        NULL};
    return pattern_in(files, frame_name_split(name).file);
}

bool frame_name_waits(struct bytes name) {
    static const char *const functions[] = {"block_until_ready", "try_to_block",
                                            "synchronize", "_value", NULL};
    return pattern_in(functions, frame_name_split(name).function);
}
