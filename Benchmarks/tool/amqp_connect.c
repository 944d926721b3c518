#define _GNU_SOURCE
#include "amqp_connect.h"

#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "fail.h"

static void check_reply(amqp_rpc_reply_t reply, const char *what) {
  switch (reply.reply_type) {
  case AMQP_RESPONSE_NORMAL:
    return;
  case AMQP_RESPONSE_LIBRARY_EXCEPTION:
    fail("%s: %s", what, amqp_error_string2(reply.library_error));
  case AMQP_RESPONSE_SERVER_EXCEPTION: {
    amqp_bytes_t text = amqp_empty_bytes;
    if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
      text = ((amqp_channel_close_t *)reply.reply.decoded)->reply_text;
    } else if (reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
      text = ((amqp_connection_close_t *)reply.reply.decoded)->reply_text;
    }
    fail("%s: %.*s", what, (int)text.len, (const char *)text.bytes);
  }
  default:
    fail("%s: no reply", what);
  }
}

void amqp_check(amqp_connection_state_t connection, const char *what) {
  check_reply(amqp_get_rpc_reply(connection), what);
  amqp_maybe_release_buffers(connection);
}

amqp_connection_state_t amqp_connect(const char *url) {
  char *copy = strdup(url);
  struct amqp_connection_info info;
  amqp_default_connection_info(&info);
  if (!copy || amqp_parse_url(copy, &info) != AMQP_STATUS_OK) fail("not an AMQP URL");
  if (info.ssl) fail("amqps:// is not for benchmarks");

  amqp_connection_state_t connection = amqp_new_connection();
  amqp_socket_t *socket = connection ? amqp_tcp_socket_new(connection) : NULL;
  if (!socket) fail("out of memory");
  struct timeval limit = {10, 0};
  int status = amqp_socket_open_noblock(socket, info.host, info.port, &limit);
  if (status != AMQP_STATUS_OK) fail("connecting to %s:%d: %s", info.host, info.port, amqp_error_string2(status));
  amqp_set_rpc_timeout(connection, &limit);
  const char *vhost = info.vhost && *info.vhost ? info.vhost : "/";
  check_reply(amqp_login(connection, vhost, 0, AMQP_DEFAULT_FRAME_SIZE, 0, AMQP_SASL_METHOD_PLAIN, info.user,
                         info.password),
              "login");
  free(copy);
  return connection;
}

void amqp_open_channel(amqp_connection_state_t connection, amqp_channel_t channel) {
  amqp_channel_open(connection, channel);
  amqp_check(connection, "opening a channel");
}

void amqp_disconnect(amqp_connection_state_t connection) {
  amqp_connection_close(connection, AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(connection);
}
