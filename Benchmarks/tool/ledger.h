#ifndef BENCH_LEDGER_H
#define BENCH_LEDGER_H

#include <stdint.h>

#include "wire.h"

// What of a channel's publications the broker has confirmed.
struct ledger {
  // The tags of the last published one and of the last one up to which all are confirmed.
  uint64_t published, confirmed;
  // One byte for each tag after `confirmed`, at the tag modulo LEDGER_LIMIT.
  uint8_t *is_confirmed;
};

// More must never be outstanding.
enum { LEDGER_LIMIT = 1 << 17 };

void ledger_open(struct ledger *ledger);

// Switches a channel to confirms; while the connection is still librabbitmq's.
void ledger_select(amqp_connection_state_t connection, amqp_channel_t channel);

static inline uint64_t ledger_outstanding(const struct ledger *ledger) { return ledger->published - ledger->confirmed; }

// Takes all confirms that have arrived; channel c's go to ledgers[c - 1]. A refusal ends the program.
void ledger_take(struct wire *wire, struct ledger *const *ledgers, int count);

// Waits until all is confirmed, at most `seconds` without a step.
void ledger_drain(struct wire *wire, struct ledger *ledger, int seconds);

#endif
