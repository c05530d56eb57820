/*
 * Coroutines of a resident script: contexts with stacks of their own, and the loop that gives
 * each its turn.
 *
 * The loop migrates. Whoever has nothing to do runs it and calls handlers and tasks inline; when
 * one of these waits, another context takes the loop over, and the first goes on where it was once
 * its wait is over. A request that never waits so costs no switch.
 *
 *   main script ──handle_request()──▶ waits        (index 0)
 *   context 1   loop ▶ handler ▶ waits             its stack holds the handler
 *   context 2   loop ▶ …                           has the turn
 *   context 3   idle, at the top of the loop       takes it when 2 waits
 *
 * Invariants: one context runs at a time; a context that waits is resumed once per wait (`serial`
 * tells a late wake-up from a present one); the active visit is that of the running context.
 */
#include "visit.h"
#include "zend_fibers.h"

/*
 * A page of PHP's stack; it grows by such pages. Where there may be many coroutines each has a
 * small one, where there are few a call seldom needs another.
 */
#define LARGE_PAGE_BYTES (32 * 1024)
#define SMALL_PAGE_BYTES (4 * 1024)

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

typedef struct task {
	zval callback;
	zval ended;
	outboard_visit *visit;
	struct task *next;
	uint64_t id;
	bool cancelled;
} task;

typedef struct {
	coroutine *first;
	coroutine *last;
} queue;

static coroutine main_script;
static coroutine *running = &main_script;
static coroutine **all;
static uint32_t count;
static coroutine *idle;
static queue ready;
static task *first_task;
static task **last_task = &first_task;
static uint32_t tasks;
static uint64_t task_ids;
static uint32_t visits;
static uint64_t visit_ids;
static zval *handler;
static enum outboard_way way;
static bool stopping;
static bool one_shot;
static bool broken;
/* Whether the script has its turn back because a request was answered. */
static bool answered;
static HashTable timers;

static void ready_push(coroutine *one)
{
	one->phase = READY;
	one->next = NULL;
	if (ready.last) {
		ready.last->next = one;
	} else {
		ready.first = one;
	}
	ready.last = one;
}

static coroutine *ready_pop(void)
{
	coroutine *one = ready.first;
	if (one) {
		ready.first = one->next;
		if (!ready.first) {
			ready.last = NULL;
		}
	}
	return one;
}

static uint64_t name_of(const coroutine *one)
{
	return (uint64_t) one->serial << 32 | one->index;
}

static coroutine *named(uint64_t name)
{
	uint32_t index = (uint32_t) name;
	coroutine *one = index < count ? all[index] : NULL;
	return one && one->serial == (uint32_t) (name >> 32) ? one : NULL;
}

/* Ends the present wait of a coroutine; false when it is over already. */
static bool wake(uint64_t name)
{
	coroutine *one = named(name);
	if (!one || one->phase != WAITING) {
		return false;
	}
	one->serial++;
	ready_push(one);
	return true;
}

static void register_coroutine(coroutine *one)
{
	if ((count & (count - 1)) == 0) {
		all = perealloc(all, sizeof(*all) * (count ? count * 2 : 1), 1);
	}
	one->index = count;
	one->serial = 1; /* 0 and index 0 together name nobody */
	all[count++] = one;
}

static void loop(void);

/* The bottom frame of a context; what is raised in here is this function's, to the script. */
static zend_internal_function bottom_function;

static void begin_stack(void)
{
	zend_execute_data *frame;
	EG(vm_stack) = NULL;
	zend_vm_stack_init_ex(
		outboard_concurrency <= OUTBOARD_FEW ? LARGE_PAGE_BYTES : SMALL_PAGE_BYTES);
	frame = (zend_execute_data *) EG(vm_stack_top);
	EG(vm_stack_top) += ZEND_CALL_FRAME_SLOT;
	memset(frame, 0, sizeof(*frame));
	frame->func = (zend_function *) &bottom_function;
	EG(current_execute_data) = frame;
	EG(active_fiber) = NULL;
	EG(jit_trace_num) = 0;
	OUTBOARD_FORGET_STACK_LIMIT();
	/* Not that of a statement under `@` which waits (zend_fiber_execute in zend_fibers.c); the
	 * engine's own pointer to the entry is there only once somebody has changed it. */
	const zend_ini_entry *reporting =
		zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("error_reporting"));
	EG(error_reporting) = reporting && reporting->value
		? (int) ZEND_STRTOL(ZSTR_VAL(reporting->value), NULL, 0) : E_ALL;
}

