/* SPDX-License-Identifier: Apache-2.0
 * Between events.c (one event) and events_file.c (the file). Not for others. */
#ifndef IMPORT_CHROME_EVENTS_IMPL_H
#define IMPORT_CHROME_EVENTS_IMPL_H

#include <stdbool.h>

struct event;
struct reader;

/* Reads one element of the event list. False: damage; r->j.p is there. */
bool events_one(struct reader *r);

/* Keeps one end of an arrow. */
void events_flow(struct reader *r, const struct event *ev);

/* Ends the spans that nothing closed. */
void events_close_open(struct reader *r);

#endif
