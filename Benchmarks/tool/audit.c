// Reads the events of a run, and checks what a subscriber is promised.
#include <stdio.h>

#include "clock.h"
#include "commands.h"
#include "fail.h"
#include "options.h"
#include "percentiles.h"
#include "seen.h"
#include "wire.h"

struct audit {
  const char *type;
  long count;
  struct seen ids, sequences;
  long events, others, distinct, duplicates, violations, gaps, unnumbered;
  int64_t first_ns, last_ns, first_realtime, last_realtime;
  struct samples late_by, received_late;
};

static void note_lateness(struct audit *audit, const struct wire *wire, struct slice type, struct slice body) {
  const char *mark;
  if (slice_is(type, "session.window.opened")) {
    mark = "\"dueAt\":\"";
  } else if (slice_is(type, "session.ended")) {
    mark = "\"endsAt\":\"";
  } else {
    return;
  }
  struct slice late = slice_after(body, "\"lateBy\":");
  double seconds;
  char text[32] = "";
  memcpy(text, late.at ? late.at : "", late.length < sizeof text - 1 ? late.length : sizeof text - 1);
  if (sscanf(text, "%lf", &seconds) == 1) samples_add(&audit->late_by, seconds * 1000);
  struct slice instant = slice_after(body, mark);
  int64_t due;
  if (instant.at && parse_instant(instant.at, instant.length, &due)) {
    samples_add(&audit->received_late, (double)(wire->read_realtime_ns - due) / 1e6);
  }
}

// First copies come in the order of their sequence, without a gap: what is not above the last one and new is a
// violation.
static void note_sequence(struct audit *audit, const struct properties *properties) {
  struct slice room;
  int64_t sequence;
  if (!header_text(properties->headers, "room", &room) ||
      !header_integer(properties->headers, "sequence", &sequence)) {
    audit->unnumbered++;
    return;
  }
  bool is_new;
  int64_t *last = seen_value(&audit->sequences, slice_hash(room), &is_new);
  if (!is_new && sequence <= *last) {
    audit->violations++;
    return;
  }
  if (!is_new) audit->gaps += sequence - *last - 1;
  *last = sequence;
}

static void note_event(struct audit *audit, const struct wire *wire, const struct delivery *delivery) {
  const struct properties *properties = &delivery->properties;
  struct slice type = properties->type.at ? properties->type : delivery->routing_key;
  if (!properties->message_id.at) fail("an event has no id");
  audit->events++;
  if (!seen_add(&audit->ids, slice_hash(properties->message_id))) {
    audit->duplicates++;
    return;
  }
  note_sequence(audit, properties);
  if (audit->type && !slice_is(type, audit->type)) {
    audit->others++;
    return;
  }
  audit->distinct++;
  if (audit->distinct > audit->count) return;
  if (audit->distinct == 1) {
    audit->first_ns = wire->read_monotonic_ns;
    audit->first_realtime = wire->read_realtime_ns;
  }
  audit->last_ns = wire->read_monotonic_ns;
  audit->last_realtime = wire->read_realtime_ns;
  note_lateness(audit, wire, type, delivery->body);
}

static void print_audit(struct audit *audit) {
  char first[INSTANT_LENGTH + 1], last[INSTANT_LENGTH + 1];
  format_instant(audit->first_realtime, first);
  format_instant(audit->last_realtime, last);
  printf("{\"command\":\"audit\",\"complete\":%s,\"events\":%ld,\"distinct\":%ld,\"others\":%ld,\"duplicates\":%ld,"
         "\"orderViolations\":%ld,\"gaps\":%ld,\"withoutSequence\":%ld,\"rooms\":%zu,\"firstNs\":%lld,\"lastNs\":%lld,"
         "\"seconds\":%.6f,\"firstRealtimeNs\":%lld,\"lastRealtimeNs\":%lld,\"first\":\"%s\",\"last\":\"%s\"",
         audit->distinct >= audit->count ? "true" : "false", audit->events, audit->distinct, audit->others,
         audit->duplicates, audit->violations, audit->gaps, audit->unnumbered, audit->sequences.count,
         (long long)audit->first_ns, (long long)audit->last_ns, (double)(audit->last_ns - audit->first_ns) / 1e9,
         (long long)audit->first_realtime, (long long)audit->last_realtime, first, last);
  printf(",\"lateByMs\":");
  samples_print(&audit->late_by);
  printf(",\"receivedLateMs\":");
  samples_print(&audit->received_late);
  printf("}\n");
}

void run_audit(int argc, char **argv) {
  const char *url = NULL, *queue = NULL;
  struct audit audit = {0};
  double timeout = 120, linger = 0.3;
  OPTIONS(argc, argv, {"url", OPTION_TEXT, &url, true}, {"queue", OPTION_TEXT, &queue, true},
          {"count", OPTION_COUNT, &audit.count, true}, {"type", OPTION_TEXT, &audit.type, false},
          {"timeout", OPTION_REAL, &timeout, false}, {"linger", OPTION_REAL, &linger, false});
  amqp_connection_state_t connection = amqp_connect(url);
  amqp_open_channel(connection, 1);
  struct wire wire;
  wire_take(&wire, connection);
  wire_consume(&wire, 1, queue, true);
  struct wire *wires[] = {&wire};
  int64_t end = monotonic_ns() + (int64_t)(timeout * 1e9);
  bool is_complete = false;
  while (monotonic_ns() < end) {
    wire_wait(wires, 1, end);
    struct incoming incoming;
    while (wire_next(&wire, &incoming)) {
      if (incoming.kind == INCOMING_DELIVERY) note_event(&audit, &wire, &incoming.delivery);
    }
    if (!is_complete && audit.distinct >= audit.count) {
      is_complete = true;
      end = monotonic_ns() + (int64_t)(linger * 1e9);
    }
  }
  wire_close(&wire);
  print_audit(&audit);
  if (!is_complete) fail("%ld of %ld events came within %g s", audit.distinct, audit.count, timeout);
}