static ZEND_STACK_ALIGNED void run_context(zend_fiber_transfer *transfer)
{
	zend_first_try {
		begin_stack();
		loop();
	} zend_end_try();
	/* Not reached: the loop ends with the process. */
	transfer->context = EG(main_fiber_context);
}

/* Tells our contexts from those of Fibers. */
static char kind;

static coroutine *new_context(void)
{
	coroutine *one = pecalloc(1, sizeof(*one), 1);
	register_coroutine(one);
	if (!OUTBOARD_IS_MADE(
		zend_fiber_init_context(&one->context, &kind, run_context, EG(fiber_stack_size)))) {
		return NULL;
	}
	one->resume = &one->context;
	return one;
}

static void switch_to(coroutine *next)
{
	coroutine *self = running;
	zend_fiber_transfer transfer = {.context = next->resume};
	if (next == self) {
		self->phase = RUNNING;
		return;
	}
	ZVAL_NULL(&transfer.value);
	self->resume = EG(current_fiber_context);
	outboard_visit_enter(next->visit ? next->visit : &outboard_boot_visit);
	next->phase = RUNNING;
	running = next;
	zend_fiber_switch_context(&transfer);
}

/* Who takes the loop over when the running context waits. */
static coroutine *successor(void)
{
	coroutine *next = ready_pop();
	if (next) {
		return next;
	}
	next = idle;
	if (next) {
		idle = next->next;
		return next;
	}
	return new_context();
}

enum outboard_woken outboard_suspend(void)
{
	coroutine *self = running;
	coroutine *next;
	if (self->phase == RUNNING) {
		self->phase = WAITING;
	}
	self->frame = EG(current_execute_data);
	next = successor();
	if (!next) {
		zend_error_noreturn(E_ERROR, "Out of memory for another coroutine");
	}
	switch_to(next);
	self->frame = NULL;
	return self->cancelled ? OUTBOARD_CANCELLED : OUTBOARD_WOKEN;
}

uint64_t outboard_waiter(void)
{
	return name_of(running);
}

const zend_execute_data *outboard_frame_of(uint64_t waiter)
{
	coroutine *one = named(waiter);
	return one ? one->frame : NULL;
}

/* Where the coroutine with this index waits, if it does. */
const zend_execute_data *outboard_frame_at(uint32_t coroutine)
{
	return coroutine < count ? all[coroutine]->frame : NULL;
}

/* Whether the running coroutine is to end. */
bool outboard_is_cancelled(void)
{
	return running->cancelled;
}

/* Whether a wait here would let others go on. */
bool outboard_may_suspend(void)
{
	return outboard_events && (outboard_concurrency > 1 || tasks > 0 || timers.nNumOfElements > 0)
		&& !broken
		&& !zend_fiber_switch_blocked() && EG(current_execute_data);
}

/* A request whose time is over unwinds; `finally` blocks run, `catch` blocks do not. */
void outboard_throw_if_cancelled(void)
{
	if (running->cancelled && !EG(exception) && EG(current_execute_data)) {
		zend_throw_graceful_exit();
	}
}

static void release(outboard_visit *visit)
{
	if (--visit->coroutines == 0) {
		void *exchange = visit->exchange;
		outboard_result result;
		outboard_visit_end(visit);
		result = visit->result;
		result.leaving = broken;
		stopping |= one_shot;
		visits--;
		outboard_rs_done(outboard_events, exchange, &result);
		if (way == OUTBOARD_ONE && main_script.phase == WAITING && handler) {
			handler = NULL;
			answered = true;
			main_script.serial++;
			ready_push(&main_script);
		}
	}
}

