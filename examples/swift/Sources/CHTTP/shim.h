#ifndef EXAMPLE_CHTTP_SHIM_H
#define EXAMPLE_CHTTP_SHIM_H

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>

/// MHD_start_daemon is variadic, which Swift cannot call. Listens on a port of 127.0.0.1 with a thread for each
/// connection, which may therefore wait.
static inline struct MHD_Daemon *example_http_start(unsigned short port, MHD_AccessHandlerCallback handler)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, port, NULL, NULL, handler,
        NULL, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_CONNECTION_LIMIT, 1000u, MHD_OPTION_END);
}

#endif
