/*
 * Coroutines of a resident script: contexts with stacks of their own, and whose turn it is.
 * Called by the loop (loop.c), and by whatever waits.
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
#include "coroutine.h"
#include <sys/mman.h>
#include <sys/resource.h>

/*
 * A page of PHP's stack; it grows by such pages. Where there may be many coroutines each has a
 * small one, where there are few a call seldom needs another.
 */
#define LARGE_PAGE_BYTES (32 * 1024)
#define SMALL_PAGE_BYTES (4 * 1024)

/*
 * The C stack of a context. Where there are few it is that of a process, so that deep recursion goes as
 * far as in a script per request; what is not used of it is address space alone.
 */
#define MOST_STACK_BYTES (16 * 1024 * 1024)

static size_t stack_bytes(void)
{
	struct rlimit limit;
	const size_t configured = EG(fiber_stack_size);
	if (outboard_concurrency > OUTBOARD_FEW || getrlimit(RLIMIT_STACK, &limit) != 0) {
		return configured;
	}
	const size_t own = limit.rlim_cur < MOST_STACK_BYTES ? limit.rlim_cur : MOST_STACK_BYTES;
	return own > configured ? own : configured;
}

/* Where the kernel uses huge pages unasked, each stack would take one: 2 MiB for a few calls. */
static void take_small_pages(const char *here, size_t size)
{
	const uintptr_t page = 4096;
	const uintptr_t end = (uintptr_t) here & ~(page - 1);
	madvise((void *) (end - size + 2 * page), size - 2 * page, MADV_NOHUGEPAGE);
}

typedef struct {
	coroutine *first;
	coroutine *last;
} queue;

static coroutine **all;
static uint32_t count;
static coroutine *idle;
static queue ready;

coroutine outboard_main_script;
coroutine *outboard_running = &outboard_main_script;

void outboard_ready(coroutine *one)
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

coroutine *outboard_next_ready(void)
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

uint64_t outboard_name_of(const coroutine *one)
{
	return (uint64_t) one->serial << 32 | one->index;
}

coroutine *outboard_coroutine_named(uint64_t name)
{
	uint32_t index = (uint32_t) name;
	coroutine *one = index < count ? all[index] : NULL;
	return one && one->serial == (uint32_t) (name >> 32) ? one : NULL;
}

coroutine *outboard_coroutine_at(uint32_t index)
{
	return index < count ? all[index] : NULL;
}

/* Ends the present wait of a coroutine; false when it is over already. */
bool outboard_wake(uint64_t waiter)
{
	coroutine *one = outboard_coroutine_named(waiter);
	if (!one || one->phase != WAITING) {
		return false;
	}
	one->serial++;
	outboard_ready(one);
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

/* The bottom frame of a context; what is raised in here is this function's, to the script. */
static zend_internal_function bottom_function;

static void begin_stack(void)
{
	zend_execute_data *frame;
	char *here = __builtin_frame_address(0);
	const size_t size = stack_bytes();
	take_small_pages(here, size);
	OUTBOARD_LIMIT_STACK(here, size);
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
		outboard_loop();
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
		zend_fiber_init_context(&one->context, &kind, run_context, stack_bytes()))) {
		return NULL;
	}
	one->resume = &one->context;
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
	ZVAL_NULL(&transfer.value);
	self->resume = EG(current_fiber_context);
	outboard_visit_enter(next->visit ? next->visit : &outboard_boot_visit);
	next->phase = RUNNING;
	outboard_running = next;
	zend_fiber_switch_context(&transfer);
}

/* A context at the top of the loop. */
static coroutine *fresh(void)
{
	coroutine *next = idle;
	if (next) {
		idle = next->next;
		return next;
	}
	return new_context();
}

/* Who takes the loop over when the running context waits. */
static coroutine *successor(void)
{
	coroutine *next = outboard_next_ready();
	return next ? next : fresh();
}

enum outboard_woken outboard_suspend(void)
{
	coroutine *self = outboard_running;
	coroutine *next;
	outboard_call_state under_way;
	if (self->phase == RUNNING) {
		self->phase = WAITING;
	}
	self->frame = EG(current_execute_data);
	next = successor();
	if (!next) {
		zend_error_noreturn(E_ERROR, "Out of memory for another coroutine");
	}
	outboard_call_state_take(&under_way);
	outboard_switch_to(next);
	outboard_call_state_put(&under_way);
	self->frame = NULL;
	return self->cancelled ? OUTBOARD_CANCELLED : OUTBOARD_WOKEN;
}

/*
 * Gives the turn at once: to a coroutine whose wait is over, or, without one, to a context at the top of
 * the loop. The running one goes on as soon as that one waits, before all others that are ready.
 */
void outboard_give_turn(coroutine *next)
{
	coroutine *self = outboard_running;
	outboard_call_state under_way;
	if (!next) {
		next = fresh();
	}
	if (!next) {
		zend_error_noreturn(E_ERROR, "Out of memory for another coroutine");
	}
	self->phase = READY;
	self->next = ready.first;
	ready.first = self;
	if (!ready.last) {
		ready.last = self;
	}
	self->frame = EG(current_execute_data);
	outboard_call_state_take(&under_way);
	outboard_switch_to(next);
	outboard_call_state_put(&under_way);
	self->frame = NULL;
}

uint64_t outboard_waiter(void)
{
	return outboard_name_of(outboard_running);
}

const zend_execute_data *outboard_frame_of(uint64_t waiter)
{
	coroutine *one = outboard_coroutine_named(waiter);
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
	return outboard_running->cancelled;
}

/* A request whose time is over unwinds; `finally` blocks run, `catch` blocks do not. */
void outboard_throw_if_cancelled(void)
{
	if (outboard_running->cancelled && !EG(exception) && EG(current_execute_data)) {
		zend_throw_graceful_exit();
	}
}

void outboard_become_idle(void)
{
	outboard_running->phase = IDLE;
	outboard_running->next = idle;
	idle = outboard_running;
}

outboard_visit *outboard_visit_here(void)
{
	return outboard_running->visit;
}

/* Before the script boots. */
void outboard_coroutine_startup(void)
{
	register_coroutine(&outboard_main_script);
	outboard_main_script.phase = RUNNING;
	bottom_function.type = ZEND_INTERNAL_FUNCTION;
	bottom_function.function_name =
		zend_string_init_interned(ZEND_STRL("frankenphp_handle_request"), true);
	outboard_loop_startup();
}
