// The worker that one writes first: one command at a time, a transaction for each, and for each publication its
// confirm before the next step.
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "commands.h"
#include "fail.h"
#include "ledger.h"
#include "messages.h"
#include "options.h"

enum { CONFIRM_SECONDS = 30 };

// The store

struct store {
  sqlite3 *database;
  sqlite3_stmt *begin, *commit, *select_room, *update_room, *insert_id;
};

struct room_row {
  int64_t started_at_ms, ends_at_ms, extensions, sequence;
};

static void check(const struct store *store, int code, const char *what) {
  if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE)
    fail("%s: %s", what, sqlite3_errmsg(store->database));
}

static void execute(struct store *store, const char *sql) {
  check(store, sqlite3_exec(store->database, sql, NULL, NULL, NULL), sql);
}

static sqlite3_stmt *prepare(struct store *store, const char *sql) {
  sqlite3_stmt *statement = NULL;
  check(store, sqlite3_prepare_v3(store->database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL), sql);
  return statement;
}

static void step(struct store *store, sqlite3_stmt *statement) {
  check(store, sqlite3_step(statement), sqlite3_sql(statement));
  sqlite3_reset(statement);
}

static void bind_text(sqlite3_stmt *statement, int at, struct slice text) {
  sqlite3_bind_text(statement, at, text.at, (int)text.length, SQLITE_STATIC);
}

static void store_open(struct store *store, const char *file) {
  if (sqlite3_open(file, &store->database) != SQLITE_OK) fail("opening %s: %s", file, sqlite3_errmsg(store->database));
  sqlite3_busy_timeout(store->database, 5000);
  execute(store, "PRAGMA journal_mode = WAL");
  execute(store, "PRAGMA synchronous = FULL");
  execute(store, "CREATE TABLE IF NOT EXISTS rooms (id TEXT PRIMARY KEY, started_at INTEGER NOT NULL, "
                 "ends_at INTEGER NOT NULL, extensions INTEGER NOT NULL, sequence INTEGER NOT NULL, "
                 "user TEXT NOT NULL)");
  execute(store, "CREATE TABLE IF NOT EXISTS commands (id TEXT PRIMARY KEY, room TEXT NOT NULL, "
                 "at INTEGER NOT NULL)");
  store->begin = prepare(store, "BEGIN IMMEDIATE");
  store->commit = prepare(store, "COMMIT");
  store->select_room = prepare(store, "SELECT started_at, ends_at, extensions, sequence FROM rooms WHERE id = ?");
  store->update_room = prepare(store, "UPDATE rooms SET ends_at = ?, extensions = ?, sequence = ? WHERE id = ?");
  store->insert_id = prepare(store, "INSERT OR IGNORE INTO commands (id, room, at) VALUES (?, ?, ?)");
}

static void store_close(struct store *store) {
  sqlite3_stmt *statements[] = {store->begin, store->commit, store->select_room, store->update_room, store->insert_id};
  for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) sqlite3_finalize(statements[i]);
  sqlite3_close(store->database);
}

// Rooms whose session ends in five minutes, where they are not there yet.
static void store_prepare(struct store *store, const char *prefix, long rooms) {
  static struct buffer name;
  int64_t now = realtime_ns() / MILLISECOND;
  sqlite3_stmt *insert = prepare(store, "INSERT OR IGNORE INTO rooms VALUES (?, ?, ?, 0, 4, 'u')");
  step(store, store->begin);
  for (long i = 0; i < rooms; i++) {
    bind_text(insert, 1, room_name(&name, prefix, (uint64_t)i));
    sqlite3_bind_int64(insert, 2, now);
    sqlite3_bind_int64(insert, 3, now + 300000);
    step(store, insert);
  }
  step(store, store->commit);
  sqlite3_finalize(insert);
}

static bool load_room(struct store *store, struct slice room, struct room_row *row) {
  bind_text(store->select_room, 1, room);
  int code = sqlite3_step(store->select_room);
  check(store, code, "reading a room");
  if (code == SQLITE_ROW) {
    *row = (struct room_row){
        sqlite3_column_int64(store->select_room, 0), sqlite3_column_int64(store->select_room, 1),
        sqlite3_column_int64(store->select_room, 2), sqlite3_column_int64(store->select_room, 3)};
  }
  sqlite3_reset(store->select_room);
  return code == SQLITE_ROW;
}

// True where the id is new, and the extension therefore made; either way `row` is how the room is now.
static bool extend(struct store *store, struct slice room, struct slice id, int64_t grant_ms, struct room_row *row) {
  step(store, store->begin);
  if (!load_room(store, room, row)) fail("there is no room %.*s", (int)room.length, room.at);
  bind_text(store->insert_id, 1, id);
  bind_text(store->insert_id, 2, room);
  sqlite3_bind_int64(store->insert_id, 3, realtime_ns() / MILLISECOND);
  step(store, store->insert_id);
  bool is_new = sqlite3_changes(store->database) == 1;
  if (is_new) {
    row->ends_at_ms += grant_ms;
    row->extensions++;
    row->sequence++;
    sqlite3_bind_int64(store->update_room, 1, row->ends_at_ms);
    sqlite3_bind_int64(store->update_room, 2, row->extensions);
    sqlite3_bind_int64(store->update_room, 3, row->sequence);
    bind_text(store->update_room, 4, room);
    step(store, store->update_room);
  }
  step(store, store->commit);
  return is_new;
}

