/* SPDX-License-Identifier: Apache-2.0
 * JSON text that every reader takes, made from text that may be anything. What
 * may not stand on a screen (plain.h) is written as an escape, \u009b: the text
 * stays what it is, and a terminal that shows the JSON is not steered by it. */
#ifndef BASE_TEXT_JSON_TEXT_H
#define BASE_TEXT_JSON_TEXT_H

#include "base/bytes.h"
#include "base/io/sink.h"
#include <stdbool.h>

/* Writes a JSON string. Bytes that are not UTF-8 become U+FFFD. */
void json_put(struct sink *out, struct bytes b);

/* Writes a string of text that stood between quotes in a JSON file: its escapes
 * are kept where they are good. Half of a surrogate pair becomes U+FFFD. */
void json_put_raw(struct sink *out, struct bytes raw);

/* Writes a value as it stood in a JSON file; what json_is_strict() refuses
 * becomes a string. */
void json_put_value(struct sink *out, struct bytes raw);

/* Writes one character as an escape: \u009b, or a pair of them. PLAIN_BAD
 * becomes U+FFFD. */
void json_put_escape(struct sink *out, uint32_t code);

/* Is b one JSON value by the letter of RFC 8259 (depth at most 64)? Readers
 * of profiles take more than that; viewers do not. */
bool json_is_strict(struct bytes b);

/* The keys of an object so far. A source may give one twice, as JAX does, which
 * strict readers of JSON refuse: a second "_src" is written as "_src (2)". */
struct json_keys {
    struct bytes seen[64];
    uint8_t copy[64][32]; /* short ones may stand in a buffer of the caller's */
    unsigned n;
};
/* Writes a key. raw: it is from a JSON file, with its escapes. A key of 32
 * bytes and more must live as long as k. */
void json_put_key(struct sink *s, struct json_keys *k, struct bytes key,
                  bool raw);

#endif
