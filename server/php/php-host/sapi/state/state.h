/*
 * The engine's state of each request in worker mode, and protected calls of PHP. One block per file.
 * Called by coroutine/ and worker/. Invariant: exactly one state is in the engine at a time.
 */
#ifndef OUTBOARD_STATE_H
#define OUTBOARD_STATE_H

#include "request/filter.h"
#include "request/request.h"
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
	bool has_changed_process; /* process/changes.c */
	bool cancelled;
	bool exited; /* by exit() */
	struct outboard_request_state *next; /* in the free list */
} outboard_request_state;

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

/* state/request_start.c */
void outboard_request_start(outboard_request_state *state);

/* state/superglobals.c */
void outboard_superglobals_startup(void);
bool outboard_superglobals_exchange(zval *saved, const zval *wanted);
void outboard_superglobals_save_armed(bool *armed);
void outboard_superglobals_restore_armed(const bool *armed);
void outboard_superglobals_import_mentioned(void);
void outboard_superglobals_import(void);
void outboard_superglobals_free(void);

/* state/ini_strings.c */
void outboard_ini_strings_startup(void);
void outboard_ini_strings_begin(outboard_request_state *state);
void outboard_ini_strings_end(outboard_request_state *state);

/* state/body.c */
void outboard_close_handles_of(const php_stream *body);

/* state/protected_call.c */
void outboard_protected_call(void (*step)(void *arg), void *arg, outboard_request_state *state);
void outboard_protected_step(void (*step)(outboard_request_state *state), outboard_request_state *state);
void outboard_call_php(zval *callback, outboard_request_state *state);

#endif
