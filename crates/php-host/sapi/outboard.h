/*
 * The boundary between the C shim and Rust. `outboard_` is C called from Rust, `outboard_rs_` is
 * Rust called from C; src/engine/ is the other half, and checks the layouts at start-up.
 *
 * Invariants: a longjmp (zend_bailout) never crosses a Rust frame: code that can raise one runs
 * inside zend_try here, and outboard_rs_ functions never call into Zend. No panic enters C.
 */
#ifndef OUTBOARD_H
#define OUTBOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A string of the request; ptr[len] is NUL. */
typedef struct {
	const char *ptr;
	size_t len;
} outboard_str;

typedef struct {
	outboard_str name;
	outboard_str value;
} outboard_pair;

/* A request as the gateway described it; valid until outboard_request_run returns. */
typedef struct {
	outboard_str method;
	outboard_str uri;
	outboard_str query;
	outboard_str script_filename;
	outboard_str script_name;
	outboard_str path_info;
	outboard_str document_root;
	outboard_str document_uri;
	outboard_str protocol;
	outboard_str content_type;
	outboard_str remote_addr;
	outboard_str server_addr;
	outboard_str server_name;
	outboard_str scheme;
	outboard_str request_id;
	const outboard_pair *headers;
	size_t header_count;
	const outboard_pair *params;
	size_t param_count;
	int64_t content_length; /* -1: the request has no body */
	uint64_t received_us;
	uint16_t remote_port; /* 0: a Unix socket */
	uint16_t server_port;
	uint8_t trace_detail; /* ring's TraceDetail: 0: no spans, 1: spans, 2: with statements */
} outboard_request;

/* Asserted to be equal to ring's Outcome on the Rust side. */
enum outboard_outcome {
	OUTBOARD_FINISHED = 0,
	OUTBOARD_FAILED = 1,
	OUTBOARD_REFUSED = 2,
};

typedef struct {
	int32_t outcome;
	bool leaving; /* the worker must exit */
	bool takes_snapshot; /* the script has called Outboard\snapshot() in classic mode */
	bool handled; /* the response is what the script meant (request/handled.c) */
	bool spoiled; /* it is not, whatever follows */
	uint64_t peak_memory_bytes;
} outboard_result;

/* Facts about the engine after start-up. */
typedef struct {
	const char *php_version;
	const char *ini_file; /* NULL: none was read */
	uint64_t post_max_bytes;
	bool opcache;
} outboard_engine_facts;

/* The request that a backtrace is about. */
typedef struct {
	uint32_t running; /* 0: none */
	uint32_t slot;
	uint32_t generation;
} outboard_subject;

/* Sizes of the structures above and below, in their order, compared at start-up. */
extern const size_t outboard_layout[10];

/* engine/module.c */
bool outboard_engine_start(const char *sapi_name, const char *ini_file, const char *ini_entries);
void outboard_engine_facts_get(outboard_engine_facts *facts);
const char *outboard_engine_setting(const char *name, size_t name_len);
bool outboard_engine_fix_ini(const char *name, size_t name_len);
void outboard_engine_stop(void);

/* fork/children.c */
void outboard_children_watch(bool watch);

/* request/request.c */
void outboard_request_run(const outboard_request *request, void *exchange, outboard_result *result);

/* request/backtrace.c */
void outboard_crash_announce_to(uint32_t *mark, int bell);
void outboard_backtrace_install(int signal_number);
void outboard_backtrace_begin(uint32_t slot, uint32_t generation);
void outboard_backtrace_end(void);
void outboard_backtrace_at(const void *frame, uint32_t slot, uint32_t generation);
bool outboard_backtrace_subject(int memory, outboard_subject *found);
const void *outboard_backtrace_root(void);
void outboard_backtrace_from(int pid, int memory, const void *root);

/* tracing/span.c */
uint32_t outboard_open_span(void);

/* request/time_limit.c */
bool outboard_time_limit_start(void);

/* worker/worker_script.c */
bool outboard_worker_script_run(const char *script, void *events, bool functions, uint32_t concurrency,
	const char *state_report, const outboard_request *boot_request);

