/* Clients of federated jobs in programs of others, without Lua: training on the device by liblunaria-lite
 * (lunaria-lite.h), for jobs of `lunaria federated server`.
 *
 * A client asks the server for the iteration's plan and model, lets the program train, and sends the update; secure
 * aggregation, compression and noise are done by the library as the plan says. Whatever goes wrong on the way is
 * repeated with growing waits; what must survive a crash is in the client's state file.
 *
 * Functions return 0 when all went well and -1 otherwise; pointers are NULL then. A client must not be used by two
 * threads at once, but for lunaria_fl_client_stop.
 */
#ifndef LUNARIA_FL_H
#define LUNARIA_FL_H

#include <lunaria-lite.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lunaria_fl_client lunaria_fl_client;

/* What went wrong in the last call of this thread that failed; valid until its next call that fails. */
LUNARIA_LITE_API const char* lunaria_fl_error(void);

/* url: http://host:port or https://host:port, with a prefix or without. job: the fl_name of the server's configuration.
 * client: the name of this party, by which the server knows it again. */
LUNARIA_LITE_API lunaria_fl_client* lunaria_fl_client_create(const char* url, const char* job, const char* client);
LUNARIA_LITE_API void lunaria_fl_client_free(lunaria_fl_client* client); /* NULL is fine */

/* To be set before the first event. Names and what they are:
 *   state              a file in which the client keeps what it needs after a crash
 *   samples            how many it has, for the server's choice
 *   iterations         how many it takes part in; 0: all
 *   ca_cert_path       PEM file of the authorities that are believed; without it the system's
 *   client_cert_path, client_key_path, client_password    the client's certificate, PEM or .p12
 *   crl_path           PEM file of revoked certificates
 *   cipher_list        of TLS 1.2, as OpenSSL has them
 *   signing            1: requests are signed by a key that the client makes; or 64 hexadecimal digits, its seed
 *   signing_certificate    PEM text that names the client and its key
 *   patience, connect_timeout, idle_timeout, timeout, backoff, most_backoff    seconds
 *   upload_limit, download_limit    bytes per second
 *   seed               of the waits' jitter
 *   proxy              of HTTP */
LUNARIA_LITE_API int lunaria_fl_client_set(lunaria_fl_client* client, const char* name, const char* value);

typedef enum {
    LUNARIA_FL_WAIT,  /* ask again after wait_ms */
    LUNARIA_FL_TRAIN, /* train as the plan says, and send the update */
    LUNARIA_FL_MODEL, /* an iteration has ended: its model can be loaded */
    LUNARIA_FL_ENDED  /* the job has ended */
} lunaria_fl_kind;

typedef struct {
    lunaria_fl_kind kind;
    int64_t wait_ms;
    const char* reason; /* of a wait or the end; valid until the next call */
} lunaria_fl_event;

typedef struct {
    int64_t iteration, iterations; /* from 1; of the whole job */
    int64_t epochs, batch_size;
    double learning_rate;
    uint64_t seed;        /* of what the client draws in this iteration */
    const char* rule;     /* the client rule that the strategy asks for, such as "sgd"; valid until the next event */
    const char* settings; /* further settings, as JSON */
} lunaria_fl_plan;

/* Makes at most one request and says what comes next. */
LUNARIA_LITE_API int lunaria_fl_client_next(lunaria_fl_client* client, lunaria_fl_event* event);
LUNARIA_LITE_API int lunaria_fl_client_plan(lunaria_fl_client* client, lunaria_fl_plan* plan);
/* The job's model into the weights of the same names: all features that clients send must be there. */
LUNARIA_LITE_API int lunaria_fl_client_load(lunaria_fl_client* client, lunaria_lite_model* model);
/* A number for the server, with the next update. */
LUNARIA_LITE_API int lunaria_fl_client_metric(lunaria_fl_client* client, const char* name, double value);
/* After LUNARIA_FL_TRAIN: the weights of the model are the update, which counts by its samples. */
LUNARIA_LITE_API int lunaria_fl_client_send(lunaria_fl_client* client, lunaria_lite_model* model, int64_t samples);

/* The whole job: waits, loads the model into the trainer, has `train` run, and sends the update. train gives the
 * samples that it went through, or a negative number to give up. evaluate: called with the trainer when an iteration
 * has ended and its model is loaded; NULL is fine. */
typedef int64_t lunaria_fl_train(lunaria_lite_trainer* trainer, const lunaria_fl_plan* plan, void* user);
typedef void lunaria_fl_evaluate(lunaria_lite_trainer* trainer, const lunaria_fl_plan* plan, void* user);
LUNARIA_LITE_API int lunaria_fl_client_run(lunaria_fl_client* client, lunaria_lite_trainer* trainer,
                                           lunaria_fl_train* train, lunaria_fl_evaluate* evaluate, void* user);
/* Ends the request or the wait of another thread with an error; from signal handlers too. */
LUNARIA_LITE_API void lunaria_fl_client_stop(lunaria_fl_client* client);

/* Updates that the server has taken, and requests that were sent again. */
LUNARIA_LITE_API int64_t lunaria_fl_client_updates(const lunaria_fl_client* client);
LUNARIA_LITE_API int64_t lunaria_fl_client_repeats(const lunaria_fl_client* client);

#ifdef __cplusplus
}
#endif

#endif
