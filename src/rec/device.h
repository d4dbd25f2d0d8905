/* SPDX-License-Identifier: Apache-2.0
 * Devices that the program or an accelerator's tracer reports on. */
#ifndef REC_DEVICE_H
#define REC_DEVICE_H

#include <stdbool.h>

struct encoder;

bool device_any(void); /* is there a tracer? */
/* In the child of a fork: an accelerator's tracer does not work there. */
void device_forget(void);
/* In the keeper: begins those that have not, takes what they have. full() is
 * called, and waited for, whenever the batch is full. */
void device_start(void);
void device_take(bool last, void (*full)(void));
/* In the flusher, while the keeper waits: the batch goes into the files. */
void device_encode(struct encoder *e);
/* What is known of the devices at the end. */
void device_facts(struct encoder *e);

#endif
