// A bare timer that publishes: each event is due at an instant of its own, and goes out once the thread has woken.
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/prctl.h>

#include "clock.h"
#include "commands.h"
#include "event_publisher.h"
#include "fail.h"
#include "options.h"
#include "percentiles.h"

enum { STUCK_SECONDS = 30 };

void run_timer(int argc, char **argv) {
  const char *url = NULL, *prefix = "room-";
  double rate = 0, seconds = 0;
  long rooms = 1000;
  OPTIONS(argc, argv, {"url", OPTION_TEXT, &url, true}, {"rate", OPTION_REAL, &rate, true},
          {"seconds", OPTION_REAL, &seconds, true}, {"rooms", OPTION_COUNT, &rooms, false},
          {"room-prefix", OPTION_TEXT, &prefix, false});
  long count = (long)(rate * seconds);
  if (count < 1) fail("--rate times --seconds is less than 1");
  struct event_publisher publisher;
  event_publisher_open(&publisher, url, prefix, rooms);
  // The kernel may wake a thread up to 50 microseconds late otherwise.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);

  // Events say when they were due in whole milliseconds: so is the start.
  int64_t start = (realtime_ns() / MILLISECOND + 500) * MILLISECOND;
  struct samples late = {0};
  double cpu_before = cpu_seconds();
  for (long k = 0; k < count;) {
    int64_t now = realtime_ns();
    int64_t due = 0;
    for (; k < count; k++) {
      due = start + (int64_t)((double)k * 1e9 / rate);
      if (due > now) break;
      if (ledger_outstanding(&publisher.ledger) >= LEDGER_LIMIT - 1) fail("the broker does not keep up with the timer");
      event_publisher_put(&publisher, k, due, now);
      samples_add(&late, (double)(now - due) / 1e6);
    }
    event_publisher_turn(&publisher, monotonic_ns() + (k < count ? due - realtime_ns() : 0));
  }
  ledger_drain(&publisher.wire, &publisher.ledger, STUCK_SECONDS);
  double cpu = cpu_seconds() - cpu_before;
  wire_close(&publisher.wire);
  printf("{\"command\":\"timer\",\"count\":%ld,\"rate\":%g,\"cpuSeconds\":%.4f,\"startRealtimeNs\":%lld,"
         "\"publishedLateMs\":",
         count, rate, cpu, (long long)start);
  samples_print(&late);
  printf("}\n");
}
