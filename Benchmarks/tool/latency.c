// From the instant at which a command is due until its reply is there, at a given rate. The load is an open loop: a
// command that is published late, because the one before it took long, still counts from when it was due.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "commands.h"
#include "fail.h"
#include "load.h"
#include "percentiles.h"

enum { STUCK_SECONDS = 30 };

struct latency {
  struct load load;
  double rate;
  long count;
  int64_t start;
  struct samples published_late;
};

static int64_t due_at(const struct latency *latency, long k) {
  return latency->start + (int64_t)((double)k * 1e9 / latency->rate);
}

static void *publish_all(void *argument) {
  struct latency *latency = argument;
  amqp_connection_state_t connection = amqp_connect(latency->load.url);
  amqp_open_channel(connection, 1);
  ledger_select(connection, 1);
  struct wire wire;
  wire_take(&wire, connection);
  struct ledger ledger;
  ledger_open(&ledger);
  struct wire *wires[] = {&wire};
  struct ledger *ledgers[] = {&ledger};

  for (long k = 0; k < latency->count;) {
    int64_t now = monotonic_ns();
    for (; k < latency->count && due_at(latency, k) <= now; k++) {
      if (ledger_outstanding(&ledger) >= LEDGER_LIMIT - 1) fail("the broker does not keep up with the load");
      samples_add(&latency->published_late, (double)(now - due_at(latency, k)) / 1e6);
      load_publish(&latency->load, &wire, &ledger, k, realtime_ns());
    }
    wire_wait(wires, 1, k < latency->count ? due_at(latency, k) : now);
    ledger_take(&wire, ledgers, 1);
  }
  ledger_drain(&wire, &ledger, STUCK_SECONDS);
  wire_close(&wire);
  return NULL;
}

// The k of a correlation id of this run, or -1.
static long command_number(const struct latency *latency, struct slice id) {
  struct slice run = slice_of(latency->load.run);
  if (!id.at || !slice_begins(id, run) || id.length <= run.length || id.at[run.length] != '-') return -1;
  long k = 0;
  for (size_t i = run.length + 1; i < id.length; i++) {
    if (id.at[i] < '0' || id.at[i] > '9' || k >= latency->count) return -1;
    k = k * 10 + (id.at[i] - '0');
  }
  return k < latency->count ? k : -1;
}

struct answers {
  double *late_ms;
  long seen, duplicates, foreign, not_ok;
};

static void note_reply(const struct latency *latency, struct answers *answers, const struct wire *wire,
                       const struct delivery *delivery) {
  long k = command_number(latency, delivery->properties.correlation_id);
  if (k < 0) {
    answers->foreign++;
    return;
  }
  if (!slice_after(delivery->body, "\"ok\":true").at) answers->not_ok++;
  if (answers->late_ms[k] >= 0) {
    answers->duplicates++;
    return;
  }
  answers->late_ms[k] = (double)(wire->read_monotonic_ns - due_at(latency, k)) / 1e6;
  answers->seen++;
}

void run_latency(int argc, char **argv) {
  struct latency latency = {.load = LOAD_DEFAULTS};
  double seconds = 0, warmup = 0, timeout = 10;
  OPTIONS(argc, argv, LOAD_OPTIONS(latency.load), {"reply-queue", OPTION_TEXT, &latency.load.reply_to, true},
          {"rate", OPTION_REAL, &latency.rate, true}, {"seconds", OPTION_REAL, &seconds, true},
          {"warmup", OPTION_REAL, &warmup, false}, {"timeout", OPTION_REAL, &timeout, false});
  load_check(&latency.load);
  latency.count = (long)(latency.rate * (seconds + warmup));
  long skipped = (long)(latency.rate * warmup);
  if (latency.count <= skipped) fail("--rate times --seconds is less than 1");

  amqp_connection_state_t connection = amqp_connect(latency.load.url);
  amqp_open_channel(connection, 1);
  struct wire wire;
  wire_take(&wire, connection);
  wire_consume(&wire, 1, latency.load.reply_to, true);
  wire_flush(&wire);

  struct answers answers = {.late_ms = malloc((size_t)latency.count * sizeof(double))};
  if (!answers.late_ms) fail("out of memory");
  for (long k = 0; k < latency.count; k++) answers.late_ms[k] = -1;

  // Time for both connections to be ready.
  latency.start = monotonic_ns() + SECOND;
  int64_t end = due_at(&latency, latency.count) + (int64_t)(timeout * 1e9);
  pthread_t publisher;
  if (pthread_create(&publisher, NULL, publish_all, &latency) != 0) fail("no thread can be started");
  struct wire *wires[] = {&wire};
  while (answers.seen < latency.count && monotonic_ns() < end) {
    wire_wait(wires, 1, end);
    struct incoming incoming;
    while (wire_next(&wire, &incoming)) {
      if (incoming.kind == INCOMING_DELIVERY) note_reply(&latency, &answers, &wire, &incoming.delivery);
    }
  }
  pthread_join(publisher, NULL);
  wire_close(&wire);

  struct samples samples = {0};
  for (long k = skipped; k < latency.count; k++) {
    if (answers.late_ms[k] >= 0) samples_add(&samples, answers.late_ms[k]);
  }
  printf("{\"command\":\"latency\",\"complete\":%s,\"rate\":%g,\"published\":%ld,\"missing\":%ld,\"duplicates\":%ld,"
         "\"notOk\":%ld,\"foreign\":%ld,\"startNs\":%lld,",
         answers.seen == latency.count ? "true" : "false", latency.rate, latency.count, latency.count - answers.seen,
         answers.duplicates, answers.not_ok, answers.foreign, (long long)latency.start);
  samples_print_members(&samples);
  printf(",\"publishedLateMs\":");
  samples_print(&latency.published_late);
  printf("}\n");
  if (answers.seen < latency.count) fail("%ld replies are missing", latency.count - answers.seen);
}
