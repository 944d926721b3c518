#include "messages.h"

#include <stdio.h>

#include "clock.h"

#define EVENTS SLICE("overtime.events")

// What is being written is used up before the next message is.
static struct buffer body, headers, event_id;

struct slice room_name(struct buffer *buffer, const char *prefix, uint64_t index) {
  char digits[32];
  snprintf(digits, sizeof digits, "%07llu", (unsigned long long)index);
  buffer_clear(buffer);
  put_slice(buffer, slice_of(prefix));
  put_slice(buffer, slice_of(digits));
  return buffer_slice(buffer);
}

static void put_text(struct buffer *buffer, const char *text) { put_slice(buffer, slice_of(text)); }

// Publishes the body as a command.
static void publish_command(struct wire *wire, uint16_t channel, const struct address *address, int64_t realtime) {
  struct properties properties = {
      .content_type = SLICE("application/json"),
      .message_id = address->id,
      .correlation_id = address->id,
      .reply_to = address->reply_to,
      .is_persistent = true,
      .has_timestamp = true,
      .timestamp = (uint64_t)(realtime / SECOND),
  };
  wire_publish(wire, channel, address->exchange, address->room, &properties, buffer_slice(&body));
}

void publish_extend(struct wire *wire, uint16_t channel, const struct address *address, int64_t realtime) {
  buffer_clear(&body);
  PUT_LITERAL(&body, "{\"command\":\"extend\",\"room\":\"");
  put_slice(&body, address->room);
  PUT_LITERAL(&body, "\",\"user\":\"u\",\"minutes\":10}");
  publish_command(wire, channel, address, realtime);
}

void publish_role(struct wire *wire, uint16_t channel, const struct address *address, bool is_viewer, int64_t realtime) {
  buffer_clear(&body);
  PUT_LITERAL(&body, "{\"command\":\"join\",\"room\":\"");
  put_slice(&body, address->room);
  PUT_LITERAL(&body, "\",\"user\":\"u\",\"role\":\"");
  put_text(&body, is_viewer ? "viewer" : "participant");
  PUT_LITERAL(&body, "\"}");
  publish_command(wire, channel, address, realtime);
}

// The part of an event that all types share, up to the session's number.
static void begin_event(struct slice type, struct slice room, int64_t sequence, const char *time) {
  buffer_clear(&event_id);
  put_slice(&event_id, room);
  PUT_LITERAL(&event_id, ":");
  put_decimal(&event_id, (uint64_t)sequence);

  buffer_clear(&body);
  PUT_LITERAL(&body, "{\"specversion\":\"1.0\",\"id\":\"");
  put_slice(&body, buffer_slice(&event_id));
  PUT_LITERAL(&body, "\",\"source\":\"overtime\",\"type\":\"");
  put_slice(&body, type);
  PUT_LITERAL(&body, "\",\"subject\":\"");
  put_slice(&body, room);
  PUT_LITERAL(&body, "\",\"time\":\"");
  put_text(&body, time);
  PUT_LITERAL(&body, "\",\"datacontenttype\":\"application/json\",\"sequence\":\"");
  put_decimal(&body, (uint64_t)sequence);
  PUT_LITERAL(&body, "\",\"data\":{\"room\":\"");
  put_slice(&body, room);
  PUT_LITERAL(&body, "\",\"session\":1,\"audience\":\"room\"");
}

static void end_event(struct wire *wire, uint16_t channel, struct slice type, struct slice room, int64_t sequence,
                      int64_t realtime) {
  PUT_LITERAL(&body, "}}");
  buffer_clear(&headers);
  PUT_LITERAL(&headers, "\4roomS");
  put_u32(&headers, (uint32_t)room.length);
  put_slice(&headers, room);
  PUT_LITERAL(&headers, "\10sequencel");
  put_u64(&headers, (uint64_t)sequence);
  struct properties properties = {
      .content_type = SLICE("application/cloudevents+json"),
      .headers = buffer_slice(&headers),
      .message_id = buffer_slice(&event_id),
      .type = type,
      .app_id = SLICE("overtime"),
      .is_persistent = true,
      .has_timestamp = true,
      .timestamp = (uint64_t)(realtime / SECOND),
  };
  wire_publish(wire, channel, EVENTS, type, &properties, buffer_slice(&body));
}

