/*
 * The loop of a resident script: what comes next is answered, run or resumed by whichever context
 * has the turn.
 *
 * Called by coroutine.c at the top of each context. Invariants: a visit is released once for each
 * coroutine that works for it, and is done with the last; when the worker is to leave, the main
 * script gets its turn back once nothing is left to be done.
 */
#include "coroutine.h"
#include "swoole.h"
#include "ext/standard/basic_functions.h"

typedef struct task {
	zval callback;
	zval ended;
	void (*run)(void *arg); /* instead of the two */
	void *arg;
	outboard_visit *visit;
	struct task *next;
	uint64_t id;
	bool cancelled;
} task;

static task *first_task;
static task **last_task = &first_task;
/* Goes before all others, in the context that has got the turn for it. */
static task *immediate;
/* Whether the main script waits until nothing is left to be waited for. */
static bool main_awaits_idle;
static uint32_t tasks;
static uint64_t task_ids;
static uint32_t visits;
static uint64_t visit_ids;
static zval *handler;
static enum outboard_way way;
static bool stopping;
static bool one_shot;
/* Whether the script has its turn back because a request was answered. */
static bool answered;
/* Whether the script has ended, and waits for the coroutines of its request. */
static bool awaits_others;
static HashTable timers;

/* Whether a wait here would let others go on. */
bool outboard_may_suspend(void)
{
	return outboard_events && (outboard_concurrency > 1 || tasks > 0 || timers.nNumOfElements > 0)
		&& !outboard_broken
		&& !zend_fiber_switch_blocked() && EG(current_execute_data);
}

static void release(outboard_visit *visit)
{
	if (--visit->coroutines == 1 && awaits_others) {
		outboard_wake(outboard_name_of(&outboard_main_script));
	} else if (visit->coroutines == 0) {
		void *exchange = visit->exchange;
		outboard_result result;
		outboard_visit_end(visit);
		result = visit->result;
		result.leaving = outboard_broken || outboard_process_is_spoilt;
		stopping |= one_shot || outboard_process_is_spoilt;
		visits--;
		outboard_rs_done(outboard_events, exchange, &result);
		if (way == OUTBOARD_ONE && outboard_main_script.phase == WAITING && handler) {
			handler = NULL;
			answered = true;
			outboard_main_script.serial++;
			outboard_ready(&outboard_main_script);
		}
	}
}

static int is_same(void *one, void *other)
{
	return one == other;
}

static void run_deferred(outboard_visit *visit)
{
	zend_llist *deferred = visit->deferred;
	while (deferred && zend_llist_count(deferred) > 0) {
		zval callback;
		zval *first = zend_llist_get_first(deferred);
		ZVAL_COPY(&callback, first);
		zend_llist_del_element(deferred, first, is_same);
		outboard_call(&callback, visit);
		zval_ptr_dtor(&callback);
	}
	if (deferred) {
		zend_llist_destroy(deferred);
		efree(deferred);
		visit->deferred = NULL;
	}
}

static void answer(const outboard_event *event)
{
	outboard_visit *visit;
	visits++;
	zend_try {
		outboard_doctor_examine();
		outboard_visit_begin(event->request, event->exchange);
	} zend_catch {
		outboard_broken = true;
		CG(unclean_shutdown) = 0;
	} zend_end_try();
	visit = outboard_active_visit;
	visit->coroutines = 1;
	visit->id = ++visit_ids;
	outboard_running->visit = visit;
	outboard_backtrace_begin(event->slot, event->generation);
	if (outboard_concurrency == 1) {
		outboard_time_limit_begin();
	}
	if (outboard_opcache_asked(event->request)) {
		outboard_opcache_show();
	} else if (!outboard_broken && way == OUTBOARD_SERVED) {
		outboard_serve(handler, visit);
	} else if (!outboard_broken) {
		outboard_call(handler, visit);
	}
	outboard_visit_answer(visit);
	if (visit->deferred || visit->coroutines > 1) {
		outboard_rs_finish(visit->exchange);
		run_deferred(visit);
	}
	outboard_time_limit_end();
	outboard_backtrace_end();
	outboard_running->cancelled = false;
	/* Its end may wait, for a connection to roll back: it is this context's until then. */
	release(visit);
	outboard_running->visit = NULL;
	outboard_visit_enter(&outboard_boot_visit);
}

/* In a fork of the snapshot: one request is all that it answers. */
void outboard_forked(void)
{
	one_shot = true;
	outboard_one_shot_begin();
	outboard_reopen_files();
	outboard_reset_forked();
}

bool outboard_is_fork(void)
{
	return one_shot;
}

/* The script itself goes on as the request's, after its snapshot was taken. */
void outboard_main_visit(const outboard_event *event)
{
	visits++;
	outboard_doctor_examine();
	outboard_visit_begin(event->request, event->exchange);
	/* Of the boot and of the request, as it is one script. */
	BG(user_shutdown_function_names) = outboard_boot_visit.state.shutdown_functions;
	outboard_boot_visit.state.shutdown_functions = NULL;
	outboard_main_script.visit = outboard_active_visit;
	outboard_main_script.visit->coroutines = 1;
	outboard_main_script.visit->id = ++visit_ids;
	outboard_backtrace_begin(event->slot, event->generation);
}

/* What the script has begun and not waited for goes on, and finds everything as it was. */
static void finish_before_end(outboard_visit *visit)
{
	outboard_visit_answer(visit);
	outboard_rs_finish(visit->exchange);
	run_deferred(visit);
	awaits_others = true;
	while (visit->coroutines > 1 && !outboard_broken) {
		outboard_suspend();
	}
}

