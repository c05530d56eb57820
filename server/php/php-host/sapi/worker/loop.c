/*
 * The event loop of a worker script: handles, runs or resumes what comes next, in the context that
 * runs.
 *
 * Called by coroutine.c at the top of each context. Invariants: each coroutine of a request
 * releases the request's state once, and the last one ends it; when the worker is to stop, the main
 * script resumes once nothing is left to do.
 */
#include "worker/worker.h"
#include "ext/standard/basic_functions.h"

/* All that the loop has in mind. A rewind puts it back; a child with a loop of its own forgets it (outboard_loop_forget). */
static struct {
	uint32_t requests; /* begun, not done */
	uint64_t request_ids;
	zval *handler; /* while the script waits for requests */
	enum outboard_serve_mode mode;
	bool handled; /* the script was resumed because a request was handled */

	bool stopping; /* no further request is taken */
	bool main_awaits_idle; /* the main script waits until nothing else is waited for */
	bool awaits_coroutines; /* the script has ended, and waits for the coroutines of its request */
} loop;

/* A coroutine of the request has ended. */
void outboard_request_release(outboard_request_state *state)
{
	OUTBOARD_ASSERT(state->coroutines > 0 && loop.requests > 0);
	if (--state->coroutines == 1 && loop.awaits_coroutines) {
		outboard_wake(outboard_waiter_of(&outboard_main_script));
	} else if (state->coroutines == 0) {
		void *exchange = state->exchange;
		outboard_result result;
		outboard_request_state_end(state);
		result = state->result;
		result.leaving = outboard_host.is_broken || outboard_host.is_tainted;
		loop.stopping |= outboard_host.is_fork || outboard_host.is_tainted;
		loop.requests--;
		outboard_rs_done(outboard_host.events, exchange, &result);
		if (loop.mode == OUTBOARD_SERVE_ONE && outboard_main_script.phase == WAITING && loop.handler) {
			loop.handler = NULL;
			loop.handled = true;
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

/* False: a hook has found that it must not be called. */
static bool is_handler_due(outboard_request_state *state)
{
	bool is_due = true;
	for (bool (*const *hook)(outboard_request_state *) = outboard_stations->handler_due; *hook && is_due; hook++) {
		is_due = (*hook)(state);
	}
	return is_due;
}

static void handle_request(const outboard_event *event)
{
	outboard_request_state *state;
	OUTBOARD_ASSERT(!outboard_running->state && event->request && event->exchange);
	loop.requests++;
	zend_try {
		OUTBOARD_RUN_HOOKS(request_due);
		outboard_request_state_begin(event->request, event->exchange);
	} zend_catch {
		outboard_host.is_broken = true;
		CG(unclean_shutdown) = 0;
	} zend_end_try();
	state = outboard_now.state;
	if (state == &outboard_boot_state) {
		/* There was no memory to begin with. */
		const outboard_result failed = {.outcome = OUTBOARD_FAILED};
		outboard_request_done(event->exchange, &failed);
		return;
	}
	state->coroutines = 1;
	state->id = ++loop.request_ids;
	outboard_running->state = state;
	outboard_backtrace_begin(event->slot, event->generation);
	if (outboard_host.concurrency == 1) {
		outboard_time_limit_begin();
	}
	if (OUTBOARD_ANY_HOOK(answer, event->request)) {
		state->is_called = true;
	} else if (outboard_host.is_broken || state->result.outcome != OUTBOARD_FINISHED
		|| (outboard_host.is_fork && !is_handler_due(state))) {
		/* Its answer is an error. */
	} else {
		state->is_called = true;
		if (loop.mode == OUTBOARD_SERVE_RETURNED) {
			outboard_serve(loop.handler, state);
		} else {
			outboard_call_php(loop.handler, state);
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
	outboard_request_release(state);
	outboard_running->state = NULL;
	outboard_request_state_enter(&outboard_boot_state);
}

/* The script continues as the handler of this request, after its snapshot. */
void outboard_begin_main_request(const outboard_event *event)
{
	OUTBOARD_ASSERT(outboard_running == &outboard_main_script && !outboard_main_script.state);
	loop.requests++;
	OUTBOARD_RUN_HOOKS(request_due);
	outboard_request_state_begin(event->request, event->exchange);
	/* The functions of the boot and of the request, because they are one script. */
	BG(user_shutdown_function_names) = outboard_boot_state.engine.shutdown_functions;
	outboard_boot_state.engine.shutdown_functions = NULL;
	ZVAL_COPY(&SG(callback_func), &outboard_boot_state.engine.sapi.callback_func);
	outboard_main_script.state = outboard_now.state;
	outboard_main_script.state->coroutines = 1;
	outboard_main_script.state->is_called = true;
	outboard_main_script.state->id = ++loop.request_ids;
	outboard_backtrace_begin(event->slot, event->generation);
}

/* Coroutines that the script has not awaited run to their end, with the request's state intact. */
static void finish_before_end(outboard_request_state *state)
{
	OUTBOARD_ASSERT(state == outboard_main_script.state);
	outboard_request_state_complete(state);
	outboard_rs_finish(state->exchange, state->result.handled);
	run_deferred(state);
	loop.awaits_coroutines = true;
	while (state->coroutines > 1 && !outboard_host.is_broken) {
		outboard_suspend();
	}
}

/* Called when the script of a fork has ended. */
void outboard_end_fork(void)
{
	outboard_request_state *state = outboard_main_script.state;
	OUTBOARD_ASSERT(outboard_host.is_fork && outboard_running == &outboard_main_script);
	if (state && (state->deferred || state->coroutines > 1) && !CG(unclean_shutdown)) {
		finish_before_end(state);
	}
	OUTBOARD_RUN_HOOKS(fork_ended);
	if (state) {
		outboard_request_state_judge(state);
		outboard_backtrace_end();
		outboard_rs_done(outboard_host.events, state->exchange, &state->result);
	}
}

/* In a forked child: what its parent has begun is not done here. */
void outboard_loop_forget(void)
{
	OUTBOARD_ASSERT(outboard_host.is_child);
	outboard_tasks_forget();
	loop.requests = 0;
	loop.handler = NULL;
	loop.main_awaits_idle = false;
	outboard_ready_forget();
}

void outboard_cancel_coroutine(coroutine *one)
{
	one->cancelled = true;
	outboard_rs_cancel_wait(outboard_host.events, outboard_waiter_of(one));
	outboard_wake(outboard_waiter_of(one));
}

/* Ends the waits of all coroutines of this request. */
static void cancel_request(const outboard_event *event)
{
	coroutine *one;
	OUTBOARD_RUN_HOOKS(raw_cancel, event->exchange);
	for (uint32_t i = 0; (one = outboard_coroutine_at(i)); i++) {
		if (one->state && one->state->exchange == event->exchange) {
			outboard_backtrace_at(one->frame, event->slot, event->generation);
			one->state->cancelled = true;
			outboard_cancel_coroutine(one);
		}
	}
}

/* Whether the main script resumes to stop. */
static bool is_over(void)
{
	return (loop.stopping || outboard_host.is_broken) && loop.requests == 0 && outboard_main_script.phase == WAITING;
}

static void handle(const outboard_event *event)
{
	switch (event->kind) {
	case OUTBOARD_REQUEST:
		if (loop.mode == OUTBOARD_SERVE_RAW) {
			loop.requests++;
			OUTBOARD_RUN_HOOKS(raw_request, loop.handler, event);
		} else {
			handle_request(event);
		}
		break;
	case OUTBOARD_STREAM:
		loop.requests++;
		OUTBOARD_RUN_HOOKS(stream_event);
		loop.requests--;
		break;
	case OUTBOARD_WAKE:
		outboard_wake(event->id);
		break;
	case OUTBOARD_TIMER:
		outboard_timer_run(event->id);
		break;
	case OUTBOARD_CANCEL:
		cancel_request(event);
		break;
	case OUTBOARD_STOP:
		loop.stopping = true;
		break;
	default:
		break;
	}
}

void outboard_loop(void)
{
	for (;;) {
		OUTBOARD_ASSERT(outboard_running != &outboard_main_script && !outboard_running->state);
		if (outboard_immediate_run()) {
			continue;
		}
		coroutine *next = outboard_next_ready();
		if (next) {
			outboard_become_idle();
			outboard_switch_to(next);
		} else if (outboard_task_run()) {
			continue;
		} else if (is_over() && loop.handler) {
			loop.handler = NULL;
			outboard_main_script.serial++;
			outboard_ready(&outboard_main_script);
		} else {
			outboard_event event = {0};
			bool may_start = loop.handler && !loop.stopping && !outboard_host.is_broken && loop.requests < outboard_host.concurrency;
			coroutine *yielded = outboard_next_yielded();
			if (!yielded && loop.main_awaits_idle && !may_start && outboard_rs_is_idle(outboard_host.events)) {
				loop.main_awaits_idle = false;
				outboard_wake(outboard_waiter_of(outboard_root));
				continue;
			}
			outboard_coroutine_trim();
			outboard_rs_next(outboard_host.events, may_start, !yielded, &event);
			if (yielded) {
				outboard_ready(yielded);
			}
			handle(&event);
		}
	}
}

/* The root waits here until no coroutine is ready, no timer is set and nothing is waited for. */
void outboard_run_until_idle(void)
{
	OUTBOARD_ASSERT(outboard_running == outboard_root);
	loop.main_awaits_idle = true;
	outboard_suspend();
	loop.main_awaits_idle = false;
}

/* The worker leaves when it has finished what it has begun. */
void outboard_stop_serving(void)
{
	loop.stopping = true;
}

/* A request that had no state of its own has ended. */
void outboard_request_done(void *exchange, const outboard_result *result)
{
	OUTBOARD_ASSERT(loop.requests > 0);
	outboard_result sent = *result;
	sent.leaving = outboard_host.is_broken || outboard_host.is_tainted;
	loop.stopping |= outboard_host.is_tainted;
	loop.requests--;
	outboard_rs_done(outboard_host.events, exchange, &sent);
}

void outboard_loop_startup(void)
{
	outboard_coroutine_startup(outboard_loop);
	outboard_tasks_startup();
}

/* The main script waits here while requests are handled; false when the worker is to stop. */
bool outboard_serve_requests(zval *callback, enum outboard_serve_mode new_mode)
{
	zval copy;
	if (loop.stopping || outboard_host.is_broken) {
		return false;
	}
	loop.handled = false;
	ZVAL_COPY(&copy, callback);
	if (new_mode == OUTBOARD_SERVE_RETURNED) {
		outboard_serve_startup();
	}
	loop.handler = &copy;
	loop.mode = new_mode;
	outboard_suspend();
	loop.handler = NULL;
	zval_ptr_dtor(&copy);
	if (outboard_host.has_exited) {
		zend_throw_unwind_exit();
		return false;
	}
	return loop.handled || (!loop.stopping && !outboard_host.is_broken);
}
