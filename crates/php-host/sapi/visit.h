/*
 * A visit: one request in a resident script, with the engine's state that is its own. Shared by
 * the files of worker mode.
 */
#ifndef OUTBOARD_VISIT_H
#define OUTBOARD_VISIT_H

#include "filter.h"
#include "zlib_coding.h"
#include "ext/session/php_session.h"

/* Up to so many coroutines of a worker memory is no concern. */
#define OUTBOARD_FEW 16

/* The superglobals that a visit has for itself. */
#define OUTBOARD_SUPERGLOBALS 7

/* What the engine keeps once a process and each visit must have for itself. */
typedef struct {
	sapi_globals_struct sapi;
	zend_output_globals output;
	php_ps_globals session;
	outboard_filter_inputs filter;
	outboard_zlib_coding zlib;
	zval http_globals[6];
	zval superglobals[OUTBOARD_SUPERGLOBALS];
	bool armed[OUTBOARD_SUPERGLOBALS]; /* to be made when a file that mentions it is compiled */
	zval error_handler;
	int error_handler_reporting;
	zend_stack error_handlers;
	zend_stack error_handlers_reporting;
	zval exception_handler;
	zend_stack exception_handlers;
	HashTable *shutdown_functions;
	zend_string *strtok_string; /* what strtok() goes through */
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
} outboard_state;

typedef struct outboard_visit {
	outboard_state state; /* while the visit is not the active one */
	outboard_result result;
	const outboard_request *request;
	void *exchange;
	zend_llist *deferred;   /* callbacks of defer(), or NULL */
	uint64_t id;            /* of no other visit of this worker */
	uint32_t coroutines;    /* that work for it */
	HashTable *held_settings; /* visit_settings.c */
	bool answered;
	bool is_letting_go;     /* of what it holds: reset_holds.c */
	bool cancelled;
	struct outboard_visit *next; /* in the list of those that are not in use */
} outboard_visit;

/* The one whose state is in the engine. */
extern outboard_visit *outboard_active_visit;

/* What the script is when no request is: its boot, timers, what follows the loop. */
extern outboard_visit outboard_boot_visit;

void outboard_visit_startup(void);
void outboard_visit_end_boot(void);
void outboard_visit_enter(outboard_visit *visit);
outboard_visit *outboard_visit_begin(const outboard_request *request, void *exchange);
void outboard_visit_answer(outboard_visit *visit);
void outboard_visit_end(outboard_visit *visit);
void outboard_visit_abandon(void);

/* visit_settings.c */
void outboard_visit_settings_startup(void);
void outboard_visit_settings_begin(outboard_visit *visit);
void outboard_visit_settings_end(outboard_visit *visit);

/* reset.c */
void outboard_reset_startup(void);
void outboard_reset_baseline(void);
void outboard_reset_session_path(void);
void outboard_reset_forked(void);
void outboard_reset_after(outboard_visit *visit);

/* doctor.c */
void outboard_doctor_startup(const char *path);
void outboard_doctor_examine(void);

/* coroutine.c */

/* Why a wait is over. */
enum outboard_woken {
	OUTBOARD_WOKEN,     /* what was waited for has come, or its time has */
	OUTBOARD_CANCELLED, /* give up */
};

void outboard_coroutine_startup(void);
outboard_visit *outboard_visit_here(void);
enum outboard_woken outboard_suspend(void);
bool outboard_wake(uint64_t waiter);
uint64_t outboard_waiter(void);
const zend_execute_data *outboard_frame_of(uint64_t waiter);
const zend_execute_data *outboard_frame_at(uint32_t coroutine);
bool outboard_is_cancelled(void);
void outboard_throw_if_cancelled(void);

/* loop.c */

/* How an answer comes about. */
enum outboard_way {
	OUTBOARD_ONE, /* the script gets the turn back after each request */
	OUTBOARD_ALL, /* it gets it back when the worker is to leave */
	OUTBOARD_SERVED, /* the same, and what the handler returns is the answer */
	OUTBOARD_SWOOLE, /* the same; the handler gets a request and a response of Swoole */
};

void outboard_loop_startup(void);
bool outboard_may_suspend(void);
void outboard_forked(void);
void outboard_main_visit(const outboard_event *event);
void outboard_end_fork(void);
uint64_t outboard_spawn(zval *callback, zval *ended);
void outboard_cancel_task(uint64_t id);
void outboard_timer_add(uint64_t id, zval *callback);
void outboard_timer_remove(uint64_t id);
bool outboard_attend(zval *handler, enum outboard_way way);

/* attempt.c */
void outboard_attempt(void (*step)(outboard_visit *visit), outboard_visit *visit);

/* in_use.c */
void outboard_in_use_startup(void);
void outboard_refuse(const zend_execute_data *there);

/* persistent.c */
void outboard_persistent_startup(void);

#endif
