// The queues that a benchmark listens on, empty.
#include <stdio.h>

#include "amqp_connect.h"
#include "commands.h"
#include "options.h"

static void declare_anew(amqp_connection_state_t connection, const char *queue) {
  amqp_queue_delete(connection, 1, amqp_cstring_bytes(queue), 0, 0);
  amqp_check(connection, "deleting a queue");
  amqp_queue_declare(connection, 1, amqp_cstring_bytes(queue), 0, 1, 0, 0, amqp_empty_table);
  amqp_check(connection, "declaring a queue");
}

void run_topology(int argc, char **argv) {
  const char *url = NULL, *audit = NULL, *replies = NULL, *exchange = "overtime.events";
  bool is_drop = false;
  OPTIONS(argc, argv, {"url", OPTION_TEXT, &url, true}, {"audit", OPTION_TEXT, &audit, false},
          {"replies", OPTION_TEXT, &replies, false}, {"exchange", OPTION_TEXT, &exchange, false},
          {"drop", OPTION_FLAG, &is_drop, false});
  amqp_connection_state_t connection = amqp_connect(url);
  amqp_open_channel(connection, 1);
  const char *queues[] = {audit, replies};
  for (int i = 0; i < 2; i++) {
    if (!queues[i]) continue;
    if (is_drop) {
      amqp_queue_delete(connection, 1, amqp_cstring_bytes(queues[i]), 0, 0);
      amqp_check(connection, "deleting a queue");
    } else {
      declare_anew(connection, queues[i]);
    }
  }
  if (audit && !is_drop) {
    amqp_queue_bind(connection, 1, amqp_cstring_bytes(audit), amqp_cstring_bytes(exchange), amqp_empty_bytes,
                    amqp_empty_table);
    amqp_check(connection, "binding a queue");
  }
  amqp_disconnect(connection);
  printf("{\"command\":\"topology\",\"declared\":%d}\n", is_drop ? 0 : (audit != NULL) + (replies != NULL));
}