/* An uncaught exception goes to the script's handler, or is reported as PHP does. */
static void report_exception(outboard_visit *visit)
{
	if (zend_is_unwind_exit(EG(exception)) || zend_is_graceful_exit(EG(exception))) {
		zend_clear_exception();
		return;
	}
	if (Z_TYPE(EG(user_exception_handler)) != IS_UNDEF) {
		zend_user_exception_handler();
	}
	if (EG(exception)) {
		if (zend_is_unwind_exit(EG(exception))) {
			zend_clear_exception();
			return;
		}
		zend_exception_error(EG(exception), E_ERROR);
		EG(exception) = NULL;
		if (visit) {
			visit->result.outcome = OUTBOARD_FAILED;
		}
	}
}

/*
 * What a bailout (out of memory, a fatal error) leaves is an engine that can bring what it has to
 * an end and no more: the worker takes no further request. What the failed request has allocated
 * stays, so others get room beside it.
 */
static void settle(zend_execute_data *frame, outboard_visit *visit)
{
	/* Some bailouts end within zend_call_function, and show here alone. */
	if (!CG(unclean_shutdown) && !OUTBOARD_HAS_OOM()) {
		return;
	}
	broken = true;
	CG(unclean_shutdown) = false;
	OUTBOARD_FORGET_OOM();
	EG(current_execute_data) = frame;
	if (EG(exception)) {
		zend_clear_exception();
	}
	if (visit) {
		visit->result.outcome = OUTBOARD_FAILED;
	}
	if (PG(memory_limit) > 0) {
		zend_set_memory_limit(zend_memory_usage(true) + (size_t) PG(memory_limit));
	}
}

/* Calls PHP; whatever happens in there ends here. */
static void call(zval *callback, outboard_visit *visit)
{
	zend_execute_data *const frame = EG(current_execute_data);
	zval result;
	ZVAL_UNDEF(&result);
	zend_try {
		zend_fcall_info info;
		zend_fcall_info_cache cache;
		if (zend_fcall_info_init(callback, 0, &info, &cache, NULL, NULL) == SUCCESS) {
			info.retval = &result;
			zend_call_function(&info, &cache);
		}
		if (EG(exception)) {
			report_exception(visit);
		}
	} zend_catch {
		CG(unclean_shutdown) = true;
	} zend_end_try();
	settle(frame, visit);
	zval_ptr_dtor(&result);
}

/* A step of a request's end, in which PHP may be called. */
void outboard_attempt(void (*step)(outboard_visit *visit), outboard_visit *visit)
{
	zend_execute_data *const frame = EG(current_execute_data);
	zend_try {
		step(visit);
		if (EG(exception)) {
			report_exception(visit);
		}
	} zend_catch {
		CG(unclean_shutdown) = true;
	} zend_end_try();
	settle(frame, visit);
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
		call(&callback, visit);
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
		broken = true;
		CG(unclean_shutdown) = 0;
	} zend_end_try();
	visit = outboard_active_visit;
	visit->coroutines = 1;
	visit->id = ++visit_ids;
	running->visit = visit;
	outboard_backtrace_begin(event->slot, event->generation);
	if (outboard_concurrency == 1) {
		outboard_time_limit_begin();
	}
	if (!broken) {
		call(handler, visit);
	}
	outboard_visit_answer(visit);
	if (visit->deferred || visit->coroutines > 1) {
		outboard_rs_finish(visit->exchange);
		run_deferred(visit);
	}
	outboard_time_limit_end();
	outboard_backtrace_end();
	running->cancelled = false;
	/* Its end may wait, for a connection to roll back: it is this context's until then. */
	release(visit);
	running->visit = NULL;
	outboard_visit_enter(&outboard_boot_visit);
}

/* In a fork of the snapshot: one request is all that it answers. */
void outboard_forked(void)
{
	one_shot = true;
	outboard_reset_forked();
}

/* The script itself goes on as the request's, after its snapshot was taken. */
void outboard_main_visit(const outboard_event *event)
{
	visits++;
	outboard_doctor_examine();
	outboard_visit_begin(event->request, event->exchange);
	main_script.visit = outboard_active_visit;
	main_script.visit->coroutines = 1;
	main_script.visit->id = ++visit_ids;
	outboard_backtrace_begin(event->slot, event->generation);
}

void outboard_end_main_visit(void)
{
	outboard_visit *visit = main_script.visit;
	if (!visit) {
		return;
	}
	if (EG(exit_status) == 255) {
		visit->result.outcome = OUTBOARD_FAILED;
	}
	outboard_visit_answer(visit);
	if (visit->deferred) {
		outboard_rs_finish(visit->exchange);
		run_deferred(visit);
	}
	main_script.visit = NULL;
	release(visit);
}

