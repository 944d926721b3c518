// The floor: what any worker on this broker has to do at least, done as fast as possible. For each command one event
// and one reply, persistent and confirmed, and only then the acknowledgement. Nothing is parsed, decided or stored.
#include <stdio.h>

#include "clock.h"
#include "commands.h"
#include "fail.h"
#include "ledger.h"
#include "messages.h"
#include "options.h"
#include "seen.h"

enum { EVENTS_CHANNEL = 1, REPLIES_CHANNEL = 2, STUCK_SECONDS = 30 };

struct floor {
  struct wire consumer, publisher, second_publisher;
  // Where replies go: the one publisher, or with --split the second.
  struct wire *replier;
  struct ledger events, replies;
  struct seen sequences;
  uint64_t delivered, acknowledged;
};

static void open_publisher(struct wire *wire, const char *url, int channels) {
  amqp_connection_state_t connection = amqp_connect(url);
  for (int channel = 1; channel <= channels; channel++) {
    amqp_open_channel(connection, (amqp_channel_t)channel);
    ledger_select(connection, (amqp_channel_t)channel);
  }
  wire_take(wire, connection);
}

static void open_connections(struct floor *floor, const char *url, const char *queue, long prefetch, bool is_split) {
  open_publisher(&floor->publisher, url, REPLIES_CHANNEL);
  floor->replier = &floor->publisher;
  if (is_split) {
    open_publisher(&floor->second_publisher, url, REPLIES_CHANNEL);
    floor->replier = &floor->second_publisher;
  }
  ledger_open(&floor->events);
  ledger_open(&floor->replies);

  amqp_connection_state_t connection = amqp_connect(url);
  amqp_open_channel(connection, 1);
  amqp_basic_qos(connection, 1, 0, (uint16_t)prefetch, 0);
  amqp_check(connection, "setting the prefetch");
  wire_take(&floor->consumer, connection);
  wire_consume(&floor->consumer, 1, queue, false);
}

// The instants are made once a batch: what stands in them does not matter, that something of their size does.
struct instants {
  int64_t realtime;
  char now[INSTANT_LENGTH + 1], later[INSTANT_LENGTH + 1];
};

static void answer(struct floor *floor, const struct delivery *delivery, const struct instants *instants) {
  const struct properties *properties = &delivery->properties;
  struct slice room = delivery->routing_key;
  struct extension extension = {
      .room = room,
      .sequence = ++*seen_value(&floor->sequences, slice_hash(room), NULL),
      .extensions = 1,
      .started_at = instants->now,
      .previous_ends_at = instants->now,
      .ends_at = instants->later,
      .next_due_at = instants->later,
      .now = instants->now,
      .now_realtime = instants->realtime,
  };
  publish_extended(&floor->publisher, EVENTS_CHANNEL, &extension);
  floor->events.published++;
  publish_reply(floor->replier, REPLIES_CHANNEL, properties->reply_to, properties->message_id,
                properties->correlation_id, &extension);
  floor->replies.published++;
}

// Publishes for what has arrived, at most `limit`; returns how many.
static long publish_batch(struct floor *floor, long limit) {
  struct instants instants = {.realtime = realtime_ns()};
  format_instant(instants.realtime, instants.now);
  format_instant(instants.realtime + 600 * SECOND, instants.later);
  long size = 0;
  struct incoming incoming;
  while (size < limit && wire_next(&floor->consumer, &incoming)) {
    if (incoming.kind != INCOMING_DELIVERY) continue;
    answer(floor, &incoming.delivery, &instants);
    if (incoming.delivery.tag != ++floor->delivered) fail("a delivery tag was left out");
    size++;
  }
  wire_flush(&floor->publisher);
  if (floor->replier != &floor->publisher) wire_flush(floor->replier);
  return size;
}

// The tags of deliveries, events and replies run side by side, so that what both ledgers have confirmed is done.
static bool acknowledge(struct floor *floor, long at_least) {
  uint64_t events = floor->events.confirmed, replies = floor->replies.confirmed;
  uint64_t done = events < replies ? events : replies;
  uint64_t ready = done - floor->acknowledged;
  if (ready == 0 || (ready < (uint64_t)at_least && done < floor->delivered)) return false;
  wire_ack(&floor->consumer, 1, done, true);
  wire_flush(&floor->consumer);
  floor->acknowledged = done;
  return true;
}

void run_floor(int argc, char **argv) {
  const char *url = NULL, *queue = "overtime.commands";
  long count = 0, batch = 512, prefetch = 2048, ack = 256;
  bool is_split = false;
  double timeout = 120;
  OPTIONS(argc, argv, {"url", OPTION_TEXT, &url, true}, {"queue", OPTION_TEXT, &queue, false},
          {"count", OPTION_COUNT, &count, true}, {"batch", OPTION_COUNT, &batch, false},
          {"prefetch", OPTION_COUNT, &prefetch, false}, {"ack", OPTION_COUNT, &ack, false},
          {"split", OPTION_FLAG, &is_split, false}, {"timeout", OPTION_REAL, &timeout, false});
  if (ack > prefetch / 2) ack = prefetch / 2;
  if (batch < 1 || batch > 65535 || prefetch < 1 || prefetch > 65535)
    fail("--batch and --prefetch must be from 1 to 65535");
  struct floor floor = {0};
  open_connections(&floor, url, queue, prefetch, is_split);
  struct wire *wires[] = {&floor.consumer, &floor.publisher, &floor.second_publisher};
  int connections = is_split ? 3 : 2;
  struct ledger *ledgers[] = {&floor.events, &floor.replies};

  int64_t first = 0, end = monotonic_ns() + (int64_t)(timeout * 1e9);
  double cpu_before = cpu_seconds();
  long batches = 0, acks = 0;
  while (floor.acknowledged < (uint64_t)count) {
    if (monotonic_ns() >= end)
      fail("%llu of %ld were done within %g s", (unsigned long long)floor.acknowledged, count, timeout);
    wire_wait(wires, connections, end);
    if (!first) first = floor.consumer.read_monotonic_ns;
    for (int i = 1; i < connections; i++) ledger_take(wires[i], ledgers, 2);
    acks += acknowledge(&floor, ack);
    while (publish_batch(&floor, batch) > 0) batches++;
  }
  int64_t last = monotonic_ns();
  double cpu = cpu_seconds() - cpu_before;
  for (int i = 0; i < connections; i++) wire_close(wires[i]);
  double seconds = (double)(last - first) / 1e9;
  printf("{\"command\":\"floor\",\"count\":%llu,\"seconds\":%.6f,\"rate\":%.1f,\"cpuSeconds\":%.4f,\"maxRssKiB\":%ld,"
         "\"batches\":%ld,\"acks\":%ld,\"firstNs\":%lld,\"lastNs\":%lld}\n",
         (unsigned long long)floor.acknowledged, seconds, (double)floor.acknowledged / seconds, cpu, peak_kib(),
         batches, acks, (long long)first, (long long)last);
}
