/*
 * The memory of a coroutine: its C stack and PHP's stack of call frames. Called by coroutine.c.
 *
 *   guard │ C stack, grows down ◀── │ ──▶ PHP's stack, grows up │ guard of the next one │ …
 *
 * The two begin in the same page of memory, so a coroutine that waits in a shallow call takes one page
 * of each worker's memory. Several are mapped at a time, in slabs, and none is unmapped: what lies in
 * an unused one can be returned to the system, and the addresses are used again.
 *
 * Invariant: a C stack that overflows meets its guard, which ends the process with a message.
 */
#include "coroutine/coroutine.h"
#include "zend_observer.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Since Linux 6.13: pages that fault, without a mapping of their own as by mprotect(2). */
#ifndef MADV_GUARD_INSTALL
# define MADV_GUARD_INSTALL 102
#endif

/* Larger than the frames of functions with buffers, which would step over a single page. */
#define GUARD_BYTES (64 * 1024)

/* PHP's stack has this much of the page that it shares with the C stack. */
#define SHARED_BYTES 1024

/* PHP's stack continues on the heap, in pages of this size. */
#define FRAMES_BYTES (60 * 1024)
#define FURTHER_PAGE_BYTES (64 * 1024)

/*
 * The C stack of a context. With few coroutines it is as large as a process's, so that recursion
 * goes as deep as in classic mode; unused pages are address space only.
 */
#define MIN_STACK_BYTES (64 * 1024)
#define MAX_STACK_BYTES (16 * 1024 * 1024)

/* Slabs grow up to this number of stacks. */
#define SLAB_STACKS 64

/* The memory for stacks. It is never unmapped, so a rewind needs no more than to put this back. */
static struct {
	size_t bytes; /* of each C stack; 0: not known yet */
	char *slab; /* the next one that is free */
	uint32_t slab_left;
	uint32_t slab_stacks; /* in the last slab */
} stacks;

/*
 * A context as the engine makes it. Others begin as copies of what it has at the top of its stack: the
 * registers for the first switch to it, none of which depends on the stack's address.
 */
static zend_fiber_context template;
static char *template_top;

static size_t page_aligned(size_t size)
{
	return (size + 4095) & ~(size_t) 4095;
}

static size_t wanted_bytes(void)
{
	struct rlimit limit;
	const size_t configured = page_aligned(EG(fiber_stack_size));
	if (outboard_host.concurrency > OUTBOARD_FEW_COROUTINES || getrlimit(RLIMIT_STACK, &limit) != 0) {
		return configured;
	}
	const size_t own =
		limit.rlim_cur < MAX_STACK_BYTES ? page_aligned(limit.rlim_cur) : MAX_STACK_BYTES;
	return own > configured ? own : configured;
}

size_t outboard_stack_bytes(void)
{
	return stacks.bytes == 0 ? wanted_bytes() : stacks.bytes;
}

/* Before the first coroutine; false later. */
bool outboard_stack_set_bytes(size_t bytes)
{
	if (stacks.bytes != 0) {
		return stacks.bytes == page_aligned(bytes);
	}
	stacks.bytes = bytes < MIN_STACK_BYTES ? MIN_STACK_BYTES
		: bytes > MAX_STACK_BYTES ? MAX_STACK_BYTES : page_aligned(bytes);
	return true;
}

static size_t region_bytes(void)
{
	return GUARD_BYTES + stacks.bytes + FRAMES_BYTES;
}

static bool protect(char *guard)
{
	/* Not with memory that is locked, not in older systems, and not in memory that a snapshot replaces. */
	return (!outboard_host.is_rewinding && madvise(guard, GUARD_BYTES, MADV_GUARD_INSTALL) == 0)
		|| mprotect(guard, GUARD_BYTES, PROT_NONE) == 0;
}

