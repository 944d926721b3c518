#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "amqp_connect.h"
#include "bytes.h"

// AMQP 0-9-1 frames straight to and from the socket, for what is done many times a second. librabbitmq writes each
// frame with a system call of its own and allocates for each that it reads; here many are written and read in one call.
// Connecting, declaring and everything else that happens once is librabbitmq's, before `wire_take`.
struct wire {
  amqp_connection_state_t connection;
  int fd;
  struct buffer out, in;
  // When bytes last came in.
  int64_t read_monotonic_ns, read_realtime_ns;
};

// Of each property `at` is NULL where it is absent.
struct properties {
  struct slice content_type, correlation_id, reply_to, message_id, type, app_id;
  // The entries of the table, encoded.
  struct slice headers;
  uint64_t timestamp;
  bool is_persistent, has_timestamp;
};

struct delivery {
  uint64_t tag;
  bool is_redelivered;
  struct slice exchange, routing_key, body;
  struct properties properties;
};

// What the broker says; slices hold until the next read.
struct incoming {
  enum { INCOMING_DELIVERY, INCOMING_ACK, INCOMING_NACK, INCOMING_METHOD } kind;
  uint16_t channel;
  uint32_t method;
  // Of an ack or nack.
  uint64_t tag;
  bool is_multiple;
  struct delivery delivery;
};

// Takes a connection over from librabbitmq, which must not be used with it any more.
void wire_take(struct wire *wire, amqp_connection_state_t connection);

// These put frames into the buffer; nothing is sent before `wire_flush` or `wire_wait`.
void wire_publish(struct wire *wire, uint16_t channel, struct slice exchange, struct slice routing_key,
                  const struct properties *properties, struct slice body);
void wire_ack(struct wire *wire, uint16_t channel, uint64_t tag, bool is_multiple);
void wire_consume(struct wire *wire, uint16_t channel, const char *queue, bool no_ack);

// Sends what fits into the socket without waiting.
void wire_flush(struct wire *wire);

// Waits until one of them has something to read or to write and does both, or until `until` on the monotonic clock.
// False where nothing happened until then.
bool wire_wait(struct wire *const *wires, int count, int64_t until);

// The next thing that is completely there. An error from the broker ends the program.
bool wire_next(struct wire *wire, struct incoming *incoming);

// Sends what is left, waits until the broker has done all of it, and closes.
void wire_close(struct wire *wire);

// The integer or text of that name in encoded headers.
bool header_integer(struct slice headers, const char *name, int64_t *value);
bool header_text(struct slice headers, const char *name, struct slice *value);

#endif
