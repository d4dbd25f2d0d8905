/* SPDX-License-Identifier: Apache-2.0
 * A second of work in a hundred scopes.
 *
 *     steady LOGDIR */
#include <opscope/record.h>
#include <time.h>

int main(int argc, char **argv) {
    struct ops_options o = {.no_machine = true};
    struct timespec ten_ms = {0, 10000000};
    if (argc != 2 || ops_start(argv[1], &o) != 0) return 1;
    for (int i = 0; i < 100; i++) {
        OPS_SCOPE("steady");
        nanosleep(&ten_ms, 0);
    }
    return 0;
}