/* worker/worker_script.c: the script is a program with these arguments. */
int outboard_exit_status(void);
void outboard_program_prepare(int count, const char *const *arguments);

/* The next event of a worker script; Rust's Event. */
enum outboard_event_kind {
	OUTBOARD_NOTHING = 0,
	OUTBOARD_REQUEST = 1, /* handle it */
	OUTBOARD_WAKE = 2,    /* the wait of `id` is over */
	OUTBOARD_TIMER = 3,   /* `id` is due */
	OUTBOARD_CANCEL = 4,  /* the deadline of the request with `exchange` has passed */
	OUTBOARD_STOP = 5,    /* the worker is to exit */
	OUTBOARD_STREAM = 6,  /* something has come on a raw connection */
};

typedef struct {
	int32_t kind;
	uint32_t slot;
	uint32_t generation;
	uint64_t id;
	void *exchange;
	const outboard_request *request;
} outboard_event;

/* Something that has come on a raw connection; the numbers are those of ring's StreamEvent. */
typedef struct {
	int32_t kind;
	uint32_t port;
	uint64_t item;
	uint64_t session;
	outboard_str bytes;
} outboard_stream_event;

struct pollfd;

/* An HTTP request for the gateway. */
typedef struct {
	outboard_str method;
	outboard_str url;
	outboard_str headers;
	outboard_str body;
	uint32_t connect_timeout_ms;
	uint32_t timeout_ms;
	uint32_t max_body_bytes;
	uint16_t max_redirects;
	uint8_t retries;
	bool verify;
	bool decompress;
	bool http2;
} outboard_fetch;

/* Its result; the strings live until outboard_rs_fetch_free. */
typedef struct {
	int32_t failure; /* 0: none; else ring's Failure, and `body` is the message */
	uint16_t status;
	uint8_t http_version;
	outboard_str url;
	outboard_str headers;
	outboard_str body;
} outboard_fetch_result;

/* Calls into Rust. `exchange` is the pointer that outboard_request_run received. */
size_t outboard_rs_write(void *exchange, const char *bytes, size_t len);
bool outboard_rs_flush(void *exchange, bool handled);
bool outboard_rs_is_paused(void *exchange);
void outboard_rs_await_client(void *exchange, uint64_t waiter);
void outboard_rs_head(void *exchange, int status, const char *reason, size_t reason_len);
void outboard_rs_head_line(void *exchange, const char *line, size_t len);
/* Sent behind the body, with its end. */
void outboard_rs_trailer(void *exchange, const char *line, size_t len);
bool outboard_rs_interim(void *exchange);
bool outboard_rs_finish(void *exchange, bool handled);
bool outboard_rs_is_finished(void *exchange);
size_t outboard_rs_read_body(void *exchange, char *buffer, size_t len);
/* `kinds` has a letter for each text: u(rl), p(refix), t(ag), a(ll). */
bool outboard_rs_blocking_fetch(void *exchange, const outboard_fetch *fetch, outboard_fetch_result *fetched);
bool outboard_rs_blocking_entities(void *exchange, outboard_str namespace, outboard_str batch,
	outboard_fetch_result *fetched);
bool outboard_rs_blocking_rate(void *exchange, outboard_str limit, outboard_str key, uint32_t tokens, bool takes,
	outboard_fetch_result *fetched);
int64_t outboard_rs_purge(void *exchange, void *events, const char *kinds,
	const outboard_str *texts, size_t count, bool soft);
/* How many snapshots were retired; negative if the gateway cannot be reached. */
int64_t outboard_rs_retire_snapshot(void *exchange, void *events, const char *key, size_t len);
/* Paths of calls that failed with EACCES (denied_files.c). */
typedef enum {
	OUTBOARD_DENIED_READ = 1,
	OUTBOARD_DENIED_WRITE = 2,
	OUTBOARD_DENIED_CHANGE = 3,
} outboard_denied_use;
void outboard_rs_denied(outboard_denied_use use, const char *path, size_t len);
/* What the start of a script reads (boot_files.c). */
typedef enum {
	OUTBOARD_BOOT_READS = 1,
	OUTBOARD_BOOT_WRITES = 2,
	OUTBOARD_BOOT_LISTS = 3,
	OUTBOARD_BOOT_MISSES = 4,
	OUTBOARD_BOOT_INCLUDES = 5,
	OUTBOARD_BOOT_FOLLOWS = 6,
} outboard_boot_use;
void outboard_boot_files_record(bool record);
void outboard_rs_boot_uses(outboard_boot_use use, const char *path, size_t len);
bool outboard_rs_boot_depends(const char *key, size_t len);
void outboard_rs_boot_max_age(int64_t seconds); /* 0: as the configuration has it */
void outboard_rs_boot_ends(void *events);
/* Name, error, and key and value of each attribute, the value behind a letter: s, i, f, b. */
void outboard_rs_span(void *exchange, uint64_t start_us, uint64_t end_us, uint32_t id, uint32_t parent, bool has_failed,
	const outboard_str *texts, size_t count);