// The worker

struct plain {
  struct wire consumer, publisher;
  struct ledger confirms;
  struct store store;
};

static void open_connections(struct plain *plain, const char *url, const char *queue, long prefetch) {
  amqp_connection_state_t connection = amqp_connect(url);
  amqp_open_channel(connection, 1);
  ledger_select(connection, 1);
  wire_take(&plain->publisher, connection);
  ledger_open(&plain->confirms);

  connection = amqp_connect(url);
  amqp_open_channel(connection, 1);
  amqp_basic_qos(connection, 1, 0, (uint16_t)prefetch, 0);
  amqp_check(connection, "setting the prefetch");
  wire_take(&plain->consumer, connection);
  wire_consume(&plain->consumer, 1, queue, false);
}

static struct slice text_field(struct slice body, const char *mark) {
  struct slice value = slice_after(body, mark);
  const char *end = value.at ? memchr(value.at, '"', value.length) : NULL;
  if (!end) fail("a command has no %s", mark);
  return (struct slice){value.at, (size_t)(end - value.at)};
}

static void confirm(struct plain *plain) {
  plain->confirms.published++;
  wire_flush(&plain->publisher);
  ledger_drain(&plain->publisher, &plain->confirms, CONFIRM_SECONDS);
}

static void handle(struct plain *plain, const struct delivery *delivery) {
  const struct properties *properties = &delivery->properties;
  if (!slice_is(text_field(delivery->body, "\"command\":\""), "extend")) fail("a command is not extend");
  struct slice room = text_field(delivery->body, "\"room\":\"");
  struct slice minutes = slice_after(delivery->body, "\"minutes\":");
  int64_t grant_ms = minutes.at ? strtol(minutes.at, NULL, 10) * 60000 : 0;

  int64_t now = realtime_ns();
  struct room_row row;
  bool is_new = extend(&plain->store, room, properties->message_id, grant_ms, &row);

  char now_text[INSTANT_LENGTH + 1], started_at[INSTANT_LENGTH + 1], previous[INSTANT_LENGTH + 1];
  char ends_at[INSTANT_LENGTH + 1], next[INSTANT_LENGTH + 1];
  format_instant(now, now_text);
  format_instant(row.started_at_ms * MILLISECOND, started_at);
  format_instant((row.ends_at_ms - grant_ms) * MILLISECOND, previous);
  format_instant(row.ends_at_ms * MILLISECOND, ends_at);
  format_instant((row.ends_at_ms - 300000) * MILLISECOND, next);
  struct extension extension = {room, row.sequence, row.extensions, started_at, previous, ends_at, next, now_text, now};
  if (is_new) {
    publish_extended(&plain->publisher, 1, &extension);
    confirm(plain);
  }
  if (properties->reply_to.at) {
    publish_reply(&plain->publisher, 1, properties->reply_to, properties->message_id, properties->correlation_id,
                  &extension);
    confirm(plain);
  }
  wire_ack(&plain->consumer, 1, delivery->tag, false);
  wire_flush(&plain->consumer);
}

void run_plain(int argc, char **argv) {
  const char *url = NULL, *queue = "overtime.commands", *file = NULL, *prefix = "room-";
  long count = 0, prefetch = 50, rooms = 0;
  double timeout = 600;
  OPTIONS(argc, argv, {"url", OPTION_TEXT, &url, true}, {"queue", OPTION_TEXT, &queue, false},
          {"count", OPTION_COUNT, &count, true}, {"store", OPTION_TEXT, &file, true},
          {"prefetch", OPTION_COUNT, &prefetch, false}, {"rooms", OPTION_COUNT, &rooms, false},
          {"room-prefix", OPTION_TEXT, &prefix, false}, {"timeout", OPTION_REAL, &timeout, false});
  if (prefetch < 1 || prefetch > 65535) fail("--prefetch must be from 1 to 65535");
  struct plain plain = {0};
  store_open(&plain.store, file);
  store_prepare(&plain.store, prefix, rooms);
  open_connections(&plain, url, queue, prefetch);

  struct wire *wires[] = {&plain.consumer};
  int64_t first = 0, end = monotonic_ns() + (int64_t)(timeout * 1e9);
  double cpu_before = cpu_seconds();
  long done = 0;
  while (done < count) {
    if (monotonic_ns() >= end) fail("%ld of %ld were done within %g s", done, count, timeout);
    wire_wait(wires, 1, end);
    struct incoming incoming;
    while (done < count && wire_next(&plain.consumer, &incoming)) {
      if (incoming.kind != INCOMING_DELIVERY) continue;
      if (!first) first = plain.consumer.read_monotonic_ns;
      handle(&plain, &incoming.delivery);
      done++;
    }
  }
  int64_t last = monotonic_ns();
  double cpu = cpu_seconds() - cpu_before;
  wire_close(&plain.consumer);
  wire_close(&plain.publisher);
  store_close(&plain.store);
  double seconds = (double)(last - first) / 1e9;
  printf("{\"command\":\"plain\",\"count\":%ld,\"seconds\":%.6f,\"rate\":%.1f,\"cpuSeconds\":%.4f,\"maxRssKiB\":%ld,"
         "\"firstNs\":%lld,\"lastNs\":%lld}\n",
         done, seconds, (double)done / seconds, cpu, peak_kib(), (long long)first, (long long)last);
}
