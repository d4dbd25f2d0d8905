/* SPDX-License-Identifier: Apache-2.0
 * Fuzzes opening: sniffing and inflating of any bytes. What comes out must be
 * readable to its end, with zeros behind it. */
#include "base/io/file.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct file *f;
    struct ops_err e = {0};
    int rc = file_open(path, &f, &e);
    if (rc == 0) {
        volatile unsigned sum = 0;
        for (size_t i = 0; i < f->bytes.n; i += 512) sum = sum + f->bytes.p[i];
        for (int i = 0; i < 64; i++) assert(f->bytes.p[f->bytes.n + i] == 0);
        assert(f->disk_bytes == size);
        assert(f->packing[0] != '\0' || f->bytes.n == size);
        file_close(f);
    } else {
        assert(e.code == rc && e.text[0] != '\0');
    }
    close(fd);
    return 0;
}
