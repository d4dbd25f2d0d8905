/* SPDX-License-Identifier: Apache-2.0
 * What both public headers share: which version they are, and what makes a
 * function of the libraries visible. */
#ifndef OPSCOPE_VERSION_H
#define OPSCOPE_VERSION_H

/* The version of the headers. ops_version() and ops_record_version() tell that
 * of the library that is there when the program runs. */
#define OPS_VERSION_MAJOR 0
#define OPS_VERSION_MINOR 1
#define OPS_VERSION_PATCH 0
/* A number for comparisons: 0.1.0 is 100. */
#define OPS_VERSION_NUMBER                                                     \
    (OPS_VERSION_MAJOR * 10000 + OPS_VERSION_MINOR * 100 + OPS_VERSION_PATCH)

#define OPS_API __attribute__((visibility("default")))

#endif
