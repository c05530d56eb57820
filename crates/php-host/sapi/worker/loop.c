/*
 * The event loop of a worker script: handles, runs or resumes what comes next, in the context that
 * runs.
 *
 * Called by coroutine.c at the top of each context. Invariants: each coroutine of a request
 * releases the request's state once, and the last one ends it; when the worker is to stop, the main
 * script resumes once nothing is left to do.
 */
#include "snapshot/boot_request.h"
#include "connections/connections.h"
#include "coroutine/coroutine.h"
#include "swoole/swoole.h"
#include "ext/standard/basic_functions.h"

typedef struct task {
	zval callback;
	zval ended;
	void (*run)(void *arg); /* instead of the two */
	void *arg;
	outboard_request_state *state;
	struct task *next;
	uint64_t id;
	uint32_t span; /* that has begun it */
	bool cancelled;
} task;

static task *first_task;
static task **last_task = &first_task;
/* Runs before all others, in the context that was switched to for it; NULL: nothing does. */
static void (*immediate)(void *arg);
static void *immediate_arg;
/* Whether the main script waits until nothing else is waited for. */
static bool main_awaits_idle;
static uint32_t tasks;
static uint64_t task_ids;
static uint32_t requests;
static uint64_t request_ids;
static zval *handler;
static enum outboard_serve_mode mode;
static bool stopping;
static bool one_shot;
/* Whether the script was resumed because a request was handled. */
static bool handled;
/* Whether the script has ended and waits for the coroutines of its request. */
static bool awaits_coroutines;
static HashTable timers;

/* Whether other coroutines could run during a wait. */
bool outboard_may_suspend(void)
{
	return outboard_events && (outboard_concurrency > 1 || tasks > 0 || timers.nNumOfElements > 0)
		&& !outboard_broken
		&& !zend_fiber_switch_blocked() && EG(current_execute_data);
}

/* To other coroutines a class that is being loaded does not exist (zend_lookup_class_ex). */
bool outboard_is_autoloading(void)
{
	return OUTBOARD_CLASSES_BEING_LOADED() > 0;
}

static void release(outboard_request_state *state)
{
	if (--state->coroutines == 1 && awaits_coroutines) {
		outboard_wake(outboard_waiter_of(&outboard_main_script));
	} else if (state->coroutines == 0) {
		void *exchange = state->exchange;
		outboard_result result;
		outboard_request_state_end(state);
		result = state->result;
		result.leaving = outboard_broken || outboard_process_is_tainted;
		stopping |= one_shot || outboard_process_is_tainted;
		requests--;
		outboard_rs_done(outboard_events, exchange, &result);
		if (mode == OUTBOARD_SERVE_ONE && outboard_main_script.phase == WAITING && handler) {
			handler = NULL;
			handled = true;
			outboard_main_script.serial++;
			outboard_ready(&outboard_main_script);
		}
	}
}

static int is_same(void *one, void *other)
{
	return one == other;
}

static void run_deferred(outboard_request_state *state)
{
	zend_llist *deferred = state->deferred;
	while (deferred && zend_llist_count(deferred) > 0) {
		zval callback;
		zval *first = zend_llist_get_first(deferred);
		ZVAL_COPY(&callback, first);
		zend_llist_del_element(deferred, first, is_same);
		outboard_call_php(&callback, state);
		zval_ptr_dtor(&callback);
	}
	if (deferred) {
		zend_llist_destroy(deferred);
		efree(deferred);
		state->deferred = NULL;
	}
}

static void handle_request(const outboard_event *event)
{
	outboard_request_state *state;
	requests++;
	zend_try {
		outboard_doctor_examine();
		outboard_request_state_begin(event->request, event->exchange);
	} zend_catch {
		outboard_broken = true;
		CG(unclean_shutdown) = 0;
	} zend_end_try();
	state = outboard_active_state;
	state->coroutines = 1;
	state->id = ++request_ids;
	outboard_running->state = state;
	outboard_backtrace_begin(event->slot, event->generation);
	if (outboard_concurrency == 1) {
		outboard_time_limit_begin();
	}
	if (outboard_is_opcache_request(event->request)) {
		state->is_called = true;
		outboard_opcache_show();
	} else if (outboard_broken || state->result.outcome != OUTBOARD_FINISHED
		|| (one_shot && !outboard_resume_before_handler(state))) {
		/* Its answer is an error. */
	} else {
		state->is_called = true;
		if (mode == OUTBOARD_SERVE_RETURNED) {
			outboard_serve(handler, state);
		} else {
			outboard_call_php(handler, state);
		}
	}
	outboard_request_state_complete(state);
	if (state->deferred || state->coroutines > 1) {
		outboard_rs_finish(state->exchange, state->result.handled);
		run_deferred(state);
	}
	outboard_time_limit_end();
	outboard_backtrace_end();
	outboard_running->cancelled = false;
	/* Ending the request may wait, e.g. to roll back, so it is still this context's. */
	release(state);
	outboard_running->state = NULL;
	outboard_request_state_enter(&outboard_boot_state);
}

