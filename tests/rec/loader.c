/* SPDX-License-Identifier: Apache-2.0
 * Loads and unloads plugin.so. Built with -DSELF it records itself; without, it
 * knows nothing of the recorder, which comes and would go with the plugin.
 *
 *     loader PLUGIN LOGDIR ROUNDS */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef SELF
#include <opscope/record.h>
#endif

static void (*work)(int);

static void *in_thread(void *arg) {
    work((int)(long)arg);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
#ifdef SELF
    if (ops_start(argv[2], NULL) != 0) return 3;
#endif
    for (long i = 0; i < atol(argv[3]); i++) {
        pthread_t t;
        void *lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (lib == NULL) {
            printf("%s\n", dlerror());
            return 4;
        }
        *(void **)&work = dlsym(lib, "plugin_work");
        int (*start)(const char *);
        *(void **)&start = dlsym(lib, "plugin_start");
        if (start(argv[2]) != 0) return 5;
        pthread_create(&t, NULL, in_thread, (void *)i);
        pthread_join(t, NULL);
        work((int)i);
        dlclose(lib);
    }
    printf("loaded %s times\n", argv[3]);
    return 0;
}
