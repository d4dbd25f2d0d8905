/* SPDX-License-Identifier: Apache-2.0
 * TensorFlow's TF_CONFIG, the one launcher's variable that is JSON:
 *     {"cluster": {"chief": ["host:port"], "worker": ["...", "..."]},
 *      "task": {"type": "worker", "index": 0}} */
#ifndef REC_MACHINE_TF_CONFIG_H
#define REC_MACHINE_TF_CONFIG_H

#include <stdbool.h>

/* Rank and world: tasks are counted through chief, master, worker, evaluator,
 * ps. False: not JSON, or its task is not in its cluster. */
bool tf_config_rank(const char *json, int *rank, int *world);

#endif