/* Twice as many stacks as the last one, or as many as there is address space for. */
static bool map_slab(void)
{
	OUTBOARD_ASSERT(stacks.slab_left == 0 && stacks.bytes >= MIN_STACK_BYTES);
	void *memory = MAP_FAILED;
	stacks.slab_stacks = stacks.slab_stacks == 0 ? 1 : stacks.slab_stacks < SLAB_STACKS ? stacks.slab_stacks * 2 : SLAB_STACKS;
	for (;; stacks.slab_stacks /= 2) {
		memory = mmap(NULL, stacks.slab_stacks * region_bytes(), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
		if (memory != MAP_FAILED) {
			break;
		}
		if (stacks.slab_stacks <= 1) {
			return false;
		}
	}
	/* With transparent huge pages each stack would use 2 MiB. */
	madvise(memory, stacks.slab_stacks * region_bytes(), MADV_NOHUGEPAGE);
	stacks.slab = memory;
	stacks.slab_left = stacks.slab_stacks;
	return true;
}

static char *guard_of(const coroutine *one)
{
	return one->stack_top + SHARED_BYTES - stacks.bytes - GUARD_BYTES;
}

/* False when there is no memory for another one. */
bool outboard_stack_take(coroutine *one)
{
	stacks.bytes = outboard_stack_bytes();
	if (stacks.slab_left == 0 && !map_slab()) {
		return false;
	}
	/* It is taken once, and its guard is whole pages. */
	OUTBOARD_ASSERT(!one->stack_top && ((uintptr_t) stacks.slab & 4095) == 0);
	if (!protect(stacks.slab)) {
		return false;
	}
	one->stack_top = stacks.slab + GUARD_BYTES + stacks.bytes - SHARED_BYTES;
	stacks.slab += region_bytes();
	stacks.slab_left--;
	return true;
}

/* Returns the memory of a context that is to begin anew. */
void outboard_stack_release(coroutine *one)
{
	OUTBOARD_ASSERT(one != outboard_running && one->stack_top);
	zend_observer_fiber_destroy_notify(&one->context);
	char *bottom = guard_of(one) + GUARD_BYTES;
	madvise(bottom, stacks.bytes + FRAMES_BYTES, MADV_DONTNEED);
}

/* False when there is no memory for the template. */
bool outboard_stack_begin(coroutine *one)
{
	if (!template_top) {
		return false;
	}
	const size_t len = (size_t) (template_top - (char *) template.handle);
	OUTBOARD_ASSERT(one->stack_top && len < MIN_STACK_BYTES);
	one->context = template;
	one->context.handle = memcpy(one->stack_top - len, template.handle, len);
	one->bounds.pointer = guard_of(one) + GUARD_BYTES;
	one->bounds.size = (size_t) (one->stack_top - (char *) one->bounds.pointer);
	one->context.stack = (zend_fiber_stack *) &one->bounds;
	zend_observer_fiber_init_notify(&one->context);
	return true;
}

/* On its own stack: has the engine use its part of the memory, with a bottom frame of this function. */
void outboard_stack_enter(const coroutine *one, zend_function *bottom)
{
	const char *here = __builtin_frame_address(0);
	OUTBOARD_ASSERT(here < one->stack_top && here > guard_of(one) + GUARD_BYTES);
	zend_vm_stack frames = (zend_vm_stack) one->stack_top;
	frames->top = ZEND_VM_STACK_ELEMENTS(frames);
	frames->end = (zval *) (one->stack_top + SHARED_BYTES + FRAMES_BYTES);
	frames->prev = NULL;
	zend_execute_data *frame = (zend_execute_data *) frames->top;
	memset(frame, 0, sizeof(*frame));
	frame->func = bottom;
	EG(vm_stack) = frames;
	EG(vm_stack_top) = frames->top + ZEND_CALL_FRAME_SLOT;
	EG(vm_stack_end) = frames->end;
	EG(vm_stack_page_size) = FURTHER_PAGE_BYTES;
	EG(current_execute_data) = frame;
	OUTBOARD_LIMIT_STACK(one->stack_top, stacks.bytes - SHARED_BYTES);
}

/* For a signal handler: writes a sentence if the fault is at the end of a coroutine's stack. */
void outboard_stack_report_overflow(const char *at)
{
	const coroutine *one = outboard_running;
	if (!one->stack_top || at < guard_of(one) || at >= guard_of(one) + GUARD_BYTES) {
		return;
	}
	char text[1024];
	const int len = snprintf(text, sizeof(text),
		"PHP Fatal error:  Maximum depth of nested calls reached: the coroutine's stack of %zu bytes "
		"(fiber.stack_size) has overflowed in %s on line %u\n",
		stacks.bytes, zend_get_executed_filename(), zend_get_executed_lineno());
	/* Not by write(), whose replacement may have another coroutine run. */
	if (len > 0) {
		syscall(SYS_write, STDERR_FILENO, text, (size_t) len < sizeof(text) ? (size_t) len : sizeof(text) - 1);
	}
}

static void make_template(void *kind, zend_fiber_coroutine function)
{
	if (OUTBOARD_IS_CREATED(zend_fiber_init_context(&template, kind, function, 64 * 1024))) {
		const struct outboard_stack_bounds *stack = (const void *) template.stack;
		template_top = (char *) stack->pointer + stack->size;
	}
}

/* Contexts call `function` at the first switch to them. */
void outboard_stack_startup(void *kind, zend_fiber_coroutine function)
{
	/* Before forks, which inherit it. */
	make_template(kind, function);
}
