#ifndef OVERTIME_CMICROHTTPD_SHIM_H
#define OVERTIME_CMICROHTTPD_SHIM_H

#include <microhttpd.h>

/// MHD_start_daemon is variadic, which Swift cannot call. Serves a socket that listens already, on one thread of the
/// library's own, within these bounds.
static inline struct MHD_Daemon *overtime_httpd_start(
    int listener, MHD_AccessHandlerCallback handler, void *context, unsigned int connections,
    unsigned int connections_per_address, unsigned int idle_seconds, size_t connection_bytes, size_t stack_bytes)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, handler, context, MHD_OPTION_LISTEN_SOCKET, listener,
        MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT, connections_per_address,
        MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_bytes,
        MHD_OPTION_THREAD_STACK_SIZE, stack_bytes, MHD_OPTION_END);
}

#endif
