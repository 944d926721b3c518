#ifndef BENCH_MESSAGES_H
#define BENCH_MESSAGES_H

#include <stdint.h>

#include "wire.h"

// Messages as Overtime's worker and its clients publish them: the same properties, headers and bodies of the same size,
// taken from real ones.

// The name of a room, `prefix` and seven digits.
struct slice room_name(struct buffer *buffer, const char *prefix, uint64_t index);

// Where a command goes, what it is known by, and where its reply goes.
struct address {
  struct slice exchange, room, id, reply_to;
};

void publish_extend(struct wire *wire, uint16_t channel, const struct address *address, int64_t realtime);

// The user comes again with the other role, which is a change that a room takes any number of times.
void publish_role(struct wire *wire, uint16_t channel, const struct address *address, bool is_viewer, int64_t realtime);

struct extension {
  struct slice room;
  int64_t sequence, extensions;
  // Instants of the session, formatted, and the one at which the command was judged.
  const char *started_at, *previous_ends_at, *ends_at, *next_due_at, *now;
  int64_t now_realtime;
};

void publish_extended(struct wire *wire, uint16_t channel, const struct extension *extension);

void publish_reply(struct wire *wire, uint16_t channel, struct slice reply_to, struct slice id,
                   struct slice correlation_id, const struct extension *extension);

// A window that was due at that instant and is announced now.
void publish_window(struct wire *wire, uint16_t channel, struct slice room, int64_t sequence, int64_t due_realtime,
                    int64_t now_realtime);

#endif
