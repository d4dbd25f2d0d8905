/* SPDX-License-Identifier: Apache-2.0
 * Numbers of rows, for headers that speak of a row and not of traces. */
#ifndef MODEL_IDS_H
#define MODEL_IDS_H

#include <stdint.h>

typedef uint32_t row_id;
#define ROW_NONE UINT32_MAX

#endif
