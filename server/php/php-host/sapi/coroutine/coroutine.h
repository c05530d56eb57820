/*
 * Coroutines and what is switched with them. One block per file; used by what waits, forks and loops.
 */
#ifndef OUTBOARD_COROUTINE_H
#define OUTBOARD_COROUTINE_H

#include "state/state.h"
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
	struct outboard_program_record *record; /* of a coroutine that the program has started; NULL: another */
	uint8_t wait_ended; /* why, in the program's terms */
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

/* Why a wait ended. */
enum outboard_wake_reason {
	OUTBOARD_WOKEN,     /* the event or the timeout */
	OUTBOARD_CANCELLED, /* the request is to end */
};

outboard_request_state *outboard_running_state(void);
enum outboard_wake_reason outboard_suspend(void);
bool outboard_wake(uint64_t waiter);
uint64_t outboard_waiter(void);
const zend_execute_data *outboard_frame_of(uint64_t waiter);
const zend_execute_data *outboard_frame_at(uint32_t coroutine);
bool outboard_is_cancelled(void);
void outboard_throw_if_cancelled(void);

void outboard_coroutine_startup(void (*loop)(void));
void outboard_others_may_run(bool may_run);
bool outboard_may_suspend(void);
bool outboard_is_autoloading(void);
void outboard_ready_forget(void);

/* coroutine/connection_guard.c */
void outboard_connection_guard_class(void);
void outboard_connection_guard_startup(const outboard_start *start);
void outboard_throw_connection_in_use(const zend_execute_data *there);

/* coroutine/persistent.c */
void outboard_persistent_startup(const outboard_start *start);

/* coroutine/stack.c */
void outboard_stack_report_overflow(const char *at);
bool outboard_stack_take(coroutine *one);
bool outboard_stack_begin(coroutine *one);
void outboard_stack_enter(const coroutine *one, zend_function *bottom);
void outboard_stack_release(coroutine *one);
void outboard_stack_startup(void *kind, zend_fiber_coroutine function);
size_t outboard_stack_bytes(void);
bool outboard_stack_set_bytes(size_t bytes);

/* coroutine/call_state.c */
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

#endif
