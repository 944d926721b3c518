#include "ledger.h"

#include <stdlib.h>

#include "clock.h"
#include "fail.h"

void ledger_open(struct ledger *ledger) {
  *ledger = (struct ledger){.is_confirmed = calloc(LEDGER_LIMIT, 1)};
  if (!ledger->is_confirmed) fail("out of memory");
}

void ledger_select(amqp_connection_state_t connection, amqp_channel_t channel) {
  amqp_confirm_select(connection, channel);
  amqp_check(connection, "switching to confirms");
}

static void confirm(struct ledger *ledger, uint64_t tag, bool is_multiple) {
  if (tag > ledger->published) fail("the broker confirmed what was not published");
  if (is_multiple) {
    for (; ledger->confirmed < tag; ledger->confirmed++) {
      ledger->is_confirmed[(ledger->confirmed + 1) % LEDGER_LIMIT] = 0;
    }
  } else if (tag > ledger->confirmed) {
    ledger->is_confirmed[tag % LEDGER_LIMIT] = 1;
  }
  while (ledger->confirmed < ledger->published && ledger->is_confirmed[(ledger->confirmed + 1) % LEDGER_LIMIT]) {
    ledger->confirmed++;
    ledger->is_confirmed[ledger->confirmed % LEDGER_LIMIT] = 0;
  }
}

void ledger_take(struct wire *wire, struct ledger *const *ledgers, int count) {
  struct incoming incoming;
  while (wire_next(wire, &incoming)) {
    if (incoming.kind == INCOMING_METHOD) continue;
    if (incoming.channel < 1 || incoming.channel > count) fail("the broker spoke on channel %d", incoming.channel);
    if (incoming.kind == INCOMING_NACK) fail("the broker refused a message");
    if (incoming.kind == INCOMING_ACK) confirm(ledgers[incoming.channel - 1], incoming.tag, incoming.is_multiple);
  }
}

void ledger_drain(struct wire *wire, struct ledger *ledger, int seconds) {
  struct wire *wires[] = {wire};
  struct ledger *ledgers[] = {ledger};
  int64_t until = monotonic_ns() + seconds * SECOND;
  while (ledger_outstanding(ledger) > 0) {
    uint64_t before = ledger->confirmed;
    wire_wait(wires, 1, until);
    ledger_take(wire, ledgers, 1);
    if (ledger->confirmed > before) until = monotonic_ns() + seconds * SECOND;
    if (monotonic_ns() >= until)
      fail("%llu messages were not confirmed", (unsigned long long)ledger_outstanding(ledger));
  }
}
