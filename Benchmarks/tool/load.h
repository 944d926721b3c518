#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "ledger.h"
#include "options.h"

// Which commands are published: command k is about room (first + k * stride) mod rooms, with the id RUN-k. `extend` can be
// granted once in a window; `role` lets the room's user, a participant at first, change the role with each round.
struct load {
  const char *url, *run, *prefix, *exchange, *command, *reply_to;
  long count, first, stride, rooms, window;
};

#define LOAD_DEFAULTS                                                                                                  \
  { .prefix = "room-", .exchange = "overtime.commands", .command = "extend", .stride = 1, .window = 8192 }

#define LOAD_OPTIONS(load)                                                                                             \
  {"url", OPTION_TEXT, &(load).url, true}, {"run", OPTION_TEXT, &(load).run, false},                                   \
      {"first", OPTION_COUNT, &(load).first, false}, {"stride", OPTION_COUNT, &(load).stride, false},                  \
      {"rooms", OPTION_COUNT, &(load).rooms, true}, {"room-prefix", OPTION_TEXT, &(load).prefix, false},               \
      {"command", OPTION_TEXT, &(load).command, false}, {"exchange", OPTION_TEXT, &(load).exchange, false},            \
      {"window", OPTION_COUNT, &(load).window, false}

// Ends the program where the options do not fit together; gives the run a name where it has none.
void load_check(struct load *load);

void load_publish(const struct load *load, struct wire *wire, struct ledger *ledger, long k, int64_t realtime);

#endif
