/*
 * Coroutines of a worker script: contexts with their own stacks, and the queue of those that can
 * run. Called by loop.c, and by everything that waits.
 *
 * The loop migrates. An idle context runs it and calls handlers and tasks inline; when one of these
 * waits, another context takes over the loop, and the first one resumes when its wait has ended. So
 * a request that never waits needs no switch.
 *
 *   main script ──handle_request()──▶ waits        (index 0)
 *   context 1   loop ▶ handler ▶ waits             its stack holds the handler
 *   context 2   loop ▶ …                           has the turn
 *   context 3   idle, at the top of the loop       takes it when 2 waits
 *
 *
 * Invariants: one context runs at a time; a waiting context is resumed once per wait (`serial`
 * distinguishes a late wake-up); the active request state is that of the running context.
 */
#include "coroutine/coroutine.h"

/*
 * Idle contexts that keep their memory. That of others is returned to the system when they have not
 * been needed for a second.
 */
#define WARM_CONTEXTS 1024
#define LULL_US 1000000
#define RELEASED_AT_ONCE 256

typedef struct {
	coroutine *first;
	coroutine *last;
} queue;

/* All contexts, whatever they do. A rewind puts them back; a child with a loop of its own forgets who is ready. */
static struct {
	coroutine **all; /* by index */
	uint32_t count;
	queue ready;
	queue yielded; /* ready after the events that have come */

	/* At the top of the loop, the last one first; those whose memory was returned begin anew. */
	coroutine *idle;
	coroutine *cold;
	uint32_t idle_count;
	uint32_t idle_least; /* since the last lull */
	int64_t lull_us; /* the end of the present one */

	void (*loop)(void); /* runs at the top of each context, and never returns */
	bool has_others; /* tasks or timers could run during a wait */
} contexts;

coroutine outboard_main_script;
coroutine *outboard_running = &outboard_main_script;
coroutine *outboard_root = &outboard_main_script;

static void append(queue *to, coroutine *one)
{
	OUTBOARD_ASSERT(one->phase != IDLE && to->last != one);
	one->phase = READY;
	one->next = NULL;
	if (to->last) {
		to->last->next = one;
	} else {
		to->first = one;
	}
	to->last = one;
}

static coroutine *take(queue *from)
{
	coroutine *one = from->first;
	if (one) {
		from->first = one->next;
		OUTBOARD_ASSERT(one->phase == READY);
		if (!from->first) {
			from->last = NULL;
		}
	}
	return one;
}

void outboard_ready(coroutine *one)
{
	append(&contexts.ready, one);
}

coroutine *outboard_next_ready(void)
{
	return take(&contexts.ready);
}

/* One that has given way; the loop looks for events before it is ready. */
coroutine *outboard_next_yielded(void)
{
	return take(&contexts.yielded);
}

/* In a forked child: none of its parent's coroutines runs here. */
void outboard_ready_forget(void)
{
	contexts.ready.first = NULL;
	contexts.ready.last = NULL;
}

uint64_t outboard_waiter_of(const coroutine *one)
{
	return (uint64_t) one->serial << 32 | one->index;
}

coroutine *outboard_find_waiter(uint64_t waiter)
{
	uint32_t index = (uint32_t) waiter;
	coroutine *one = index < contexts.count ? contexts.all[index] : NULL;
	OUTBOARD_ASSERT(!one || one->index == index);
	return one && one->serial == (uint32_t) (waiter >> 32) ? one : NULL;
}

coroutine *outboard_coroutine_at(uint32_t index)
{
	return index < contexts.count ? contexts.all[index] : NULL;
}

/* Ends the current wait of a coroutine; false if it has ended already. */
bool outboard_wake(uint64_t waiter)
{
	coroutine *one = outboard_find_waiter(waiter);
	if (!one || one->phase != WAITING) {
		return false;
	}
	OUTBOARD_ASSERT(one != outboard_running);
	one->serial++;
	outboard_ready(one);
	return true;
}

static void register_coroutine(coroutine *one)
{
	OUTBOARD_ASSERT(one->serial == 0 && contexts.count < UINT32_MAX);
	if ((contexts.count & (contexts.count - 1)) == 0) {
		contexts.all = perealloc(contexts.all, sizeof(*contexts.all) * (contexts.count ? contexts.count * 2 : 1), 1);
	}
	one->index = contexts.count;
	one->serial = 1; /* waiter 0 does not exist */
	contexts.all[contexts.count++] = one;
}

/* The bottom frame of a context; the engine reports errors in the loop as this function's. */
static zend_internal_function bottom_function;

