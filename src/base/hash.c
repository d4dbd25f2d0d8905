/* SPDX-License-Identifier: Apache-2.0
 * The secrets of this process. They are a mutable global, written once before
 * main(): tables in every layer need them, and a table that carried its own
 * would carry one more thing that can be forgotten. */
#include "base/hash.h"

#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <time.h>

uint64_t hash_secret[HASH_SECRETS];

/* Returns the next number of splitmix64, whose state may begin anywhere. */
static uint64_t splitmix_next(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Makes the factors odd: an even one loses the highest bits of the other. */
static void make_odd(void) {
    for (int i = 1; i < HASH_SECRETS; i += 2) hash_secret[i] |= 1;
}

void hash_seed(uint64_t seed) {
    for (int i = 0; i < HASH_SECRETS; i++)
        hash_secret[i] = splitmix_next(&seed);
    make_odd();
}

/* Where the system gives no random numbers (a sandbox), the 16 bytes that the
 * kernel gave the process, the time and an address must do. */
__attribute__((constructor)) static void draw(void) {
    size_t size = sizeof hash_secret;
    if (getrandom(hash_secret, size, GRND_NONBLOCK) == (ssize_t)size) {
        make_odd();
        return;
    }
    uint64_t seed[2] = {0};
    struct timespec now = {0};
    const void *given = (const void *)getauxval(AT_RANDOM);
    if (given != NULL) memcpy(seed, given, sizeof seed);
    clock_gettime(CLOCK_MONOTONIC, &now);
    hash_seed(fixed_bytes(seed, sizeof seed) ^ (uint64_t)now.tv_nsec ^
              (uint64_t)(uintptr_t)&seed);
}
