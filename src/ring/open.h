/* SPDX-License-Identifier: Apache-2.0
 * How files are opened and made, and a table of descriptors for whoever does
 * it inside of a program.
 *
 * Names come from folders that others may write to: what stands there may be a
 * device, a pipe or a link by now. Modes do not depend on the program's umask:
 * nobody else may write, and the owner always may. */
#ifndef RING_OPEN_H
#define RING_OPEN_H

enum { REC_FILE_MODE = 0644, REC_RING_MODE = 0600, REC_FOLDER_MODE = 0755 };

/* Opens a regular file and nothing else: it is looked at before it is opened.
 * flags: O_RDONLY, O_WRONLY or O_RDWR. Returns -1 and errno, EINVAL if it is no
 * file. */
int rec_open(int dir, const char *name, int flags);

/* Makes a file that did not exist. Returns -1 and errno if it cannot. */
int rec_create(int dir, const char *name, int flags, int mode);

/* Makes a folder. Returns 0 or errno; EEXIST if it is there already. */
int rec_mkdir(int dir, const char *name);

/* Gives the calling thread, and those that it starts, an empty table of
 * descriptors of their own: descriptors that other threads of the process open,
 * close and duplicate have other numbers, and no child inherits ours. Returns
 * 0, or errno if the system does not allow it. */
int rec_own_table(void);

#endif
