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
#include "coroutine.h"
#include <sys/mman.h>
#include <sys/resource.h>

/*
 * The page size of PHP's stack, which grows by such pages: small where there may be many
 * coroutines, else large enough that few calls need a second page.
 */
#define LARGE_PAGE_BYTES (32 * 1024)
#define SMALL_PAGE_BYTES (4 * 1024)

/*
 * The C stack of a context. With few coroutines it is as large as a process's, so that recursion
 * goes as deep as in classic mode; unused pages are address space only.
 */
#define MAX_STACK_BYTES (16 * 1024 * 1024)

static size_t stack_bytes(void)
{
	struct rlimit limit;
	const size_t configured = EG(fiber_stack_size);
	if (outboard_concurrency > OUTBOARD_FEW_COROUTINES || getrlimit(RLIMIT_STACK, &limit) != 0) {
		return configured;
	}
	const size_t own = limit.rlim_cur < MAX_STACK_BYTES ? limit.rlim_cur : MAX_STACK_BYTES;
	return own > configured ? own : configured;
}

/* With transparent huge pages each stack would use 2 MiB. */
static void disable_huge_pages(const char *here, size_t size)
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

uint64_t outboard_waiter_of(const coroutine *one)
{
	return (uint64_t) one->serial << 32 | one->index;
}

coroutine *outboard_find_waiter(uint64_t waiter)
{
	uint32_t index = (uint32_t) waiter;
	coroutine *one = index < count ? all[index] : NULL;
	return one && one->serial == (uint32_t) (waiter >> 32) ? one : NULL;
}

coroutine *outboard_coroutine_at(uint32_t index)
{
	return index < count ? all[index] : NULL;
}

/* Ends the current wait of a coroutine; false if it has ended already. */
bool outboard_wake(uint64_t waiter)
{
	coroutine *one = outboard_find_waiter(waiter);
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
	one->serial = 1; /* waiter 0 does not exist */
	all[count++] = one;
}

/* The bottom frame of a context; the engine reports errors in the loop as this function's. */
static zend_internal_function bottom_function;

static void begin_stack(void)
{
	zend_execute_data *frame;
	char *here = __builtin_frame_address(0);
	const size_t size = stack_bytes();
	disable_huge_pages(here, size);
	OUTBOARD_LIMIT_STACK(here, size);
	EG(vm_stack) = NULL;
	zend_vm_stack_init_ex(
		outboard_concurrency <= OUTBOARD_FEW_COROUTINES ? LARGE_PAGE_BYTES : SMALL_PAGE_BYTES);
	frame = (zend_execute_data *) EG(vm_stack_top);
	EG(vm_stack_top) += ZEND_CALL_FRAME_SLOT;
	memset(frame, 0, sizeof(*frame));
	frame->func = (zend_function *) &bottom_function;
	EG(current_execute_data) = frame;
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
		outboard_loop();
	} zend_end_try();
	/* Not reached: the loop ends only with the process. */
	transfer->context = EG(main_fiber_context);
}

/* Distinguishes our contexts from those of Fibers. */
static char kind;

static coroutine *new_context(void)
{
	coroutine *one = pecalloc(1, sizeof(*one), 1);
	register_coroutine(one);
	if (!OUTBOARD_IS_CREATED(
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
	outboard_request_state_enter(next->state ? next->state : &outboard_boot_state);
	next->phase = RUNNING;
	outboard_running = next;
	zend_fiber_switch_context(&transfer);
}

/* A context at the top of the loop. */
static coroutine *idle_context(void)
{
	coroutine *next = idle;
	if (next) {
		idle = next->next;
		return next;
	}
	return new_context();
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
	self->next = ready.first;
	ready.first = self;
	if (!ready.last) {
		ready.last = self;
	}
	self->frame = EG(current_execute_data);
	outboard_call_state_save(&call_state);
	outboard_switch_to(next);
	outboard_call_state_restore(&call_state);
	self->frame = NULL;
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
	return coroutine < count ? all[coroutine]->frame : NULL;
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
	outboard_running->phase = IDLE;
	outboard_running->next = idle;
	idle = outboard_running;
}

outboard_request_state *outboard_running_state(void)
{
	return outboard_running->state;
}

void outboard_coroutine_startup(void)
{
	register_coroutine(&outboard_main_script);
	outboard_main_script.phase = RUNNING;
	bottom_function.type = ZEND_INTERNAL_FUNCTION;
	bottom_function.function_name =
		zend_string_init_interned(ZEND_STRL("frankenphp_handle_request"), true);
	outboard_loop_startup();
}
