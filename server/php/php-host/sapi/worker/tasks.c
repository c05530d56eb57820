/*
 * What a worker script does besides handling requests: coroutines that it has started, and timers.
 *
 * Called by loop.c, which runs them in turn, and by what starts them. Invariant: a task that was started for a request is
 * one of the request's coroutines until it has ended, cancelled or not.
 */
#include "worker/worker.h"

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

/* A rewind puts it back; a child with a loop of its own forgets it. */
static struct {
	/* Coroutines that have not begun, in the order of their start. */
	task *first;
	task **last;
	uint32_t count; /* these, and those that run */
	uint64_t ids;
	/* Runs before all others, in the context that was switched to for it; NULL: nothing does. */
	void (*immediate)(void *arg);
	void *immediate_arg;
	HashTable timers; /* callbacks by number */
} tasks = {.last = &tasks.first};

/* How much there is besides requests. */
static void count_tasks(int more)
{
	OUTBOARD_ASSERT(more > 0 || tasks.count > 0);
	tasks.count += (uint32_t) more;
	outboard_others_may_run(tasks.count > 0 || tasks.timers.nNumOfElements > 0);
}

/* In the context that is at the top of the loop. */
static void run(task *one)
{
	outboard_request_state *state = one->state;
	OUTBOARD_ASSERT(!outboard_running->state && outboard_running->task == 0);
	OUTBOARD_ASSERT(!state || state->coroutines > 0);
	outboard_request_state_enter(state ? state : &outboard_boot_state);
	outboard_running->state = state;
	outboard_running->task = one->id;
	outboard_now.span = one->span;
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
	outboard_now.span = 0;
	count_tasks(-1);
	efree(one);
	if (state) {
		outboard_request_release(state);
	}
	outboard_running->state = NULL;
	outboard_request_state_enter(&outboard_boot_state);
}

void outboard_timer_run(uint64_t id)
{
	zval *callback = zend_hash_index_find(&tasks.timers, (zend_ulong) id);
	if (callback) {
		zval copy;
		ZVAL_COPY(&copy, callback);
		outboard_call_php(&copy, NULL);
		zval_ptr_dtor(&copy);
	}
}

/* What outboard_run_now() has in mind for this context. False: nothing. It belongs to no request, as the loop. */
bool outboard_immediate_run(void)
{
	void (*const run)(void *arg) = tasks.immediate;
	if (!run) {
		return false;
	}
	OUTBOARD_ASSERT(!outboard_running->state);
	tasks.immediate = NULL;
	run(tasks.immediate_arg);
	outboard_running->cancelled = false;
	count_tasks(-1);
	return true;
}

/* The first that has not begun. False: there is none. */
bool outboard_task_run(void)
{
	task *one = tasks.first;
	OUTBOARD_ASSERT((tasks.last == &tasks.first) == !one);
	if (!one) {
		return false;
	}
	tasks.first = one->next;
	if (!tasks.first) {
		tasks.last = &tasks.first;
	}
	run(one);
	return true;
}

/* Calls `callback` in a coroutine of the current request, then `ended` in any case. */
uint64_t outboard_spawn(zval *callback, zval *ended)
{
	task *one = emalloc(sizeof(*one));
	memset(one, 0, sizeof(*one));
	ZVAL_COPY(&one->callback, callback);
	ZVAL_COPY(&one->ended, ended);
	one->id = ++tasks.ids;
	one->span = outboard_now.span;
	one->state = outboard_running->state;
	if (one->state) {
		/* The running coroutine is one of them. */
		OUTBOARD_ASSERT(one->state->coroutines > 0);
		one->state->coroutines++;
	}
	*tasks.last = one;
	tasks.last = &one->next;
	count_tasks(1);
	return one->id;
}

/*
 * Runs it at once, in a coroutine of no request; where the engine forbids a switch, when the running
 * coroutine waits or ends.
 */
void outboard_run_now(void (*run)(void *arg), void *arg)
{
	count_tasks(1);
	if (zend_fiber_switch_blocked()) {
		task *one = ecalloc(1, sizeof(*one));
		one->run = run;
		one->arg = arg;
		one->next = tasks.first;
		tasks.first = one;
		if (tasks.last == &tasks.first) {
			tasks.last = &one->next;
		}
	} else {
		OUTBOARD_ASSERT(!tasks.immediate);
		tasks.immediate = run;
		tasks.immediate_arg = arg;
		outboard_switch_now(NULL);
	}
}

void outboard_cancel_task(uint64_t id)
{
	for (task *one = tasks.first; one; one = one->next) {
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
	zend_hash_index_update(&tasks.timers, (zend_ulong) id, callback);
	outboard_others_may_run(true);
}

void outboard_timer_remove(uint64_t id)
{
	zend_hash_index_del(&tasks.timers, (zend_ulong) id);
	outboard_others_may_run(tasks.count > 0 || tasks.timers.nNumOfElements > 0);
}

void outboard_tasks_startup(void)
{
	OUTBOARD_ASSERT(tasks.timers.nTableSize == 0 && tasks.count == 0);
	zend_hash_init(&tasks.timers, 8, NULL, ZVAL_PTR_DTOR, false);
}

/* In a forked child. */
void outboard_tasks_forget(void)
{
	tasks.first = NULL;
	tasks.last = &tasks.first;
	tasks.immediate = NULL;
	tasks.count = 0;
	zend_hash_clean(&tasks.timers);
	outboard_others_may_run(false);
}
