#define _GNU_SOURCE
#include "bytes.h"

#include <endian.h>
#include <stdlib.h>

#include "fail.h"

struct slice slice_after(struct slice slice, const char *mark) {
  size_t length = strlen(mark);
  const char *found = slice.length ? memmem(slice.at, slice.length, mark, length) : NULL;
  if (!found) return (struct slice){NULL, 0};
  return (struct slice){found + length, slice.length - (size_t)(found - slice.at) - length};
}

uint64_t slice_hash(struct slice slice) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < slice.length; i++) hash = (hash ^ (unsigned char)slice.at[i]) * UINT64_C(0x100000001b3);
  hash ^= hash >> 33;
  hash *= UINT64_C(0xff51afd7ed558ccd);
  hash ^= hash >> 33;
  hash *= UINT64_C(0xc4ceb9fe1a85ec53);
  hash ^= hash >> 33;
  return hash ? hash : 1;
}

void buffer_reserve(struct buffer *buffer, size_t count) {
  if (buffer->start > 0) {
    memmove(buffer->data, buffer->data + buffer->start, buffer_length(buffer));
    buffer->end -= buffer->start;
    buffer->start = 0;
  }
  if (buffer->capacity - buffer->end >= count) return;
  size_t capacity = buffer->capacity ? buffer->capacity : 4096;
  while (capacity - buffer->end < count) capacity *= 2;
  char *data = realloc(buffer->data, capacity);
  if (!data) fail("out of memory");
  buffer->data = data;
  buffer->capacity = capacity;
}

void put_decimal(struct buffer *buffer, uint64_t number) {
  char digits[20];
  size_t at = sizeof digits;
  do {
    digits[--at] = (char)('0' + number % 10);
    number /= 10;
  } while (number);
  put_bytes(buffer, digits + at, sizeof digits - at);
}

void put_u8(struct buffer *buffer, uint8_t number) { put_bytes(buffer, &number, 1); }

void put_u16(struct buffer *buffer, uint16_t number) {
  number = htobe16(number);
  put_bytes(buffer, &number, 2);
}

void put_u32(struct buffer *buffer, uint32_t number) {
  number = htobe32(number);
  put_bytes(buffer, &number, 4);
}

void put_u64(struct buffer *buffer, uint64_t number) {
  number = htobe64(number);
  put_bytes(buffer, &number, 8);
}

void patch_u32(struct buffer *buffer, size_t at, uint32_t number) {
  number = htobe32(number);
  memcpy(buffer->data + at, &number, 4);
}

uint16_t get_u16(const char *at) {
  uint16_t number;
  memcpy(&number, at, 2);
  return be16toh(number);
}

uint32_t get_u32(const char *at) {
  uint32_t number;
  memcpy(&number, at, 4);
  return be32toh(number);
}

uint64_t get_u64(const char *at) {
  uint64_t number;
  memcpy(&number, at, 8);
  return be64toh(number);
}
