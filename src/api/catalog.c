/* SPDX-License-Identifier: Apache-2.0
 * What can be asked for: the analyses and their options, from their tables. */
#include "opscope/opscope.h"

#include "analyze/analyze.h"
#include <string.h>

_Static_assert((int)OPS_OPTION_FLAG == OPT_FLAG &&
                   (int)OPS_OPTION_INT == OPT_INT &&
                   (int)OPS_OPTION_FLOAT == OPT_FLOAT &&
                   (int)OPS_OPTION_TEXT == OPT_TEXT &&
                   (int)OPS_OPTION_CHOICE == OPT_CHOICE &&
                   (int)OPS_OPTION_BYTES == OPT_BYTES &&
                   (int)OPS_OPTION_US == OPT_US &&
                   (int)OPS_OPTION_RANGE == OPT_RANGE,
               "enum ops_option_type is enum opt_type");

size_t ops_analysis_count(void) {
    size_t n = 0;
    while (analyses[n] != NULL) n++;
    return n;
}

/* Returns the analysis; NULL past the last. */
static const struct analysis *analysis(size_t i) {
    return i < ops_analysis_count() ? analyses[i] : NULL;
}

const char *ops_analysis_name(size_t i) {
    const struct analysis *a = analysis(i);
    return a ? a->name : NULL;
}

const char *ops_analysis_help(size_t i) {
    const struct analysis *a = analysis(i);
    return a ? a->help : NULL;
}

const char *ops_analysis_row(size_t i) {
    const struct analysis *a = analysis(i);
    return a ? a->row : NULL;
}

int ops_analysis_find(const char *name) {
    for (size_t i = 0; name != NULL && i < ops_analysis_count(); i++)
        if (strcmp(analyses[i]->name, name) == 0) return (int)i;
    return -1;
}

static size_t rows(const struct opt *table) {
    size_t n = 0;
    while (table != NULL && table[n].name != NULL) n++;
    return n;
}

size_t ops_analysis_option_count(size_t i) {
    const struct analysis *a = analysis(i);
    return a ? rows(a->opts) + rows(analysis_common_opts) : 0;
}

/* Returns the option, the analysis's own first; NULL past the last. */
static const struct opt *option(size_t i, size_t k) {
    if (k >= ops_analysis_option_count(i)) return NULL;
    size_t own = rows(analyses[i]->opts);
    return k < own ? &analyses[i]->opts[k] : &analysis_common_opts[k - own];
}

const char *ops_analysis_option_name(size_t i, size_t k) {
    const struct opt *o = option(i, k);
    return o ? o->name : NULL;
}

enum ops_option_type ops_analysis_option_type(size_t i, size_t k) {
    const struct opt *o = option(i, k);
    return o ? (enum ops_option_type)o->type : OPS_OPTION_FLAG;
}

const char *ops_analysis_option_arg(size_t i, size_t k) {
    const struct opt *o = option(i, k);
    return o ? o->arg : NULL;
}

const char *ops_analysis_option_default(size_t i, size_t k) {
    const struct opt *o = option(i, k);
    return o ? o->dflt : NULL;
}

const char *ops_analysis_option_help(size_t i, size_t k) {
    const struct opt *o = option(i, k);
    return o ? o->help : NULL;
}
