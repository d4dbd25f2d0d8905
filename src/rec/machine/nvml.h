/* SPDX-License-Identifier: Apache-2.0
 * What NVIDIA's management library says about the GPUs: memory, utilisation,
 * clocks, power, temperature, PCIe. Loaded at run time; no driver, no counters.
 *
 * A thread of its own asks, 10 times a second or, when the driver is slow, as
 * often as keeps it below a tenth of the time: the first call may take seconds
 * (GPUs wake up), and one of PCIe throughput takes 20 ms (so that is asked once
 * a second, of one GPU after the other). The caller fetches what came last; a
 * value that did not change comes once a second.
 * When that thread hangs in the driver, nvml_close leaves it alone: it cleans
 * up behind itself when it comes back.
 *
 * GPUs are those of CUDA_VISIBLE_DEVICES, in its order, so that "GPU 0" is the
 * program's device 0; without it, all. Figures are of the whole GPU, also of
 * what other processes do there. A child of fork() has no such thread: it sets
 * work to NULL, calls nothing else, and need not open it again, since its
 * parent sees the same GPUs. */
#ifndef REC_MACHINE_NVML_H
#define REC_MACHINE_NVML_H

#include <stdbool.h>
#include <stdint.h>

struct nvml_work;
struct nvml {
    struct nvml_work *work; /* shared with the thread; NULL: closed */
};

typedef void nvml_give(void *to, const char *counter, double value);
typedef void nvml_fact(void *to, const char *key, const char *value);

/* Starts the thread, where there is a driver. A library of NULL is
 * "libnvidia-ml.so.1". visible is the value of CUDA_VISIBLE_DEVICES, NULL when
 * it is not set (identity_var). When no thread can be made there are no
 * counters, and nvml_facts says so. */
void nvml_open(struct nvml *n, const char *library, const char *visible);

/* Gives the values that came since the call before. Never waits. When it is not
 * called for 1 s (no window is open), the thread asks only once a second. */
void nvml_run(struct nvml *n, nvml_give *give, void *to);

/* Gives the facts, once they are known, and returns true; false if they are not
 * known yet: ask again. "nvml" = "not found", "driver 580.65.06" or what went
 * wrong; "gpu.0.name", ".uuid", ".pci", ".memory_bytes", ".nvml_index" (its
 * number in nvidia-smi), ".missing" (what it does not tell, and why). May be
 * called again at the end, when more may be missing. Never waits. */
bool nvml_facts(struct nvml *n, nvml_fact *give, void *to);

/* Ends the thread; waits at most 200 ms for it. */
void nvml_close(struct nvml *n);

#endif
