/*
 * Worker mode: the engine's state of each request (outboard_request_state), and the functions that
 * the files of worker mode share, one block per file.
 */
#ifndef OUTBOARD_WORKER_MODE_H
#define OUTBOARD_WORKER_MODE_H

#include "request/filter.h"
#include "request/zlib_coding.h"
#include "ext/session/php_session.h"

/* Up to this number of coroutines per worker, memory per coroutine does not matter. */
#define OUTBOARD_FEW_COROUTINES 16

/* The superglobals that each request has for itself. */
#define OUTBOARD_SUPERGLOBALS 7

/* The engine's globals that belong to one request. */
typedef struct {
	sapi_globals_struct sapi;
	zend_output_globals output;
	php_ps_globals session;
	outboard_filter_inputs filter;
	outboard_zlib_coding zlib;
	zval http_globals[6];
	zval superglobals[OUTBOARD_SUPERGLOBALS];
	bool armed[OUTBOARD_SUPERGLOBALS]; /* imported when a file that mentions it is compiled */
	zval error_handler;
	int error_handler_reporting;
	zend_stack error_handlers;
	zend_stack error_handlers_reporting;
	zval exception_handler;
	zend_stack exception_handlers;
	HashTable *shutdown_functions;
	zend_string *strtok_string; /* the string that strtok() splits */
	char *strtok_last;
	size_t strtok_len;
	zend_string *last_error_message;
	zend_string *last_error_file;
	int last_error_type;
	uint32_t last_error_line;
	int exit_status;
	short connection_status;
	bool ignore_user_abort;
	unsigned char header_is_being_sent;
	const outboard_request *request;
	outboard_result *result;
} outboard_engine_state;

typedef struct outboard_request_state {
	outboard_engine_state engine; /* saved while the request is not active */
	outboard_result result;
	const outboard_request *request;
	void *exchange;
	zend_llist *deferred;   /* callbacks of defer(), or NULL */
	uint64_t id;            /* unique within the worker */
	uint32_t coroutines;    /* running for it */
	HashTable *ini_strings; /* ini_strings.c */
	bool is_called; /* its handler, or the rest of the script after its snapshot */
	bool completed;
	bool is_releasing;     /* reset/held_resources.c */
	bool cancelled;
	struct outboard_request_state *next; /* in the free list */
} outboard_request_state;

/* The state that the engine has now. */
extern outboard_request_state *outboard_active_state;

/* The state outside of requests: the script's boot, timers, the code after the loop. */
extern outboard_request_state outboard_boot_state;

void outboard_request_state_prepare_boot(bool has_request);
void outboard_request_state_startup(void);
void outboard_request_state_end_boot(void);
void outboard_request_state_enter(outboard_request_state *state);
outboard_request_state *outboard_request_state_begin(const outboard_request *request, void *exchange);
void outboard_request_state_judge(outboard_request_state *state);
void outboard_request_state_complete(outboard_request_state *state);
void outboard_request_state_end(outboard_request_state *state);
void outboard_request_state_abandon(void);

bool outboard_has_session(void);

/* worker/request_start.c */
void outboard_request_start(outboard_request_state *state);

/* worker/superglobals.c */
void outboard_superglobals_startup(void);
bool outboard_superglobals_exchange(zval *saved, const zval *wanted);
void outboard_superglobals_save_armed(bool *armed);
void outboard_superglobals_restore_armed(const bool *armed);
void outboard_superglobals_import_mentioned(void);
void outboard_superglobals_import(void);
void outboard_superglobals_free(void);

/* worker/ini_strings.c */
void outboard_ini_strings_startup(void);
void outboard_ini_strings_begin(outboard_request_state *state);
void outboard_ini_strings_end(outboard_request_state *state);

/* reset/reset.c */
void outboard_reset_startup(void);
void outboard_reset_baseline(void);
void outboard_reset_session_path(void);
void outboard_reset_random(void);
void outboard_reset_after(outboard_request_state *state);

/* doctor/doctor.c */
void outboard_doctor_startup(const char *path);
void outboard_doctor_examine(void);

/* coroutine/coroutine.c */

/* Why a wait ended. */
enum outboard_wake_reason {
	OUTBOARD_WOKEN,     /* the event or the timeout */
	OUTBOARD_CANCELLED, /* the request is to end */
};

void outboard_coroutine_startup(void);
outboard_request_state *outboard_running_state(void);
enum outboard_wake_reason outboard_suspend(void);
bool outboard_wake(uint64_t waiter);
uint64_t outboard_waiter(void);
const zend_execute_data *outboard_frame_of(uint64_t waiter);
const zend_execute_data *outboard_frame_at(uint32_t coroutine);
bool outboard_is_cancelled(void);
void outboard_throw_if_cancelled(void);

/* worker/loop.c */

/* How the script handles requests. */
enum outboard_serve_mode {
	OUTBOARD_SERVE_ONE, /* the call returns after each request */
	OUTBOARD_SERVE_ALL, /* the call returns when the worker stops */
	OUTBOARD_SERVE_RETURNED, /* the same, and the handler's result is the response */
	OUTBOARD_SERVE_SWOOLE, /* the same; the handler gets a request and a response of Swoole */
};

void outboard_loop_startup(void);
bool outboard_may_suspend(void);
bool outboard_is_autoloading(void);
void outboard_forked(void);
void outboard_begin_main_request(const outboard_event *event);
void outboard_end_fork(void);
uint64_t outboard_spawn(zval *callback, zval *ended);
void outboard_cancel_task(uint64_t id);
void outboard_timer_add(uint64_t id, zval *callback);
void outboard_timer_remove(uint64_t id);
bool outboard_serve_requests(zval *handler, enum outboard_serve_mode way);

/* rewind/rewind.c */
void outboard_rewind_mark(void);
void outboard_rewind(void);

/* worker/protected_call.c */
void outboard_protected_step(void (*step)(outboard_request_state *state), outboard_request_state *state);

/* coroutine/connection_guard.c */
void outboard_connection_guard_startup(void);
void outboard_throw_connection_in_use(const zend_execute_data *there);

/* coroutine/persistent.c */
void outboard_persistent_startup(void);

/* worker/worker_script.c */
const void *outboard_script_stream(void);
void outboard_run_source(const unsigned char *text, size_t len, const char *name);

/* opcache/clock.c */
void outboard_opcache_clock_find(void);
void outboard_opcache_clock_set(uint64_t time_us);

#endif
