#ifndef BENCH_SEEN_H
#define BENCH_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A number for each key, found by the key's 64-bit hash: which ids were seen, or the last sequence of each room.
// Two of a million keys share a hash once in tens of millions of runs.
struct seen {
  struct seen_entry {
    uint64_t hash;
    int64_t value;
  } *entries;
  size_t capacity, count;
};

// The value of a key, made with 0 where it is not there. `is_new` may be NULL. Holds until the next call.
int64_t *seen_value(struct seen *seen, uint64_t hash, bool *is_new);

// Notes a key; true where it was not there yet.
bool seen_add(struct seen *seen, uint64_t hash);

#endif
