// The floor of the top of the hour: many windows that are due at one instant, published as fast as the broker takes
// them.
#include <stdio.h>

#include "clock.h"
#include "commands.h"
#include "event_publisher.h"
#include "fail.h"
#include "options.h"

enum { STUCK_SECONDS = 30, PIECE = 256, UNSENT_LIMIT = 1 << 19 };

void run_emit(int argc, char **argv) {
  const char *url = NULL, *prefix = "room-";
  long count = 0, rooms = 0, window = 16384;
  OPTIONS(argc, argv, {"url", OPTION_TEXT, &url, true}, {"count", OPTION_COUNT, &count, true},
          {"rooms", OPTION_COUNT, &rooms, false}, {"room-prefix", OPTION_TEXT, &prefix, false},
          {"window", OPTION_COUNT, &window, false});
  if (window < 1 || window >= LEDGER_LIMIT) fail("--window must be from 1 to %d", LEDGER_LIMIT - 1);
  struct event_publisher publisher;
  event_publisher_open(&publisher, url, prefix, rooms ? rooms : count);
  const struct ledger *ledger = &publisher.ledger;

  double cpu_before = cpu_seconds();
  int64_t start = monotonic_ns(), due = realtime_ns();
  int64_t stuck_at = start + STUCK_SECONDS * SECOND;
  for (long k = 0; ledger->confirmed < (uint64_t)count;) {
    uint64_t before = ledger->confirmed;
    int64_t now = realtime_ns();
    for (int piece = 0; k < count && piece < PIECE && ledger_outstanding(ledger) < (uint64_t)window; piece++) {
      event_publisher_put(&publisher, k++, due, now);
    }
    bool can_go_on = k < count && ledger_outstanding(ledger) < (uint64_t)window &&
                     buffer_length(&publisher.wire.out) < UNSENT_LIMIT;
    event_publisher_turn(&publisher, can_go_on ? 0 : stuck_at);
    if (ledger->confirmed > before) stuck_at = monotonic_ns() + STUCK_SECONDS * SECOND;
    if (monotonic_ns() >= stuck_at) fail("the broker confirms nothing any more");
  }
  int64_t end = monotonic_ns();
  double cpu = cpu_seconds() - cpu_before;
  wire_close(&publisher.wire);
  double seconds = (double)(end - start) / 1e9;
  printf("{\"command\":\"emit\",\"count\":%ld,\"seconds\":%.6f,\"rate\":%.1f,\"cpuSeconds\":%.4f,\"startNs\":%lld,"
         "\"startRealtimeNs\":%lld}\n",
         count, seconds, (double)count / seconds, cpu, (long long)start, (long long)due);
}