void outboard_forked(void)
{
	one_shot = true;
	outboard_one_shot_begin();
	outboard_reopen_files();
	outboard_renewed_open();
	outboard_reset_random();
	outboard_boot_engines_seed();
}

bool outboard_is_fork(void)
{
	return one_shot;
}

/* The script continues as the handler of this request, after its snapshot. */
void outboard_begin_main_request(const outboard_event *event)
{
	requests++;
	outboard_doctor_examine();
	outboard_request_state_begin(event->request, event->exchange);
	outboard_boot_request_apply();
	/* The functions of the boot and of the request, because they are one script. */
	BG(user_shutdown_function_names) = outboard_boot_state.engine.shutdown_functions;
	outboard_boot_state.engine.shutdown_functions = NULL;
	ZVAL_COPY(&SG(callback_func), &outboard_boot_state.engine.sapi.callback_func);
	outboard_main_script.state = outboard_active_state;
	outboard_main_script.state->coroutines = 1;
	outboard_main_script.state->is_called = true;
	outboard_main_script.state->id = ++request_ids;
	outboard_backtrace_begin(event->slot, event->generation);
}

/* Coroutines that the script has not awaited run to their end, with the request's state intact. */
static void finish_before_end(outboard_request_state *state)
{
	outboard_request_state_complete(state);
	outboard_rs_finish(state->exchange, state->result.handled);
	run_deferred(state);
	awaits_coroutines = true;
	while (state->coroutines > 1 && !outboard_broken) {
		outboard_suspend();
	}
}

/* Called when the script of a fork has ended. */
void outboard_end_fork(void)
{
	outboard_request_state *state = outboard_main_script.state;
	if (state && (state->deferred || state->coroutines > 1) && !CG(unclean_shutdown)) {
		finish_before_end(state);
	}
	outboard_one_shot_end();
	if (state) {
		outboard_request_state_judge(state);
		outboard_backtrace_end();
		outboard_rs_done(outboard_events, state->exchange, &state->result);
	}
}

static void run_task(task *one)
{
	outboard_request_state *state = one->state;
	outboard_request_state_enter(state ? state : &outboard_boot_state);
	outboard_running->state = state;
	outboard_running->task = one->id;
	outboard_open_span = one->span;
	if (one->run) {
		one->run(one->arg);
	} else if (!one->cancelled) {
		outboard_call_php(&one->callback, state);
	}
	outboard_running->cancelled = false;
	if (!Z_ISUNDEF(one->ended)) {
		outboard_call_php(&one->ended, state);
		zval_ptr_dtor(&one->ended);
	}
	zval_ptr_dtor(&one->callback);
	outboard_running->task = 0;
	outboard_open_span = 0;
	tasks--;
	efree(one);
	if (state) {
		release(state);
	}
	outboard_running->state = NULL;
	outboard_request_state_enter(&outboard_boot_state);
}

/* In a forked child: what its parent has begun is not done here. */
void outboard_loop_forget(void)
{
	first_task = NULL;
	last_task = &first_task;
	immediate = NULL;
	tasks = 0;
	requests = 0;
	handler = NULL;
	main_awaits_idle = false;
	zend_hash_clean(&timers);
	outboard_ready_forget();
}

void outboard_cancel_coroutine(coroutine *one)
{
	one->cancelled = true;
	outboard_rs_cancel_wait(outboard_events, outboard_waiter_of(one));
	outboard_wake(outboard_waiter_of(one));
}

/* Ends the waits of all coroutines of this request. */
static void cancel_request(const outboard_event *event)
{
	coroutine *one;
	outboard_swoole_cancel(event->exchange);
	for (uint32_t i = 0; (one = outboard_coroutine_at(i)); i++) {
		if (one->state && one->state->exchange == event->exchange) {
			outboard_backtrace_at(one->frame, event->slot, event->generation);
			one->state->cancelled = true;
			outboard_cancel_coroutine(one);
		}
	}
}

static void run_timer(uint64_t id)
{
	zval *callback = zend_hash_index_find(&timers, (zend_ulong) id);
	if (callback) {
		zval copy;
		ZVAL_COPY(&copy, callback);
		outboard_call_php(&copy, NULL);
		zval_ptr_dtor(&copy);
	}
}

/* Whether the main script resumes to stop. */
static bool is_over(void)
{
	return (stopping || outboard_broken) && requests == 0 && outboard_main_script.phase == WAITING;
}

static void handle(const outboard_event *event)
{
	switch (event->kind) {
	case OUTBOARD_REQUEST:
		if (mode == OUTBOARD_SERVE_SWOOLE) {
			requests++;
			outboard_swoole_answer(handler, event);
		} else {
			handle_request(event);
		}
		break;
	case OUTBOARD_STREAM:
		requests++;
		outboard_swoole_receive();
		requests--;
		break;
	case OUTBOARD_WAKE:
		outboard_wake(event->id);
		break;
	case OUTBOARD_TIMER:
		run_timer(event->id);
		break;
	case OUTBOARD_CANCEL:
		cancel_request(event);
		break;
	case OUTBOARD_STOP:
		stopping = true;
		break;
	default:
		break;
	}
}

