/* The C ABI of the cuzk proving engine: see docs/embedding.md.
 * `cuzk-ffi/check-header.sh --write` makes this file from cuzk-ffi/src. */

#ifndef CUZK_H
#define CUZK_H

#include <stddef.h>
#include <stdint.h>

/*
 The call succeeded.
 */
#define CUZK_OK 0

/*
 The job has not ended. This is not an error.
 */
#define CUZK_PENDING -1

/*
 An argument cannot be used.
 */
#define CUZK_ARGUMENT 1

/*
 The configuration cannot be used.
 */
#define CUZK_CONFIGURATION 5

/*
 The request cannot be proved.
 */
#define CUZK_REQUEST 6

/*
 Groth16 parameters are missing.
 */
#define CUZK_PARAMETERS_MISSING 7

/*
 The queue has no room. Submit again when a job has ended.
 */
#define CUZK_BUSY 18

/*
 The proof would come too late.
 */
#define CUZK_LATE 24

/*
 The job was cancelled, or its engine ended.
 */
#define CUZK_ENDED 25

/*
 A defect of the library. Please report it.
 */
#define CUZK_INTERNAL 27

/*
 A time in milliseconds that does not end.
 */
#define CUZK_FOREVER UINT64_MAX

/*
 An aggregate of proofs.
 */
typedef struct cuzk_aggregate cuzk_aggregate;

/*
 An engine, which proves jobs on threads of its own.
 */
typedef struct cuzk_engine cuzk_engine;

/*
 A job of an engine.
 */
typedef struct cuzk_job cuzk_job;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Returns the code of the last call on this thread that failed; 0 if none has. A call that
 succeeds does not change it.

 Any thread may call it at any time.
 */
int32_t cuzk_error_code(void);

/*
 Returns the message of the last call on this thread that failed: what is wrong, where, and
 what to do. It ends with its code in brackets, such as `[CUZK-0007]`. An empty text if no
 call has failed. The text is UTF-8 and ends with a NUL.

 The library owns the text. It is valid until the next call on this thread that fails, and
 until the thread ends. Any thread may call the function at any time.
 */
const char *cuzk_lend_error(void);

/*
 Returns the library's version, such as `0.1.0`. The text ends with a NUL.

 The library owns the text, which is valid for ever. Any thread may call the function at any
 time.
 */
const char *cuzk_lend_version(void);

/*
 Starts an engine and writes it to `engine`, which the caller owns and gives back to
 `cuzk_engine_free`. After a failure `engine` is NULL.

 `toml` is the text of a configuration (docs/configuration.md), without a NUL at its end. A
 length of 0 is the built-in configuration. The sections `[server]`, `[cluster]` and
 `[logging]` have no effect.

 Any thread may call it at any time. It reads the environment: no other thread may change
 that meanwhile. A process that was forked after this call cannot use the engine.

 # Safety

 `toml_len` bytes can be read at `toml`. `engine` is the address of a variable.
 */
int32_t cuzk_engine_new(const void *toml,
                        size_t toml_len,
                        struct cuzk_engine **engine);

/*
 Accepts no more jobs, proves those that the engine has for at most `patience_ms`, and ends
 its threads. Jobs that are left then end with `CUZK_ENDED`; with `[jobs] journal` those
 that have an id go on at the next start. The number of them is written to `left`, which may
 be NULL. `CUZK_FOREVER` waits for all jobs.

 Any thread may call it. Other threads may use the engine meanwhile; later submissions fail.

 # Safety

 `engine` is NULL, or an engine that is not freed before the call ends. `left` is NULL or
 the address of a variable.
 */
int32_t cuzk_engine_end(const struct cuzk_engine *engine,
                        uint64_t patience_ms,
                        size_t *left);

/*
 Ends the jobs that the engine has not proved, and its threads, and frees it. A device that
 computes has ten seconds to answer. NULL is ignored. Jobs stay until they are freed.

 Any thread may call it, once. No other thread may use the engine from then on.

 # Safety

 `engine` is NULL, or of `cuzk_engine_new` and not freed.
 */
void cuzk_engine_free(struct cuzk_engine *engine);

/*
 Writes the state of the engine to `status`: JSON that ends with a NUL. It is the value of
 the key `engine` of docs/http.md. The caller owns the text and gives it back to
 `cuzk_status_free`. After a failure `status` is NULL.

 Any thread may call it at any time.

 # Safety

 `engine` is NULL, or an engine that is not freed before the call ends. `status` is the
 address of a variable.
 */
int32_t cuzk_status_new(const struct cuzk_engine *engine, char **status);

/*
 Frees a text of `cuzk_status_new`. NULL is ignored.

 Any thread may call it, once for each text.

 # Safety

 `status` is NULL, or of `cuzk_status_new` and not freed, and its length is unchanged.
 */
void cuzk_status_free(char *status);

/*
 Submits a request and writes the job to `job`, which the caller owns and gives back to
 `cuzk_job_free`. After a failure `job` is NULL. The call reads and checks the request, for
 which the largest ones take seconds, and does not wait for the proof.

 `request` has the JSON of docs/requests.md. `options` has a JSON object with the keys `id`,
 `priority`, `deadline_ms` and `waits` of docs/embedding.md. Each key may be left out, and a
 length of 0 is no options. Neither text ends with a NUL. The library copies what it needs
 of them, so that they can be freed after the call.

 Any thread may call it at any time. `CUZK_BUSY` asks to submit again when a job has ended.

 # Safety

 `engine` is NULL, or an engine that is not freed before the call ends. `request_len` bytes
 can be read at `request`, and `options_len` bytes at `options`. `job` is the address of a
 variable.
 */
