/*
 * A worker script: its life cycle and its event loop. One block per file; used by what stands above it.
 */
#ifndef OUTBOARD_WORKER_H
#define OUTBOARD_WORKER_H

#include "coroutine/coroutine.h"

/* worker/loop.c */

/* How the script handles requests. */
enum outboard_serve_mode {
	OUTBOARD_SERVE_ONE, /* the call returns after each request */
	OUTBOARD_SERVE_ALL, /* the call returns when the worker stops */
	OUTBOARD_SERVE_RETURNED, /* the same, and the handler's result is the response */
	OUTBOARD_SERVE_RAW, /* the same; requests have no state, and a hook handles them (raw_request) */
};

void outboard_begin_main_request(const outboard_event *event);
bool outboard_serve_requests(zval *handler, enum outboard_serve_mode way);

void outboard_loop_startup(void);
void outboard_loop(void); /* never returns */
void outboard_loop_forget(void);
void outboard_end_fork(void);
void outboard_cancel_coroutine(coroutine *one);
void outboard_run_until_idle(void);
void outboard_stop_serving(void);
void outboard_request_done(void *exchange, const outboard_result *result);

void outboard_request_release(outboard_request_state *state);

/* worker/tasks.c */
uint64_t outboard_spawn(zval *callback, zval *ended);
void outboard_cancel_task(uint64_t id);
void outboard_timer_add(uint64_t id, zval *callback);
void outboard_timer_remove(uint64_t id);
void outboard_timer_run(uint64_t id);
void outboard_run_now(void (*run)(void *arg), void *arg);
bool outboard_immediate_run(void);
bool outboard_task_run(void);
void outboard_tasks_startup(void);
void outboard_tasks_forget(void);

/* worker/serve.c */
void outboard_serve_startup(void);
void outboard_serve(zval *handler, outboard_request_state *state);

/* worker/worker_script.c */
extern const zend_function_entry outboard_worker_functions[];
bool outboard_is_booting(void);
void outboard_begin_handling(void);
bool outboard_serve_or_perform(zval *handler, enum outboard_serve_mode mode);
const char *const *outboard_program_arguments(int *count);
void outboard_run_source(const unsigned char *text, size_t len, const char *name);

/* worker/output.c */
size_t outboard_ub_write(const char *bytes, size_t len);
void outboard_flush(void *exchange);
void outboard_log_message(const char *message, int severity);
void outboard_output_end(void);

#endif