/* It belongs to no request, as the loop. */
static void run_immediate(void)
{
	void (*const run)(void *arg) = immediate;
	immediate = NULL;
	run(immediate_arg);
	outboard_running->cancelled = false;
	tasks--;
}

void outboard_loop(void)
{
	for (;;) {
		if (immediate) {
			run_immediate();
			continue;
		}
		coroutine *next = outboard_next_ready();
		if (next) {
			outboard_become_idle();
			outboard_switch_to(next);
		} else if (first_task) {
			task *one = first_task;
			first_task = one->next;
			if (!first_task) {
				last_task = &first_task;
			}
			run_task(one);
		} else if (is_over() && handler) {
			handler = NULL;
			outboard_main_script.serial++;
			outboard_ready(&outboard_main_script);
		} else {
			outboard_event event = {0};
			bool may_start = handler && !stopping && !outboard_broken && requests < outboard_concurrency;
			coroutine *yielded = outboard_next_yielded();
			if (!yielded && main_awaits_idle && !may_start && outboard_rs_is_idle(outboard_events)) {
				main_awaits_idle = false;
				outboard_wake(outboard_waiter_of(outboard_root));
				continue;
			}
			outboard_coroutine_trim();
			outboard_rs_next(outboard_events, may_start, !yielded, &event);
			if (yielded) {
				outboard_ready(yielded);
			}
			handle(&event);
		}
	}
}

/* Calls `callback` in a coroutine of the current request, then `ended` in any case. */
uint64_t outboard_spawn(zval *callback, zval *ended)
{
	task *one = emalloc(sizeof(*one));
	memset(one, 0, sizeof(*one));
	ZVAL_COPY(&one->callback, callback);
	ZVAL_COPY(&one->ended, ended);
	one->id = ++task_ids;
	one->span = outboard_open_span;
	one->state = outboard_running->state;
	if (one->state) {
		one->state->coroutines++;
	}
	*last_task = one;
	last_task = &one->next;
	tasks++;
	return one->id;
}

/*
 * Runs it at once, in a coroutine of no request; where the engine forbids a switch, when the running
 * coroutine waits or ends.
 */
void outboard_run_now(void (*run)(void *arg), void *arg)
{
	tasks++;
	if (zend_fiber_switch_blocked()) {
		task *one = ecalloc(1, sizeof(*one));
		one->run = run;
		one->arg = arg;
		one->next = first_task;
		first_task = one;
		if (last_task == &first_task) {
			last_task = &one->next;
		}
	} else {
		immediate = run;
		immediate_arg = arg;
		outboard_switch_now(NULL);
	}
}

/* The root waits here until no coroutine is ready, no timer is set and nothing is waited for. */
void outboard_run_until_idle(void)
{
	main_awaits_idle = true;
	outboard_suspend();
	main_awaits_idle = false;
}

/* The worker leaves when it has finished what it has begun. */
void outboard_stop_serving(void)
{
	stopping = true;
}

/* A request that had no state of its own has ended. */
void outboard_request_done(void *exchange, const outboard_result *result)
{
	outboard_result sent = *result;
	sent.leaving = outboard_broken || outboard_process_is_tainted;
	stopping |= outboard_process_is_tainted;
	requests--;
	outboard_rs_done(outboard_events, exchange, &sent);
}

void outboard_cancel_task(uint64_t id)
{
	for (task *one = first_task; one; one = one->next) {
		if (one->id == id) {
			one->cancelled = true;
		}
	}
	coroutine *working;
	for (uint32_t i = 0; (working = outboard_coroutine_at(i)); i++) {
		if (working->task == id) {
			outboard_cancel_coroutine(working);
		}
	}
}

void outboard_timer_add(uint64_t id, zval *callback)
{
	Z_TRY_ADDREF_P(callback);
	zend_hash_index_update(&timers, (zend_ulong) id, callback);
}

void outboard_timer_remove(uint64_t id)
{
	zend_hash_index_del(&timers, (zend_ulong) id);
}

void outboard_loop_startup(void)
{
	zend_hash_init(&timers, 8, NULL, ZVAL_PTR_DTOR, false);
}

/* The main script waits here while requests are handled; false when the worker is to stop. */
bool outboard_serve_requests(zval *callback, enum outboard_serve_mode new_mode)
{
	zval copy;
	if (stopping || outboard_broken) {
		return false;
	}
	handled = false;
	ZVAL_COPY(&copy, callback);
	if (new_mode == OUTBOARD_SERVE_RETURNED) {
		outboard_serve_startup();
	}
	handler = &copy;
	mode = new_mode;
	outboard_suspend();
	handler = NULL;
	zval_ptr_dtor(&copy);
	return handled || (!stopping && !outboard_broken);
}