void publish_extended(struct wire *wire, uint16_t channel, const struct extension *extension) {
  struct slice type = SLICE("session.extended");
  begin_event(type, extension->room, extension->sequence, extension->now);
  PUT_LITERAL(&body, ",\"extendedTime\":10,\"by\":\"u\",\"previousEndsAt\":\"");
  put_text(&body, extension->previous_ends_at);
  PUT_LITERAL(&body, "\",\"endsAt\":\"");
  put_text(&body, extension->ends_at);
  PUT_LITERAL(&body, "\",\"nextDueAt\":\"");
  put_text(&body, extension->next_due_at);
  PUT_LITERAL(&body, "\",\"extensions\":");
  put_decimal(&body, (uint64_t)extension->extensions);
  end_event(wire, channel, type, extension->room, extension->sequence, extension->now_realtime);
}

void publish_reply(struct wire *wire, uint16_t channel, struct slice reply_to, struct slice id,
                   struct slice correlation_id, const struct extension *extension) {
  buffer_clear(&body);
  PUT_LITERAL(&body, "{\"id\":\"");
  put_slice(&body, id);
  PUT_LITERAL(&body, "\",\"command\":\"extend\",\"room\":\"");
  put_slice(&body, extension->room);
  PUT_LITERAL(&body, "\",\"ok\":true,\"result\":{\"extendedTime\":10,\"endsAt\":\"");
  put_text(&body, extension->ends_at);
  PUT_LITERAL(&body, "\",\"extensions\":");
  put_decimal(&body, (uint64_t)extension->extensions);
  PUT_LITERAL(&body, "},\"session\":{\"number\":1,\"state\":\"running\",\"startedAt\":\"");
  put_text(&body, extension->started_at);
  PUT_LITERAL(&body, "\",\"endsAt\":\"");
  put_text(&body, extension->ends_at);
  PUT_LITERAL(&body, "\",\"timeLeft\":10.0249,\"window\":null,\"nextWindowAt\":\"");
  put_text(&body, extension->next_due_at);
  PUT_LITERAL(&body, "\",\"extensions\":");
  put_decimal(&body, (uint64_t)extension->extensions);
  PUT_LITERAL(&body, ",\"connected\":1},\"sequence\":");
  put_decimal(&body, (uint64_t)extension->sequence);
  PUT_LITERAL(&body, ",\"serverTime\":\"");
  put_text(&body, extension->now);
  PUT_LITERAL(&body, "\"}");
  struct properties properties = {
      .content_type = SLICE("application/json"),
      .correlation_id = correlation_id,
      .app_id = SLICE("overtime"),
      .is_persistent = true,
  };
  wire_publish(wire, channel, SLICE(""), reply_to, &properties, buffer_slice(&body));
}

void publish_window(struct wire *wire, uint16_t channel, struct slice room, int64_t sequence, int64_t due_realtime,
                    int64_t now_realtime) {
  struct slice type = SLICE("session.window.opened");
  char now[INSTANT_LENGTH + 1], due[INSTANT_LENGTH + 1], end[INSTANT_LENGTH + 1];
  format_instant(now_realtime, now);
  format_instant(due_realtime, due);
  format_instant(due_realtime + 600 * SECOND, end);
  begin_event(type, room, sequence, now);
  PUT_LITERAL(&body, ",\"timeLeft\":9.9999,\"window\":1,\"final\":true,\"extendable\":true,\"extensions\":0,");
  PUT_LITERAL(&body, "\"endsAt\":\"");
  put_text(&body, end);
  PUT_LITERAL(&body, "\",\"nextDueAt\":\"");
  put_text(&body, end);
  PUT_LITERAL(&body, "\",\"dueAt\":\"");
  put_text(&body, due);
  char late[64];
  // In whole milliseconds, as the worker writes it.
  int64_t late_ms = now_realtime / MILLISECOND - due_realtime / MILLISECOND;
  snprintf(late, sizeof late, "\",\"lateBy\":%.12g", (double)(late_ms > 0 ? late_ms : 0) / 1000);
  put_text(&body, late);
  end_event(wire, channel, type, room, sequence, now_realtime);
}