static void run_task(task *one)
{
	outboard_visit *visit = one->visit;
	outboard_visit_enter(visit ? visit : &outboard_boot_visit);
	running->visit = visit;
	running->task = one->id;
	if (!one->cancelled) {
		call(&one->callback, visit);
	}
	running->cancelled = false;
	if (!Z_ISUNDEF(one->ended)) {
		call(&one->ended, visit);
		zval_ptr_dtor(&one->ended);
	}
	zval_ptr_dtor(&one->callback);
	running->task = 0;
	tasks--;
	efree(one);
	if (visit) {
		release(visit);
	}
	running->visit = NULL;
	outboard_visit_enter(&outboard_boot_visit);
}

static void cancel(coroutine *one)
{
	one->cancelled = true;
	outboard_rs_cancel_wait(outboard_events, name_of(one));
	wake(name_of(one));
}

/* Ends the waits of everything that works for this request. */
static void cancel_visit(const outboard_event *event)
{
	for (uint32_t i = 0; i < count; i++) {
		coroutine *one = all[i];
		if (one->visit && one->visit->exchange == event->exchange) {
			outboard_backtrace_at(one->frame, event->slot, event->generation);
			one->visit->cancelled = true;
			cancel(one);
		}
	}
}

static void run_timer(uint64_t id)
{
	zval *callback = zend_hash_index_find(&timers, (zend_ulong) id);
	if (callback) {
		zval copy;
		ZVAL_COPY(&copy, callback);
		call(&copy, NULL);
		zval_ptr_dtor(&copy);
	}
}

/* Nothing is left to be done, and nothing may be begun. */
static bool is_over(void)
{
	return (stopping || broken) && visits == 0 && main_script.phase == WAITING;
}

static void handle(const outboard_event *event)
{
	switch (event->kind) {
	case OUTBOARD_REQUEST:
		answer(event);
		break;
	case OUTBOARD_WAKE:
		wake(event->id);
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

static void become_idle(void)
{
	running->phase = IDLE;
	running->next = idle;
	idle = running;
}

static void loop(void)
{
	for (;;) {
		coroutine *next = ready_pop();
		if (next) {
			become_idle();
			switch_to(next);
		} else if (first_task) {
			task *one = first_task;
			first_task = one->next;
			if (!first_task) {
				last_task = &first_task;
			}
			run_task(one);
		} else if (is_over() && handler) {
			handler = NULL;
			main_script.serial++;
			ready_push(&main_script);
		} else {
			outboard_event event = {0};
			bool may_start = handler && !stopping && !broken && visits < outboard_concurrency;
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
	one->visit = running->visit;
	if (one->visit) {
		one->visit->coroutines++;
	}
	*last_task = one;
	last_task = &one->next;
	tasks++;
	return one->id;
}

void outboard_cancel_task(uint64_t id)
{
	for (task *one = first_task; one; one = one->next) {
		if (one->id == id) {
			one->cancelled = true;
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		if (all[i]->task == id) {
			cancel(all[i]);
		}
	}
}

bool outboard_wake(uint64_t waiter)
{
	return wake(waiter);
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

outboard_visit *outboard_visit_here(void)
{
	return running->visit;
}

/* Before the script boots. */
void outboard_coroutine_startup(void)
{
	register_coroutine(&main_script);
	main_script.phase = RUNNING;
	bottom_function.type = ZEND_INTERNAL_FUNCTION;
	bottom_function.function_name =
		zend_string_init_interned(ZEND_STRL("frankenphp_handle_request"), true);
	zend_hash_init(&timers, 8, NULL, ZVAL_PTR_DTOR, false);
}

/* The main script waits here while requests are answered; false when the worker is to leave. */
bool outboard_attend(zval *callback, enum outboard_way how)
{
	zval copy;
	if (stopping || broken) {
		return false;
	}
	answered = false;
	ZVAL_COPY(&copy, callback);
	handler = &copy;
	way = how;
	outboard_suspend();
	handler = NULL;
	zval_ptr_dtor(&copy);
	return answered || (!stopping && !broken);
}
