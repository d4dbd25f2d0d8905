/* SPDX-License-Identifier: Apache-2.0
 * Devices that the program or an accelerator's tracer reports on. */
#ifndef REC_DEVICE_H
#define REC_DEVICE_H

#include <stdbool.h>

struct encoder;

bool device_any(void); /* is there a tracer? */
/* Forgets all tracers, in the child of a fork: they do not work there. */
void device_forget(void);
/* The keeper calls these: they begin the tracers that have not begun and take
 * what they have. full() is called, and waited for, whenever the batch is
 * full. */
void device_start(void);
void device_take(bool last, void (*full)(void));
/* Writes the batch into the files; the flusher calls it, the keeper waits. */
void device_encode(struct encoder *e);
/* Writes what is known of the devices at the end. */
void device_facts(struct encoder *e);

#endif
