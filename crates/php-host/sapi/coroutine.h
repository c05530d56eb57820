/*
 * Contexts and turns: what coroutine.c has and loop.c works with.
 */
#ifndef OUTBOARD_COROUTINE_H
#define OUTBOARD_COROUTINE_H

#include "visit.h"
#include "zend_fibers.h"

enum phase {
	IDLE,    /* at the top of the loop */
	RUNNING, /* has the turn, or has given it to a Fiber of the script */
	WAITING,
	READY, /* is to have the turn */
};

typedef struct coroutine {
	zend_fiber_context context;
	zend_fiber_context *resume; /* where it waits: its own context, or that of a Fiber on it */
	const zend_execute_data *frame; /* while it waits */
	outboard_visit *visit;
	struct coroutine *next;
	uint32_t index;
	uint32_t serial;
	enum phase phase;
	bool cancelled;
	uint64_t task; /* that it runs; 0: none */
} coroutine;

/* Index 0; it runs on the process's own stack. */
extern coroutine outboard_main_script;
extern coroutine *outboard_running;

uint64_t outboard_name_of(const coroutine *one);
coroutine *outboard_coroutine_at(uint32_t index); /* NULL beyond the last */
void outboard_ready(coroutine *one);
coroutine *outboard_next_ready(void);
coroutine *outboard_coroutine_named(uint64_t name); /* NULL when its wait is over */
void outboard_give_turn(coroutine *next);
void outboard_become_idle(void);
void outboard_switch_to(coroutine *next);

/* call_state.c */
typedef struct {
	zend_fcall_info compare;
	zend_fcall_info_cache compare_cache;
	unsigned serialize_lock;
	struct php_serialize_data *serialize_data;
	unsigned serialize_level;
	struct php_unserialize_data *unserialize_data;
	unsigned unserialize_level;
	const char *opening;
} outboard_call_state;

void outboard_call_state_take(outboard_call_state *state);
void outboard_call_state_put(const outboard_call_state *state);

/* loop.c */
void outboard_loop(void); /* never returns */
void outboard_begin_now(void (*run)(void *arg), void *arg);
void outboard_cancel_coroutine(coroutine *one);
void outboard_run_until_idle(void);
void outboard_request_done(void *exchange, const outboard_result *result);

/* attempt.c */

/* Whether the engine can bring what it has to an end and no more. */
extern bool outboard_broken;

void outboard_contain(void (*step)(void *arg), void *arg, outboard_visit *visit);
void outboard_call(zval *callback, outboard_visit *visit);

/* one_shot.c */
void outboard_one_shot_begin(void);
void outboard_one_shot_keep_open(void);
void outboard_one_shot_end(void);

/* reopen.c */
void outboard_reopen_files(void);

/* serve.c */
void outboard_serve_startup(void);
void outboard_serve(zval *handler, outboard_visit *visit);

#endif
