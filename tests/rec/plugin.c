/* SPDX-License-Identifier: Apache-2.0
 * Instrumented code that is loaded and unloaded: its call sites and its names
 * are gone afterwards. */
#include <opscope/record.h>

void plugin_work(int i);
int plugin_start(const char *dir);

void plugin_work(int i) {
    static const char name[] = "in a table of the plugin";
    const char *volatile p = name;
    OPS_SCOPE_INT("plugin", "i", i);
    ops_begin(p);
    ops_end();
    ops_counter("plugin counter", i);
}

int plugin_start(const char *dir) { return ops_start(dir, 0); }
