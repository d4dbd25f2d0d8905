/* SPDX-License-Identifier: Apache-2.0
 * C++: exceptions that leave scopes, and an object's destructor that records.
 *
 *     throws LOGDIR */
#include <opscope/record.h>

#include <cstdio>
#include <stdexcept>
#include <thread>

struct guard {
    ~guard() { OPS_SCOPE("destructor"); }
};

static void deeper(int n) {
    OPS_SCOPE_INT("deeper", "n", n);
    guard g;
    if (n == 0) throw std::runtime_error("out");
    deeper(n - 1);
}

static void work() {
    for (int i = 0; i < 100; i++) {
        OPS_SCOPE_AS(OPS_KIND_PHASE, "try");
        try {
            deeper(4);
        } catch (const std::exception &) {
            OPS_SCOPE("caught");
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    ops_options o = {};
    o.no_machine = true;
    if (ops_start(argv[1], &o) != 0) return 3;
    std::thread t(work);
    work();
    t.join();
    std::puts("caught all");
    return 0;
}