/* In a fork, when the script has ended. */
void outboard_end_fork(void)
{
	outboard_visit *visit = outboard_main_script.visit;
	if (visit && (visit->deferred || visit->coroutines > 1) && !CG(unclean_shutdown)) {
		finish_before_end(visit);
	}
	outboard_one_shot_end();
	if (visit) {
		outboard_backtrace_end();
		outboard_rs_done(outboard_events, visit->exchange, &visit->result);
	}
}

static void run_task(task *one)
{
	outboard_visit *visit = one->visit;
	outboard_visit_enter(visit ? visit : &outboard_boot_visit);
	outboard_running->visit = visit;
	outboard_running->task = one->id;
	if (one->run) {
		one->run(one->arg);
	} else if (!one->cancelled) {
		outboard_call(&one->callback, visit);
	}
	outboard_running->cancelled = false;
	if (!Z_ISUNDEF(one->ended)) {
		outboard_call(&one->ended, visit);
		zval_ptr_dtor(&one->ended);
	}
	zval_ptr_dtor(&one->callback);
	outboard_running->task = 0;
	tasks--;
	efree(one);
	if (visit) {
		release(visit);
	}
	outboard_running->visit = NULL;
	outboard_visit_enter(&outboard_boot_visit);
}

void outboard_cancel_coroutine(coroutine *one)
{
	one->cancelled = true;
	outboard_rs_cancel_wait(outboard_events, outboard_name_of(one));
	outboard_wake(outboard_name_of(one));
}

/* Ends the waits of everything that works for this request. */
static void cancel_visit(const outboard_event *event)
{
	coroutine *one;
	outboard_swoole_cancel(event->exchange);
	for (uint32_t i = 0; (one = outboard_coroutine_at(i)); i++) {
		if (one->visit && one->visit->exchange == event->exchange) {
			outboard_backtrace_at(one->frame, event->slot, event->generation);
			one->visit->cancelled = true;
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
		outboard_call(&copy, NULL);
		zval_ptr_dtor(&copy);
	}
}

/* Nothing is left to be done, and nothing may be begun. */
static bool is_over(void)
{
	return (stopping || outboard_broken) && visits == 0 && outboard_main_script.phase == WAITING;
}

static void handle(const outboard_event *event)
{
	switch (event->kind) {
	case OUTBOARD_REQUEST:
		if (way == OUTBOARD_SWOOLE) {
			visits++;
			outboard_swoole_answer(handler, event);
		} else {
			answer(event);
		}
		break;
	case OUTBOARD_WAKE:
		outboard_wake(event->id);
		break;
	case OUTBOARD_TIMER:
		run_timer(event->id);
		break;
	case OUTBOARD_CANCEL:
		cancel_visit(event);
		break;
	case OUTBOARD_STOP:
		stopping = true;
		break;
	default:
		break;
	}
}

void outboard_loop(void)
{
	for (;;) {
		if (immediate) {
			task *one = immediate;
			immediate = NULL;
			run_task(one);
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
			bool may_start = handler && !stopping && !outboard_broken && visits < outboard_concurrency;
			if (main_awaits_idle && !may_start && outboard_rs_is_idle(outboard_events)) {
				main_awaits_idle = false;
				outboard_wake(outboard_name_of(&outboard_main_script));
				continue;
			}
			outboard_rs_next(outboard_events, may_start, true, &event);
			handle(&event);
		}
	}
}

/* Has the callback called in a coroutine of the present request; `ended` is called in any case. */
uint64_t outboard_spawn(zval *callback, zval *ended)
{
	task *one = emalloc(sizeof(*one));
	memset(one, 0, sizeof(*one));
	ZVAL_COPY(&one->callback, callback);
	ZVAL_COPY(&one->ended, ended);
	one->id = ++task_ids;
	one->visit = outboard_running->visit;
	if (one->visit) {
		one->visit->coroutines++;
	}
	*last_task = one;
	last_task = &one->next;
	tasks++;
	return one->id;
}

/* Has it run in a coroutine of no request, which gets the turn at once. */
void outboard_begin_now(void (*run)(void *arg), void *arg)
{
	task *one = ecalloc(1, sizeof(*one));
	one->run = run;
	one->arg = arg;
	tasks++;
	immediate = one;
	outboard_give_turn(NULL);
}

/* The main script waits here until no coroutine is ready, no timer set and nothing waited for. */
void outboard_run_until_idle(void)
{
	main_awaits_idle = true;
	outboard_suspend();
	main_awaits_idle = false;
}

/* A request that had no visit is over. */
void outboard_request_done(void *exchange, const outboard_result *result)
{
	outboard_result sent = *result;
	sent.leaving = outboard_broken || outboard_process_is_spoilt;
	stopping |= outboard_process_is_spoilt;
	visits--;
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

/* The main script waits here while requests are answered; false when the worker is to leave. */
bool outboard_attend(zval *callback, enum outboard_way how)
{
	zval copy;
	if (stopping || outboard_broken) {
		return false;
	}
	answered = false;
	ZVAL_COPY(&copy, callback);
	if (how == OUTBOARD_SERVED) {
		outboard_serve_startup();
	}
	handler = &copy;
	way = how;
	outboard_suspend();
	handler = NULL;
	zval_ptr_dtor(&copy);
	return answered || (!stopping && !outboard_broken);
}
