#define _GNU_SOURCE
#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "fail.h"

#define METHOD(class_, method_) ((uint32_t)(class_) << 16 | (method_))

enum { FRAME_METHOD = 1, FRAME_HEADER = 2, FRAME_BODY = 3, FRAME_HEARTBEAT = 8, FRAME_END = 0xCE };
// Around a payload: type, channel and length before it, one byte after it.
enum { FRAME_BEFORE = 7, FRAME_AROUND = 8 };
enum { READ_AT_ONCE = 1 << 19 };

static const uint32_t connection_close = METHOD(10, 50), connection_close_ok = METHOD(10, 51);
static const uint32_t channel_close = METHOD(20, 40);
static const uint32_t basic_qos = METHOD(60, 10), basic_qos_ok = METHOD(60, 11), basic_consume = METHOD(60, 20);
static const uint32_t basic_cancel = METHOD(60, 30), basic_publish = METHOD(60, 40), basic_return = METHOD(60, 50);
static const uint32_t basic_deliver = METHOD(60, 60), basic_ack = METHOD(60, 80), basic_nack = METHOD(60, 120);

enum {
  HAS_CONTENT_TYPE = 1 << 15,
  HAS_CONTENT_ENCODING = 1 << 14,
  HAS_HEADERS = 1 << 13,
  HAS_DELIVERY_MODE = 1 << 12,
  HAS_PRIORITY = 1 << 11,
  HAS_CORRELATION_ID = 1 << 10,
  HAS_REPLY_TO = 1 << 9,
  HAS_EXPIRATION = 1 << 8,
  HAS_MESSAGE_ID = 1 << 7,
  HAS_TIMESTAMP = 1 << 6,
  HAS_TYPE = 1 << 5,
  HAS_USER_ID = 1 << 4,
  HAS_APP_ID = 1 << 3,
};

void wire_take(struct wire *wire, amqp_connection_state_t connection) {
  if (amqp_data_in_buffer(connection) || amqp_frames_enqueued(connection)) fail("frames are left in librabbitmq");
  *wire = (struct wire){.connection = connection, .fd = amqp_get_sockfd(connection)};
  if (wire->fd < 0) fail("the connection has no socket");
}

// Writing

static size_t begin_frame(struct buffer *out, uint8_t type, uint16_t channel) {
  put_u8(out, type);
  put_u16(out, channel);
  put_u32(out, 0);
  return out->end - out->start;
}

static void end_frame(struct buffer *out, size_t begin) {
  size_t at = out->start + begin;
  patch_u32(out, at - 4, (uint32_t)(out->end - at));
  put_u8(out, FRAME_END);
}

static void put_short_string(struct buffer *out, struct slice text) {
  if (text.length > 255) fail("a name is longer than 255 bytes");
  put_u8(out, (uint8_t)text.length);
  put_slice(out, text);
}

static void put_properties(struct buffer *out, const struct properties *properties) {
  unsigned flags = 0;
  if (properties->content_type.at) flags |= HAS_CONTENT_TYPE;
  if (properties->headers.at) flags |= HAS_HEADERS;
  if (properties->is_persistent) flags |= HAS_DELIVERY_MODE;
  if (properties->correlation_id.at) flags |= HAS_CORRELATION_ID;
  if (properties->reply_to.at) flags |= HAS_REPLY_TO;
  if (properties->message_id.at) flags |= HAS_MESSAGE_ID;
  if (properties->has_timestamp) flags |= HAS_TIMESTAMP;
  if (properties->type.at) flags |= HAS_TYPE;
  if (properties->app_id.at) flags |= HAS_APP_ID;
  put_u16(out, (uint16_t)flags);
  if (flags & HAS_CONTENT_TYPE) put_short_string(out, properties->content_type);
  if (flags & HAS_HEADERS) {
    put_u32(out, (uint32_t)properties->headers.length);
    put_slice(out, properties->headers);
  }
  if (flags & HAS_DELIVERY_MODE) put_u8(out, 2);
  if (flags & HAS_CORRELATION_ID) put_short_string(out, properties->correlation_id);
  if (flags & HAS_REPLY_TO) put_short_string(out, properties->reply_to);
  if (flags & HAS_MESSAGE_ID) put_short_string(out, properties->message_id);
  if (flags & HAS_TIMESTAMP) put_u64(out, properties->timestamp);
  if (flags & HAS_TYPE) put_short_string(out, properties->type);
  if (flags & HAS_APP_ID) put_short_string(out, properties->app_id);
}

