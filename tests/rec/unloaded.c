/* SPDX-License-Identifier: Apache-2.0
 * unloaded PLUGIN LOGDIR: loads a plugin that was linked with a recorder of its
 * own, lets it record, also in a thread, and unloads it, twenty times. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *work(void *arg) {
    void (**f)(const char *) = arg;
    f[0]((const char *)(void *)f[1]);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) return 1;
    for (int i = 0; i < 20; i++) {
        void *h = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (h == NULL) {
            puts(dlerror());
            return 2;
        }
        void *f[2] = {dlsym(h, "plugin_record"), argv[2]};
        pthread_t t;
        work(f);
        pthread_create(&t, NULL, work, f);
        pthread_join(t, NULL);
        dlclose(h);
    }
    usleep(300000); /* threads that it left would run now */
    puts("closed");
    return 9;
}
