#ifndef OVERTIME_CRABBITMQ_SHIM_H
#define OVERTIME_CRABBITMQ_SHIM_H

// The wake-up descriptor of a link's thread; Swift's Glibc module lacks this header.
#include <sys/eventfd.h>

#if __has_include(<rabbitmq-c/amqp.h>)
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/framing.h>
#include <rabbitmq-c/ssl_socket.h>
#include <rabbitmq-c/tcp_socket.h>
#else
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#endif

// The login is variadic, which Swift cannot call. Everything else is called as it is.
static inline amqp_rpc_reply_t overtime_login_plain(amqp_connection_state_t state, const char *vhost, int channel_max,
                                                    int frame_max, int heartbeat, const amqp_table_t *properties,
                                                    const char *user, const char *password) {
  return amqp_login_with_properties(state, vhost, channel_max, frame_max, heartbeat, properties,
                                    AMQP_SASL_METHOD_PLAIN, user, password);
}

#endif
