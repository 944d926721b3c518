#include "event_publisher.h"

#include <stdlib.h>

#include "fail.h"
#include "messages.h"

void event_publisher_open(struct event_publisher *publisher, const char *url, const char *prefix, long rooms) {
  if (rooms < 1) fail("--rooms must be at least 1");
  amqp_connection_state_t connection = amqp_connect(url);
  amqp_open_channel(connection, 1);
  ledger_select(connection, 1);
  *publisher = (struct event_publisher){.prefix = prefix, .rooms = rooms};
  wire_take(&publisher->wire, connection);
  ledger_open(&publisher->ledger);
  publisher->sequences = calloc((size_t)rooms, sizeof *publisher->sequences);
  if (!publisher->sequences) fail("out of memory");
}

void event_publisher_put(struct event_publisher *publisher, long k, int64_t due_realtime, int64_t now_realtime) {
  static struct buffer name;
  long index = k % publisher->rooms;
  publish_window(&publisher->wire, 1, room_name(&name, publisher->prefix, (uint64_t)index),
                 ++publisher->sequences[index], due_realtime, now_realtime);
  publisher->ledger.published++;
}

void event_publisher_turn(struct event_publisher *publisher, int64_t until) {
  struct wire *wires[] = {&publisher->wire};
  struct ledger *ledgers[] = {&publisher->ledger};
  wire_wait(wires, 1, until);
  ledger_take(&publisher->wire, ledgers, 1);
}
