#ifndef BENCH_BYTES_H
#define BENCH_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Bytes that somebody else owns; `at` is NULL where there are none.
struct slice {
  const char *at;
  size_t length;
};

static inline struct slice slice_of(const char *text) { return (struct slice){text, strlen(text)}; }

#define SLICE(literal) ((struct slice){literal, sizeof literal - 1})

static inline bool slice_is(struct slice slice, const char *text) {
  return slice.length == strlen(text) && memcmp(slice.at, text, slice.length) == 0;
}

static inline bool slice_begins(struct slice slice, struct slice start) {
  return slice.length >= start.length && memcmp(slice.at, start.at, start.length) == 0;
}

// What follows the first `mark` in `slice`; `at` is NULL where it is not there.
struct slice slice_after(struct slice slice, const char *mark);

// A number that is mixed well enough to stand for the bytes themselves; never 0.
uint64_t slice_hash(struct slice slice);

// A buffer that grows: bytes are put in at `end` and taken out at `start`.
struct buffer {
  char *data;
  size_t start, end, capacity;
};

static inline size_t buffer_length(const struct buffer *buffer) { return buffer->end - buffer->start; }
static inline struct slice buffer_slice(const struct buffer *buffer) {
  return (struct slice){buffer->data + buffer->start, buffer->end - buffer->start};
}
static inline void buffer_clear(struct buffer *buffer) { buffer->start = buffer->end = 0; }

// Makes room for `count` more bytes; what was there may move.
void buffer_reserve(struct buffer *buffer, size_t count);

static inline void put_bytes(struct buffer *buffer, const void *bytes, size_t count) {
  if (buffer->capacity - buffer->end < count) buffer_reserve(buffer, count);
  memcpy(buffer->data + buffer->end, bytes, count);
  buffer->end += count;
}
static inline void put_slice(struct buffer *buffer, struct slice slice) {
  if (slice.length > 0) put_bytes(buffer, slice.at, slice.length);
}
#define PUT_LITERAL(buffer, literal) put_bytes((buffer), literal, sizeof literal - 1)

void put_decimal(struct buffer *buffer, uint64_t number);
void put_u8(struct buffer *buffer, uint8_t number);
void put_u16(struct buffer *buffer, uint16_t number);
void put_u32(struct buffer *buffer, uint32_t number);
void put_u64(struct buffer *buffer, uint64_t number);
// Writes the four bytes at offset `at` of the data.
void patch_u32(struct buffer *buffer, size_t at, uint32_t number);

uint16_t get_u16(const char *at);
uint32_t get_u32(const char *at);
uint64_t get_u64(const char *at);

#endif
