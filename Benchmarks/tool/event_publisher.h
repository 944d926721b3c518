#ifndef BENCH_EVENT_PUBLISHER_H
#define BENCH_EVENT_PUBLISHER_H

#include "ledger.h"

// Publishes windows of many rooms, each room's sequence rising by one.
struct event_publisher {
  struct wire wire;
  struct ledger ledger;
  const char *prefix;
  long rooms;
  int64_t *sequences;
};

void event_publisher_open(struct event_publisher *publisher, const char *url, const char *prefix, long rooms);

// The k-th window.
void event_publisher_put(struct event_publisher *publisher, long k, int64_t due_realtime, int64_t now_realtime);

// Sends, takes the confirms that are there, and waits for more until `until` on the monotonic clock.
void event_publisher_turn(struct event_publisher *publisher, int64_t until);

#endif