/* For classic mode: waits for the result, whose strings live until the next call. */
bool outboard_rs_blocking_dispatch(void *exchange, outboard_str name, outboard_str data, uint64_t delay_ms,
	int retries, outboard_fetch_result *result);
void outboard_rs_log(void *exchange, int severity, const char *text, size_t len);
/* For worker mode; `events` is the pointer that outboard_worker_script_run received. */
void outboard_rs_ready(void *events);
void outboard_rs_request_read(void *events, outboard_str name, outboard_str file, uint32_t line);
void outboard_rs_refuse_snapshot(void *events, const char *why, size_t len);
void outboard_rs_next(void *events, bool may_start, bool may_block, outboard_event *event);
void outboard_rs_done(void *events, void *exchange, const outboard_result *result);
int outboard_rs_wait(void *events, uint64_t waiter, struct pollfd *fds, size_t count,
	int64_t timeout_us, uint64_t *other);
void outboard_rs_cancel_wait(void *events, uint64_t waiter);
void outboard_rs_unwait(void *events, uint64_t waiter);
void outboard_rs_timer_set(void *events, uint64_t id, int64_t delay_us);
void outboard_rs_count_wait(void *events, int call, int64_t blocked_us);
uint64_t outboard_rs_fetch(void *events, void *exchange, uint64_t waiter,
	const outboard_fetch *fetch);
uint64_t outboard_rs_entities(void *events, void *exchange, uint64_t waiter, outboard_str namespace,
	outboard_str batch);
uint64_t outboard_rs_rate(void *events, void *exchange, uint64_t waiter, outboard_str limit, outboard_str key,
	uint32_t tokens, bool takes);
uint64_t outboard_rs_task(void *events, void *exchange, uint64_t waiter, outboard_str name,
	outboard_str data, uint64_t delay_ms, int retries, bool is_awaited);
bool outboard_rs_fetch_result(void *events, uint64_t operation, outboard_fetch_result *fetched);
void outboard_rs_fetch_free(void *events, uint64_t operation);
void outboard_rs_fetch_awaited(void *events, uint64_t operation, uint64_t waiter);
uint64_t outboard_rs_reader(void *events, int fd);
bool outboard_rs_offload(void *events, uint64_t waiter, void (*run)(void *), void *data);
bool outboard_rs_is_idle(void *events);
bool outboard_rs_is_forking(void *events);
bool outboard_rs_describe(void *events, const char *description, size_t len);
int32_t outboard_rs_fork_workers(void *events);
bool outboard_rs_set_title(void *events, const char *title, size_t len);
bool outboard_rs_renew(void *events);
bool outboard_rs_snapshot(void *events);
void *outboard_rs_rewind_memory(void *events, size_t bytes);
bool outboard_rs_may_rewind(void *events, bool is_damaged);
bool outboard_rs_is_rewound(void *events);
void outboard_rs_rewind(void *events, const void *stack_pointer);
bool outboard_rs_learns(void *events);
void outboard_rs_cache_used(void *events, uint8_t cache, const char *first, size_t first_len,
	const char *second, size_t second_len);
const char *outboard_rs_next_due(void *events, uint8_t *cache, size_t *len);
void outboard_rs_backtrace_write(const char *text, size_t len);
void outboard_rs_backtrace_publish(void);
void outboard_rs_backtrace_about(uint32_t slot, uint32_t generation);

#endif
