/*
 * Coroutines, as coroutine.c implements them and loop.c uses them.
 */
#ifndef OUTBOARD_COROUTINE_H
#define OUTBOARD_COROUTINE_H

#include "worker/worker_mode.h"
#include "zend_fibers.h"

enum phase {
	IDLE,    /* at the top of the loop */
	RUNNING, /* runs, or a Fiber of the script runs on it */
	WAITING,
	READY, /* is queued to run */
};

/* The first members of the engine's zend_fiber_stack, which is private to zend_fibers.c. */
struct outboard_stack_bounds {
	void *pointer;
	size_t size;
};

typedef struct coroutine {
	zend_fiber_context context;
	zend_fiber_context *resume; /* its own context, or that of a Fiber on it */
	const zend_execute_data *frame; /* while it waits */
	outboard_request_state *state;
	struct coroutine *next;
	uint32_t index;
	uint32_t serial;
	enum phase phase;
	bool cancelled;
	uint64_t task; /* 0: none */
	char *stack_top; /* coroutine/stack.c; NULL: the process's own */
	struct outboard_stack_bounds bounds; /* of its C stack, for observers of switches (sanitizer.c) */
	struct outboard_swoole_record *record; /* swoole/coroutines.c; NULL: no coroutine of Swoole */
	uint8_t wait_ended; /* why, by enum outboard_swoole_reason */
	bool is_cancellable;
} coroutine;

/* Index 0; it runs on the process's own stack. */
extern coroutine outboard_main_script;
/* Waits for all others: the main script, or in a forked child the coroutine that has forked it. */
extern coroutine *outboard_root;
extern coroutine *outboard_running;

uint64_t outboard_waiter_of(const coroutine *one);
coroutine *outboard_coroutine_at(uint32_t index); /* NULL beyond the last */
void outboard_ready(coroutine *one);
coroutine *outboard_next_ready(void);
coroutine *outboard_next_yielded(void);
void outboard_give_way(void);
coroutine *outboard_find_waiter(uint64_t waiter); /* NULL when its wait is over */
void outboard_switch_now(coroutine *next);
void outboard_become_idle(void);
void outboard_switch_to(coroutine *next);
bool outboard_reserve_context(void);
void outboard_coroutine_trim(void);

/* process/crash.c */
void outboard_crash_startup(void);

/* coroutine/stack.c */
void outboard_stack_report_overflow(const char *at);
bool outboard_stack_take(coroutine *one);
bool outboard_stack_begin(coroutine *one);
void outboard_stack_enter(const coroutine *one, zend_function *bottom);
void outboard_stack_release(coroutine *one);
void outboard_stack_startup(void *kind, zend_fiber_coroutine function);
size_t outboard_stack_bytes(void);
bool outboard_stack_set_bytes(size_t bytes);

/* worker/call_state.c */
typedef struct {
	bool is_empty;
	uint32_t open_span;
	zend_fcall_info compare;
	zend_fcall_info_cache compare_cache;
	unsigned serialize_lock;
	struct php_serialize_data *serialize_data;
	unsigned serialize_level;
	struct php_unserialize_data *unserialize_data;
	unsigned unserialize_level;
	const char *opening;
	zend_error_handling_t error_handling;
	zend_class_entry *exception_class;
	bool has_output;
	zend_stack handlers;
	php_output_handler *active_handler;
	php_output_handler *running_handler;
} outboard_call_state;

void outboard_call_state_save(outboard_call_state *state);
void outboard_call_state_restore(const outboard_call_state *state);

void outboard_ready_forget(void);

/* worker/loop.c */
void outboard_loop_forget(void);
void outboard_loop(void); /* never returns */
void outboard_run_now(void (*run)(void *arg), void *arg);
void outboard_cancel_coroutine(coroutine *one);
void outboard_run_until_idle(void);
void outboard_request_done(void *exchange, const outboard_result *result);

/* worker/protected_call.c */

/* After a bailout: the engine can only finish what has begun. */
extern bool outboard_broken;

void outboard_protected_call(void (*step)(void *arg), void *arg, outboard_request_state *state);
void outboard_call_php(zval *callback, outboard_request_state *state);

/* fork/one_shot.c */
void outboard_one_shot_prepare(void);
void outboard_one_shot_begin(void);
void outboard_one_shot_pin_resources(void);
void outboard_one_shot_end(void);

/* fork/reopen.c */
void outboard_reopen_files(void);

/* worker/serve.c */
void outboard_serve_startup(void);
void outboard_serve(zval *handler, outboard_request_state *state);

#endif
