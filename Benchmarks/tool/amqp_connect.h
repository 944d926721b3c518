#ifndef BENCH_AMQP_CONNECT_H
#define BENCH_AMQP_CONNECT_H

#if __has_include(<rabbitmq-c/amqp.h>)
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/tcp_socket.h>
#else
#include <amqp.h>
#include <amqp_tcp_socket.h>
#endif

// Connects and logs in; ends the program where that fails. Heartbeats are off: every wait here has a limit of its own.
amqp_connection_state_t amqp_connect(const char *url);

// Ends the program where the last call to the broker failed.
void amqp_check(amqp_connection_state_t connection, const char *what);

void amqp_open_channel(amqp_connection_state_t connection, amqp_channel_t channel);

void amqp_disconnect(amqp_connection_state_t connection);

#endif