void wire_publish(struct wire *wire, uint16_t channel, struct slice exchange, struct slice routing_key,
                  const struct properties *properties, struct slice body) {
  struct buffer *out = &wire->out;
  size_t begin = begin_frame(out, FRAME_METHOD, channel);
  put_u32(out, basic_publish);
  put_u16(out, 0);
  put_short_string(out, exchange);
  put_short_string(out, routing_key);
  put_u8(out, 0);
  end_frame(out, begin);

  begin = begin_frame(out, FRAME_HEADER, channel);
  put_u32(out, METHOD(60, 0));
  put_u64(out, body.length);
  put_properties(out, properties);
  end_frame(out, begin);

  begin = begin_frame(out, FRAME_BODY, channel);
  put_slice(out, body);
  end_frame(out, begin);
}

void wire_ack(struct wire *wire, uint16_t channel, uint64_t tag, bool is_multiple) {
  size_t begin = begin_frame(&wire->out, FRAME_METHOD, channel);
  put_u32(&wire->out, basic_ack);
  put_u64(&wire->out, tag);
  put_u8(&wire->out, is_multiple);
  end_frame(&wire->out, begin);
}

void wire_consume(struct wire *wire, uint16_t channel, const char *queue, bool no_ack) {
  enum { NO_ACK = 2, NO_WAIT = 8 };
  size_t begin = begin_frame(&wire->out, FRAME_METHOD, channel);
  put_u32(&wire->out, basic_consume);
  put_u16(&wire->out, 0);
  put_short_string(&wire->out, slice_of(queue));
  put_short_string(&wire->out, SLICE("bench"));
  put_u8(&wire->out, (no_ack ? NO_ACK : 0) | NO_WAIT);
  put_u32(&wire->out, 0);
  end_frame(&wire->out, begin);
}

void wire_flush(struct wire *wire) {
  struct buffer *out = &wire->out;
  while (buffer_length(out) > 0) {
    ssize_t sent = send(wire->fd, out->data + out->start, buffer_length(out), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) fail("writing to the broker: %s", strerror(errno));
    out->start += (size_t)sent;
  }
  buffer_clear(out);
}

// Reading

