/* SPDX-License-Identifier: Apache-2.0
 * A plugin for unloaded.c: it holds the recorder itself. */
#include <opscope/record.h>

void plugin_record(const char *logdir);
void plugin_record(const char *logdir) {
    ops_start(logdir, NULL);
    for (int i = 0; i < 100; i++) {
        OPS_SCOPE("in the plugin");
    }
}
