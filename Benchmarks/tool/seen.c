#include "seen.h"

#include <stdlib.h>

#include "fail.h"

static struct seen_entry *find(struct seen_entry *entries, size_t capacity, uint64_t hash) {
  size_t at = hash & (capacity - 1);
  while (entries[at].hash && entries[at].hash != hash) at = (at + 1) & (capacity - 1);
  return &entries[at];
}

static void grow(struct seen *seen) {
  size_t capacity = seen->capacity ? seen->capacity * 2 : 1 << 12;
  struct seen_entry *entries = calloc(capacity, sizeof *entries);
  if (!entries) fail("out of memory");
  for (size_t i = 0; i < seen->capacity; i++) {
    if (seen->entries[i].hash) *find(entries, capacity, seen->entries[i].hash) = seen->entries[i];
  }
  free(seen->entries);
  seen->entries = entries;
  seen->capacity = capacity;
}

int64_t *seen_value(struct seen *seen, uint64_t hash, bool *is_new) {
  if (seen->count * 2 >= seen->capacity) grow(seen);
  struct seen_entry *entry = find(seen->entries, seen->capacity, hash);
  if (is_new) *is_new = !entry->hash;
  if (!entry->hash) {
    *entry = (struct seen_entry){hash, 0};
    seen->count++;
  }
  return &entry->value;
}

bool seen_add(struct seen *seen, uint64_t hash) {
  bool is_new;
  seen_value(seen, hash, &is_new);
  return is_new;
}