static void begin_stack(void)
{
	outboard_stack_enter(outboard_running, (zend_function *) &bottom_function);
	EG(active_fiber) = NULL;
	EG(jit_trace_num) = 0;
	/* Not the value under a waiting `@` statement (zend_fiber_execute in zend_fibers.c);
	 * EG(error_reporting_ini_entry) is NULL until the first change. */
	const zend_ini_entry *reporting =
		zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("error_reporting"));
	EG(error_reporting) = reporting && reporting->value
		? (int) ZEND_STRTOL(ZSTR_VAL(reporting->value), NULL, 0) : E_ALL;
}

static ZEND_STACK_ALIGNED void run_context(zend_fiber_transfer *transfer)
{
	zend_first_try {
		begin_stack();
		contexts.loop();
	} zend_end_try();
	/* Not reached: the loop ends only with the process. */
	transfer->context = EG(main_fiber_context);
}

/* Distinguishes our contexts from those of Fibers. */
static char kind;

static bool begin_context(coroutine *one)
{
	one->resume = &one->context;
	return outboard_stack_begin(one);
}

static coroutine *new_context(void)
{
	coroutine *one = pecalloc(1, sizeof(*one), 1);
	if (!outboard_stack_take(one) || !begin_context(one)) {
		pefree(one, 1);
		return NULL;
	}
	register_coroutine(one);
	return one;
}

void outboard_switch_to(coroutine *next)
{
	coroutine *self = outboard_running;
	zend_fiber_transfer transfer = {.context = next->resume};
	if (next == self) {
		self->phase = RUNNING;
		return;
	}
	/* One context runs at a time: this one has said why it stops, and the next one does not run. */
	OUTBOARD_ASSERT(self->phase != RUNNING && next->phase != RUNNING);
	ZVAL_NULL(&transfer.value);
	self->resume = EG(current_fiber_context);
	outboard_request_state_enter(next->state ? next->state : &outboard_boot_state);
	OUTBOARD_ASSERT(outboard_now.state == (next->state ? next->state : &outboard_boot_state));
	next->phase = RUNNING;
	outboard_running = next;
	zend_fiber_switch_context(&transfer);
	/* At the end of the script the engine unwinds its Fibers, wherever they wait. */
	OUTBOARD_ASSERT((outboard_running == self && self->phase == RUNNING) || (EG(flags) & EG_FLAGS_IN_SHUTDOWN));
}

/* A context at the top of the loop. */
static coroutine *idle_context(void)
{
	coroutine *next = contexts.idle;
	if (next) {
		OUTBOARD_ASSERT(next->phase == IDLE && contexts.idle_count > 0);
		contexts.idle = next->next;
		contexts.idle_count--;
		contexts.idle_least = contexts.idle_count < contexts.idle_least ? contexts.idle_count : contexts.idle_least;
		return next;
	}
	next = contexts.cold;
	if (next) {
		contexts.cold = next->next;
		return begin_context(next) ? next : NULL;
	}
	return new_context();
}

static void add_idle(coroutine *one)
{
	/* Whatever it did belongs to a request that goes on without it. */
	OUTBOARD_ASSERT(one != &outboard_main_script && !one->state && one->task == 0);
	one->phase = IDLE;
	one->next = contexts.idle;
	contexts.idle = one;
	contexts.idle_count++;
}

/* Whether there is a context for the next wait; false when there is no memory for one. */
bool outboard_reserve_context(void)
{
	if (contexts.idle) {
		return true;
	}
	coroutine *one = idle_context();
	if (one) {
		add_idle(one);
	}
	return one != NULL;
}

/*
 * Returns the memory of contexts that were idle since the last lull. Called when the loop has nothing to
 * do; their frames, which are all of the loop itself, are not returned to.
 */
void outboard_coroutine_trim(void)
{
	if (contexts.idle_count <= WARM_CONTEXTS) {
		return;
	}
	const int64_t now_us = outboard_now_us();
	if (now_us < contexts.lull_us) {
		return;
	}
	OUTBOARD_ASSERT(contexts.idle_least <= contexts.idle_count);
	const uint32_t needed = contexts.idle_count - contexts.idle_least;
	const uint32_t warm = needed < WARM_CONTEXTS ? WARM_CONTEXTS : needed;
	coroutine *last = contexts.idle;
	for (uint32_t i = 1; i < warm; i++) {
		last = last->next;
	}
	for (int i = 0; i < RELEASED_AT_ONCE && last->next; i++) {
		coroutine *one = last->next;
		last->next = one->next;
		OUTBOARD_ASSERT(one->phase == IDLE && contexts.idle_least > 0);
		contexts.idle_count--;
		contexts.idle_least--;
		outboard_stack_release(one);
		one->next = contexts.cold;
		contexts.cold = one;
	}
	if (!last->next) {
		contexts.idle_least = contexts.idle_count;
		contexts.lull_us = now_us + LULL_US;
	}
}

