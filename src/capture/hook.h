/* SPDX-License-Identifier: Apache-2.0
 * What `opscope record` puts into Python programs, and what comes back: a
 * folder for PYTHONPATH whose sitecustomize.py looks at the frameworks that the
 * program imports (python/opscope/_site), and sentences for the user. */
#ifndef CAPTURE_HOOK_H
#define CAPTURE_HOOK_H

#include <stdbool.h>

/* Returns the value for PYTHONPATH: our folder, then what it was. NULL if
 * opscope's Python package is not beside this program, or there is no memory.
 * The caller frees. */
char *hook_python_path(void);

/* Does the command run Python, and is there no package beside this program? */
bool hook_lacks_package(char *const argv[]);

/* Returns the option of `python -I`, -E or -S in a command, by which Python
 * does not look at PYTHONPATH or at sitecustomize; 0 if there is none. */
char hook_kept_out(char *const argv[]);

/* Hands over the sentences that processes of the program left in the run's
 * folder, each once however many left it, and removes their files. */
void hook_take_notes(const char *folder,
                     void (*each)(void *ctx, const char *text), void *ctx);

#endif
