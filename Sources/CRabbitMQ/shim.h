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

// The login is variadic, which Swift cannot call.
static inline amqp_rpc_reply_t overtime_login_plain(amqp_connection_state_t state, const char *vhost, int channel_max,
                                                    int frame_max, int heartbeat, const amqp_table_t *properties,
                                                    const char *user, const char *password) {
  return amqp_login_with_properties(state, vhost, channel_max, frame_max, heartbeat, properties,
                                    AMQP_SASL_METHOD_PLAIN, user, password);
}

static inline amqp_rpc_reply_t overtime_login_external(amqp_connection_state_t state, const char *vhost,
                                                       int channel_max, int frame_max, int heartbeat,
                                                       const amqp_table_t *properties, const char *identity) {
  return amqp_login_with_properties(state, vhost, channel_max, frame_max, heartbeat, properties,
                                    AMQP_SASL_METHOD_EXTERNAL, identity);
}

// OpenSSL, for what librabbitmq does not expose: why a certificate was refused, and keys without asking for a
// passphrase. Declared as in its headers and not included: they would bring types of the C library along, which Swift
// would then count as this module's.
struct ssl_st;
struct ssl_ctx_st;
struct x509_store_ctx_st;
int SSL_get_ex_data_X509_STORE_CTX_idx(void);
struct ssl_ctx_st *SSL_get_SSL_CTX(const struct ssl_st *ssl);
int SSL_CTX_set_ex_data(struct ssl_ctx_st *context, int index, void *data);
void *SSL_CTX_get_ex_data(const struct ssl_ctx_st *context, int index);
void SSL_CTX_set_verify(struct ssl_ctx_st *context, int mode, int (*verify)(int, struct x509_store_ctx_st *));
void SSL_CTX_set_default_passwd_cb(struct ssl_ctx_st *context, int (*passphrase)(char *, int, int, void *));
int SSL_CTX_check_private_key(const struct ssl_ctx_st *context);
void *X509_STORE_CTX_get_ex_data(const struct x509_store_ctx_st *store, int index);
int X509_STORE_CTX_get_error(const struct x509_store_ctx_st *store);
const char *X509_verify_cert_error_string(long error);
unsigned long ERR_peek_last_error(void);
void ERR_clear_error(void);
const char *ERR_reason_error_string(unsigned long error);

// Called for each certificate of the peer's chain.
static inline int overtime_tls_verify(int is_good, struct x509_store_ctx_st *store) {
  if (!is_good) {
    struct ssl_st *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct ssl_ctx_st *context = ssl ? SSL_get_SSL_CTX(ssl) : 0;
    int *error = context ? SSL_CTX_get_ex_data(context, 0) : 0;
    if (error && *error == 0) *error = X509_STORE_CTX_get_error(store);
  }
  return is_good;
}

// A key with a passphrase is refused. OpenSSL would ask for it on the terminal, and the service would stand still.
static inline int overtime_tls_no_passphrase(char *buffer, int size, int is_writing, void *data) {
  (void)buffer, (void)size, (void)is_writing, (void)data;
  return -1;
}

// Refuses a bad peer within the handshake, before it is sent anything (the library alone looks only afterwards), and
// notes in `error` why. `error` must live as long as the socket.
static inline void overtime_tls_prepare(amqp_socket_t *socket, int *error) {
  struct ssl_ctx_st *context = amqp_ssl_socket_get_context(socket);
  SSL_CTX_set_ex_data(context, 0, error);
  SSL_CTX_set_verify(context, 1 /* SSL_VERIFY_PEER */, overtime_tls_verify);
  SSL_CTX_set_default_passwd_cb(context, overtime_tls_no_passphrase);
}

static inline int overtime_tls_key_fits(amqp_socket_t *socket) {
  return SSL_CTX_check_private_key(amqp_ssl_socket_get_context(socket));
}

// The last reason in this thread's list of errors, which is emptied; NULL where there is none.
static inline const char *overtime_tls_reason(void) {
  unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  return code ? ERR_reason_error_string(code) : 0;
}

#endif