static void read_available(struct wire *wire) {
  struct buffer *in = &wire->in;
  if (in->start == in->end) buffer_clear(in);
  if (in->capacity - in->end < READ_AT_ONCE / 2) buffer_reserve(in, READ_AT_ONCE);
  ssize_t got;
  do {
    got = recv(wire->fd, in->data + in->end, in->capacity - in->end, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return;
  if (got < 0) fail("reading from the broker: %s", strerror(errno));
  if (got == 0) fail("the broker has closed the connection");
  in->end += (size_t)got;
  wire->read_monotonic_ns = monotonic_ns();
  wire->read_realtime_ns = realtime_ns();
}

bool wire_wait(struct wire *const *wires, int count, int64_t until) {
  struct pollfd polled[4];
  if (count > 4) fail("too many connections");
  for (int i = 0; i < count; i++) {
    wire_flush(wires[i]);
    polled[i] = (struct pollfd){.fd = wires[i]->fd, .events = POLLIN};
    if (buffer_length(&wires[i]->out) > 0) polled[i].events |= POLLOUT;
  }
  int64_t left = until - monotonic_ns();
  if (left < 0) left = 0;
  struct timespec limit = {left / SECOND, left % SECOND};
  int ready = ppoll(polled, (nfds_t)count, &limit, NULL);
  if (ready < 0 && errno != EINTR) fail("waiting for the broker: %s", strerror(errno));
  if (ready <= 0) return false;
  for (int i = 0; i < count; i++) {
    if (polled[i].revents & POLLOUT) wire_flush(wires[i]);
    if (polled[i].revents & ~POLLOUT) read_available(wires[i]);
  }
  return true;
}

struct frame {
  uint8_t type;
  uint16_t channel;
  struct slice payload;
  size_t end;
};

static bool peek_frame(const struct wire *wire, size_t at, struct frame *frame) {
  const struct buffer *in = &wire->in;
  if (in->end - at < FRAME_BEFORE) return false;
  const char *bytes = in->data + at;
  uint32_t length = get_u32(bytes + 3);
  if (length > AMQP_DEFAULT_FRAME_SIZE) fail("the broker sent a frame of %u bytes", length);
  if (in->end - at < (size_t)FRAME_AROUND + length) return false;
  if ((uint8_t)bytes[FRAME_BEFORE + length] != FRAME_END) fail("the broker sent a malformed frame");
  *frame = (struct frame){(uint8_t)bytes[0], get_u16(bytes + 1), {bytes + FRAME_BEFORE, length},
                          at + FRAME_AROUND + length};
  return true;
}

// What is left to be read of a payload.
struct reader {
  const char *at, *end;
};

static const char *take(struct reader *reader, size_t count) {
  if ((size_t)(reader->end - reader->at) < count) fail("the broker sent a payload that is too short");
  const char *at = reader->at;
  reader->at += count;
  return at;
}

static uint8_t take_u8(struct reader *reader) { return (uint8_t)*take(reader, 1); }
static uint64_t take_u64(struct reader *reader) { return get_u64(take(reader, 8)); }

static struct slice take_short_string(struct reader *reader) {
  size_t length = take_u8(reader);
  return (struct slice){take(reader, length), length};
}

static void take_properties(struct reader *reader, struct properties *properties) {
  unsigned flags = get_u16(take(reader, 2));
  *properties = (struct properties){0};
  if (flags & HAS_CONTENT_TYPE) properties->content_type = take_short_string(reader);
  if (flags & HAS_CONTENT_ENCODING) take_short_string(reader);
  if (flags & HAS_HEADERS) {
    size_t length = get_u32(take(reader, 4));
    properties->headers = (struct slice){take(reader, length), length};
  }
  if (flags & HAS_DELIVERY_MODE) properties->is_persistent = take_u8(reader) == 2;
  if (flags & HAS_PRIORITY) take_u8(reader);
  if (flags & HAS_CORRELATION_ID) properties->correlation_id = take_short_string(reader);
  if (flags & HAS_REPLY_TO) properties->reply_to = take_short_string(reader);
  if (flags & HAS_EXPIRATION) take_short_string(reader);
  if (flags & HAS_MESSAGE_ID) properties->message_id = take_short_string(reader);
  if (flags & HAS_TIMESTAMP) {
    properties->has_timestamp = true;
    properties->timestamp = take_u64(reader);
  }
  if (flags & HAS_TYPE) properties->type = take_short_string(reader);
  if (flags & HAS_USER_ID) take_short_string(reader);
  if (flags & HAS_APP_ID) properties->app_id = take_short_string(reader);
}

// The frames of a delivery follow each other: no other channel of the connection is sent anything in between.
static bool take_delivery(struct wire *wire, struct reader *method, const struct frame *first,
                          struct delivery *delivery) {
  struct frame header, body;
  if (!peek_frame(wire, first->end, &header)) return false;
  if (header.type != FRAME_HEADER || header.channel != first->channel) fail("the broker sent no header");
  struct reader reader = {header.payload.at, header.payload.at + header.payload.length};
  take(&reader, 4);
  uint64_t size = take_u64(&reader);
  size_t end = header.end;
  delivery->body = (struct slice){"", 0};
  if (size > 0) {
    if (!peek_frame(wire, header.end, &body)) return false;
    if (body.type != FRAME_BODY || body.channel != first->channel || body.payload.length != size)
      fail("a body of %llu bytes is not in one frame", (unsigned long long)size);
    delivery->body = body.payload;
    end = body.end;
  }
  take_short_string(method);
  delivery->tag = take_u64(method);
  delivery->is_redelivered = take_u8(method) & 1;
  delivery->exchange = take_short_string(method);
  delivery->routing_key = take_short_string(method);
  take_properties(&reader, &delivery->properties);
  wire->in.start = end;
  return true;
}

bool wire_next(struct wire *wire, struct incoming *incoming) {
  struct frame frame;
  do {
    if (!peek_frame(wire, wire->in.start, &frame)) return false;
    if (frame.type == FRAME_HEARTBEAT) wire->in.start = frame.end;
  } while (frame.type == FRAME_HEARTBEAT);
  if (frame.type != FRAME_METHOD) fail("the broker sent a frame of type %d", frame.type);

  struct reader reader = {frame.payload.at, frame.payload.at + frame.payload.length};
  uint32_t method = get_u32(take(&reader, 4));
  incoming->channel = frame.channel;
  incoming->method = method;
  if (method == basic_deliver) {
    incoming->kind = INCOMING_DELIVERY;
    return take_delivery(wire, &reader, &frame, &incoming->delivery);
  }
  wire->in.start = frame.end;
  if (method == basic_ack || method == basic_nack) {
    incoming->kind = method == basic_ack ? INCOMING_ACK : INCOMING_NACK;
    incoming->tag = take_u64(&reader);
    incoming->is_multiple = take_u8(&reader) & 1;
    return true;
  }
  if (method == connection_close || method == channel_close) {
    take(&reader, 2);
    struct slice text = take_short_string(&reader);
    fail("the broker closed the %s: %.*s", method == channel_close ? "channel" : "connection", (int)text.length,
         text.at);
  }
  if (method == basic_cancel) fail("the broker cancelled the consumer");
  if (method == basic_return) fail("the broker returned a message");
  incoming->kind = INCOMING_METHOD;
  return true;
}

// Ending

// Waits for that method, and lets everything else pass.
static bool await_method(struct wire *wire, uint32_t method) {
  int64_t until = monotonic_ns() + 10 * SECOND;
  struct incoming incoming;
  for (;;) {
    while (wire_next(wire, &incoming)) {
      if (incoming.kind == INCOMING_METHOD && incoming.method == method) return true;
    }
    struct wire *wires[] = {wire};
    if (!wire_wait(wires, 1, until) && monotonic_ns() >= until) return false;
  }
}

void wire_close(struct wire *wire) {
  // A question on the channel is answered after everything sent on it before, acknowledgements included.
  size_t begin = begin_frame(&wire->out, FRAME_METHOD, 1);
  put_u32(&wire->out, basic_qos);
  put_u32(&wire->out, 0);
  put_u16(&wire->out, 0);
  put_u8(&wire->out, 0);
  end_frame(&wire->out, begin);
  if (!await_method(wire, basic_qos_ok)) fail("the broker does not answer");

  begin = begin_frame(&wire->out, FRAME_METHOD, 0);
  put_u32(&wire->out, connection_close);
  put_u16(&wire->out, 200);
  put_short_string(&wire->out, SLICE("done"));
  put_u32(&wire->out, 0);
  end_frame(&wire->out, begin);
  if (!await_method(wire, connection_close_ok)) fail("the broker does not close the connection");
  amqp_destroy_connection(wire->connection);
}

// Headers

// The length of a value of that kind; the contract's headers are texts and integers.
static size_t value_length(struct reader reader, char kind) {
  switch (kind) {
  case 't':
  case 'b':
  case 'B':
    return 1;
  case 's':
  case 'u':
    return 2;
  case 'I':
  case 'i':
  case 'f':
    return 4;
  case 'l':
  case 'L':
  case 'd':
  case 'T':
    return 8;
  case 'D':
    return 5;
  case 'V':
    return 0;
  case 'S':
  case 'x':
  case 'A':
  case 'F':
    return (size_t)4 + get_u32(take(&reader, 4));
  default:
    fail("a header of kind %c", kind);
  }
}

static bool find_header(struct slice headers, const char *name, char *kind, struct reader *value) {
  struct reader reader = {headers.at, headers.at + headers.length};
  while (reader.at < reader.end) {
    struct slice key = take_short_string(&reader);
    *kind = (char)take_u8(&reader);
    size_t length = value_length(reader, *kind);
    const char *at = take(&reader, length);
    *value = (struct reader){at, at + length};
    if (slice_is(key, name)) return true;
  }
  return false;
}

bool header_integer(struct slice headers, const char *name, int64_t *value) {
  char kind;
  struct reader reader;
  if (!headers.at || !find_header(headers, name, &kind, &reader)) return false;
  switch (kind) {
  case 'b':
    *value = (int8_t)take_u8(&reader);
    return true;
  case 'B':
    *value = take_u8(&reader);
    return true;
  case 's':
    *value = (int16_t)get_u16(take(&reader, 2));
    return true;
  case 'I':
    *value = (int32_t)get_u32(take(&reader, 4));
    return true;
  case 'l':
  case 'L':
    *value = (int64_t)take_u64(&reader);
    return true;
  default:
    return false;
  }
}

bool header_text(struct slice headers, const char *name, struct slice *value) {
  char kind;
  struct reader reader;
  if (!headers.at || !find_header(headers, name, &kind, &reader) || kind != 'S') return false;
  *value = (struct slice){reader.at + 4, (size_t)(reader.end - reader.at) - 4};
  return true;
}