int32_t cuzk_job_new(const struct cuzk_engine *engine,
                     const void *request,
                     size_t request_len,
                     const void *options,
                     size_t options_len,
                     struct cuzk_job **job);

/*
 Returns `CUZK_OK` if the job is proved, `CUZK_PENDING` if it has not ended, and otherwise
 the code of its error. The message of that is the thread's last error.

 Any thread may call it at any time.

 # Safety

 `job` is NULL, or a job that is not freed before the call ends.
 */
int32_t cuzk_job_poll(const struct cuzk_job *job);

/*
 Blocks until the job has ended, but no longer than `timeout_ms`. Returns as
 `cuzk_job_poll`. `CUZK_FOREVER` waits for the end.

 Any number of threads may wait at the same time.

 # Safety

 `job` is NULL, or a job that is not freed before the call ends.
 */
int32_t cuzk_job_wait(const struct cuzk_job *job, uint64_t timeout_ms);

/*
 Writes the number of an eventfd to `fd`. It becomes readable when the job ends, for `poll`,
 `select` and `epoll`. All calls give the same one. After a failure `fd` is -1.

 The library owns the eventfd: `cuzk_job_free` closes it, and nobody else may. A `read`
 makes it unreadable again. It does not block, and is closed by `exec`. Any thread may call
 the function at any time.

 # Safety

 `job` is NULL, or a job that is not freed before the call ends. `fd` is the address of a
 variable.
 */
int32_t cuzk_job_lend_eventfd(const struct cuzk_job *job,
                              int *fd);

/*
 Ends the job with `CUZK_ENDED`, unless it has ended. Waiting partitions are dropped, and
 running ones stop at their next chunk of work.

 Any thread may call it at any time.

 # Safety

 `job` is NULL, or a job that is not freed before the call ends.
 */
int32_t cuzk_job_cancel(const struct cuzk_job *job);

/*
 Writes how many partitions of the job are proved to `done`, and how many there are to
 `partitions`.

 Any thread may call it at any time.

 # Safety

 `job` is NULL, or a job that is not freed before the call ends. `done` and `partitions` are
 addresses of variables.
 */
int32_t cuzk_job_progress(const struct cuzk_job *job,
                          size_t *done,
                          size_t *partitions);

/*
 Writes the address and the length of the job's proof to `proof` and `proof_len`: 192 bytes
 for each partition, in order. The proof has been verified. Returns as `cuzk_job_poll`.
 Unless that is `CUZK_OK`, `proof` is NULL and `proof_len` 0.

 The library owns the proof, which is valid until `cuzk_job_free`. Any thread may call the
 function at any time.

 # Safety

 `job` is NULL, or a job that is not freed before the call ends. `proof` and `proof_len` are
 addresses of variables.
 */
int32_t cuzk_job_lend_proof(const struct cuzk_job *job,
                            const uint8_t **proof,
                            size_t *proof_len);

/*
 Frees the handle of a job, its proof and its eventfd. The job itself goes on until it has
 ended. NULL is ignored.

 Any thread may call it, once. No other thread may use the job from then on.

 # Safety

 `job` is NULL, or of `cuzk_job_new` and not freed.
 */
void cuzk_job_free(struct cuzk_job *job);

/*
 Aggregates proofs of replication and writes the aggregate to `aggregate`, which the caller
 owns and gives back to `cuzk_aggregate_free`. After a failure `aggregate` is NULL. The call
 blocks until the engine has the memory, and until the proofs and the aggregate are verified.

 `request` has the JSON of docs/aggregation.md, without a NUL at its end. It can be freed
 after the call.

 Any thread may call it at any time. `CUZK_PARAMETERS_MISSING` names the file that is not
 there.

 # Safety

 `engine` is NULL, or an engine that is not freed before the call ends. `request_len` bytes
 can be read at `request`. `aggregate` is the address of a variable.
 */
int32_t cuzk_aggregate_new(const struct cuzk_engine *engine,
                           const void *request,
                           size_t request_len,
                           struct cuzk_aggregate **aggregate);

/*
 Writes the address and the length of an aggregate's bytes, as the chain takes them, to
 `bytes` and `bytes_len`. After a failure `bytes` is NULL and `bytes_len` 0.

 The library owns the bytes, which are valid until `cuzk_aggregate_free`. Any thread may
 call the function at any time.

 # Safety

 `aggregate` is NULL, or an aggregate that is not freed before the call ends. `bytes` and
 `bytes_len` are addresses of variables.
 */
int32_t cuzk_aggregate_lend_bytes(const struct cuzk_aggregate *aggregate,
                                  const uint8_t **bytes,
                                  size_t *bytes_len);

/*
 Frees an aggregate and its bytes. NULL is ignored.

 Any thread may call it, once. No other thread may use the aggregate from then on.

 # Safety

 `aggregate` is NULL, or of `cuzk_aggregate_new` and not freed.
 */
void cuzk_aggregate_free(struct cuzk_aggregate *aggregate);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CUZK_H */
