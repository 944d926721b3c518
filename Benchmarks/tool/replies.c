// Counts the replies, each correlation id once.
#include <stdio.h>

#include "clock.h"
#include "commands.h"
#include "fail.h"
#include "options.h"
#include "seen.h"
#include "wire.h"

void run_replies(int argc, char **argv) {
  const char *url = NULL, *queue = NULL;
  long count = 0;
  double timeout = 120, linger = 0.3;
  OPTIONS(argc, argv, {"url", OPTION_TEXT, &url, true}, {"queue", OPTION_TEXT, &queue, true},
          {"count", OPTION_COUNT, &count, true}, {"timeout", OPTION_REAL, &timeout, false},
          {"linger", OPTION_REAL, &linger, false});
  amqp_connection_state_t connection = amqp_connect(url);
  amqp_open_channel(connection, 1);
  struct wire wire;
  wire_take(&wire, connection);
  wire_consume(&wire, 1, queue, true);
  struct wire *wires[] = {&wire};

  struct seen seen = {0};
  long distinct = 0, duplicates = 0, not_ok = 0, marked = 0;
  int64_t first = 0, last = 0, marks[10];
  int64_t until = monotonic_ns() + (int64_t)(timeout * 1e9);
  // After the last one a while for those that are too many.
  int64_t end = until;
  while (monotonic_ns() < end) {
    wire_wait(wires, 1, end);
    struct incoming incoming;
    while (wire_next(&wire, &incoming)) {
      if (incoming.kind != INCOMING_DELIVERY) continue;
      const struct delivery *delivery = &incoming.delivery;
      if (!delivery->properties.correlation_id.at) fail("a reply has no correlation id");
      if (!slice_after(delivery->body, "\"ok\":true").at) not_ok++;
      if (!seen_add(&seen, slice_hash(delivery->properties.correlation_id))) {
        duplicates++;
        continue;
      }
      if (distinct++ == 0) first = wire.read_monotonic_ns;
      if (distinct > count) continue;
      last = wire.read_monotonic_ns;
      while (marked < 10 && distinct >= (count * (marked + 1) + 9) / 10) marks[marked++] = last;
      if (distinct == count) end = last + (int64_t)(linger * 1e9);
    }
  }
  wire_close(&wire);
  double seconds = (double)(last - first) / 1e9;
  printf("{\"command\":\"replies\",\"complete\":%s,\"count\":%ld,\"duplicates\":%ld,\"notOk\":%ld,\"firstNs\":%lld,"
         "\"lastNs\":%lld,\"seconds\":%.6f,\"rate\":%.1f,\"marksNs\":[",
         distinct >= count ? "true" : "false", distinct, duplicates, not_ok, (long long)first, (long long)last, seconds,
         distinct > 1 && seconds > 0 ? (double)((distinct < count ? distinct : count) - 1) / seconds : 0.0);
  for (long i = 0; i < marked; i++) printf("%s%lld", i ? "," : "", (long long)marks[i]);
  printf("]}\n");
  if (distinct < count) fail("%ld of %ld replies came within %g s", distinct, count, timeout);
}