/* The context that takes over the loop when the running one waits. */
static coroutine *successor(void)
{
	coroutine *next = outboard_next_ready();
	return next ? next : idle_context();
}

enum outboard_wake_reason outboard_suspend(void)
{
	coroutine *self = outboard_running;
	coroutine *next;
	outboard_call_state call_state;
	if (self->phase == RUNNING) {
		self->phase = WAITING;
	}
	self->frame = EG(current_execute_data);
	next = successor();
	if (!next) {
		zend_error_noreturn(E_ERROR, "Out of memory for another coroutine");
	}
	outboard_call_state_save(&call_state);
	outboard_switch_to(next);
	outboard_call_state_restore(&call_state);
	self->frame = NULL;
	return self->cancelled ? OUTBOARD_CANCELLED : OUTBOARD_WOKEN;
}

/*
 * Switches at once: to a coroutine whose wait is over, or, without one, to a context at the top of the
 * loop. The running one resumes as soon as that one waits, before all others that are ready.
 */
void outboard_switch_now(coroutine *next)
{
	coroutine *self = outboard_running;
	outboard_call_state call_state;
	if (!next) {
		next = idle_context();
	}
	if (!next) {
		zend_error_noreturn(E_ERROR, "Out of memory for another coroutine");
	}
	self->phase = READY;
	self->next = contexts.ready.first;
	contexts.ready.first = self;
	if (!contexts.ready.last) {
		contexts.ready.last = self;
	}
	self->frame = EG(current_execute_data);
	outboard_call_state_save(&call_state);
	outboard_switch_to(next);
	outboard_call_state_restore(&call_state);
	self->frame = NULL;
}

/* The running coroutine continues after others, and after the events that have come. */
void outboard_give_way(void)
{
	OUTBOARD_ASSERT(outboard_running->phase == RUNNING);
	append(&contexts.yielded, outboard_running);
	outboard_suspend();
}

uint64_t outboard_waiter(void)
{
	return outboard_waiter_of(outboard_running);
}

const zend_execute_data *outboard_frame_of(uint64_t waiter)
{
	coroutine *one = outboard_find_waiter(waiter);
	return one ? one->frame : NULL;
}

/* Where the coroutine with this index waits, or NULL. */
const zend_execute_data *outboard_frame_at(uint32_t coroutine)
{
	return coroutine < contexts.count ? contexts.all[coroutine]->frame : NULL;
}

/* Whether another coroutine could run during a wait, although a worker has one request at a time. */
void outboard_others_may_run(bool may_run)
{
	contexts.has_others = may_run;
}

bool outboard_may_suspend(void)
{
	return outboard_host.events && (outboard_host.concurrency > 1 || contexts.has_others)
		&& !outboard_host.is_broken
		&& !zend_fiber_switch_blocked() && EG(current_execute_data);
}

/* To other coroutines a class that is being loaded does not exist (zend_lookup_class_ex). */
bool outboard_is_autoloading(void)
{
	return OUTBOARD_CLASSES_BEING_LOADED() > 0;
}

bool outboard_is_cancelled(void)
{
	return outboard_running->cancelled;
}

/* A request past its deadline unwinds; `finally` blocks run, `catch` blocks do not. */
void outboard_throw_if_cancelled(void)
{
	if (outboard_running->cancelled && !EG(exception) && EG(current_execute_data)) {
		zend_throw_graceful_exit();
	}
}

void outboard_become_idle(void)
{
	add_idle(outboard_running);
}

outboard_request_state *outboard_running_state(void)
{
	return outboard_running->state;
}

void outboard_coroutine_startup(void (*loop)(void))
{
	OUTBOARD_ASSERT(loop && contexts.count == 0);
	contexts.loop = loop;
	register_coroutine(&outboard_main_script);
	outboard_main_script.phase = RUNNING;
	bottom_function.type = ZEND_INTERNAL_FUNCTION;
	bottom_function.function_name =
		zend_string_init_interned(ZEND_STRL("frankenphp_handle_request"), true);
	outboard_stack_startup(&kind, run_context);
}
