// Fills the command queue, or feeds it at a rate.
#include <stdio.h>

#include "clock.h"
#include "commands.h"
#include "fail.h"
#include "load.h"

enum { STUCK_SECONDS = 30, PIECE = 64 };

void run_fill(int argc, char **argv) {
  struct load load = LOAD_DEFAULTS;
  double rate = 0;
  OPTIONS(argc, argv, LOAD_OPTIONS(load), {"count", OPTION_COUNT, &load.count, true},
          {"reply-to", OPTION_TEXT, &load.reply_to, true}, {"rate", OPTION_REAL, &rate, false});
  load_check(&load);

  amqp_connection_state_t connection = amqp_connect(load.url);
  amqp_open_channel(connection, 1);
  ledger_select(connection, 1);
  struct wire wire;
  wire_take(&wire, connection);
  struct ledger ledger;
  ledger_open(&ledger);
  struct wire *wires[] = {&wire};
  struct ledger *ledgers[] = {&ledger};

  int64_t start = monotonic_ns();
  if (rate > 0) {
    printf("{\"startNs\":%lld,\"rate\":%g,\"count\":%ld,\"run\":\"%s\"}\n", (long long)start, rate, load.count,
           load.run);
    fflush(stdout);
  }
  uint64_t window = (uint64_t)load.window;
  int64_t stuck_at = start + STUCK_SECONDS * SECOND;
  for (long k = 0; k < load.count;) {
    int64_t now = monotonic_ns(), realtime = realtime_ns();
    int64_t wake = stuck_at;
    for (int piece = 0; k < load.count && ledger_outstanding(&ledger) < window && piece < PIECE; piece++) {
      if (rate > 0) {
        int64_t due = start + (int64_t)((double)k * 1e9 / rate);
        if (due > now) {
          wake = due;
          break;
        }
      }
      load_publish(&load, &wire, &ledger, k++, realtime);
      stuck_at = now + STUCK_SECONDS * SECOND;
    }
    bool has_room = k < load.count && ledger_outstanding(&ledger) < window && wake == stuck_at;
    uint64_t before = ledger.confirmed;
    wire_wait(wires, 1, buffer_length(&wire.out) < 1 << 18 && (rate <= 0 && has_room) ? 0 : wake);
    ledger_take(&wire, ledgers, 1);
    if (ledger.confirmed > before) stuck_at = monotonic_ns() + STUCK_SECONDS * SECOND;
    if (monotonic_ns() >= stuck_at) fail("the broker takes nothing any more after %ld commands", k);
  }
  ledger_drain(&wire, &ledger, STUCK_SECONDS);
  double seconds = (double)(monotonic_ns() - start) / 1e9;
  wire_close(&wire);
  printf("{\"command\":\"fill\",\"run\":\"%s\",\"count\":%ld,\"startNs\":%lld,\"seconds\":%.6f,\"rate\":%.1f}\n",
         load.run, load.count, (long long)start, seconds, (double)load.count / seconds);
}
