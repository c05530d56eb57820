/*
 * The point to which a worker is rewound after each request (src/rewind.rs), and the stack on which that is
 * done: the script's own stack is part of what is put back.
 *
 * Called by the hooks: outboard_rewind_mark() at the script's first call for a request, and
 * outboard_rewind() at the end of each. The mark returns once in the zygote and once after each rewind, every
 * time to the same memory. Invariants: no frame of Rust lies between the mark and a rewind; no signal is
 * handled on the other stack.
 */
#include "rewind/rewind.h"
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <ucontext.h>

#define STACK_BYTES (256 * 1024)

/* In memory that is not rewound. */
typedef struct {
	ucontext_t script; /* at the mark */
	ucontext_t rewinder;
	char stack[STACK_BYTES];
} contexts;

static contexts *both;

/* So that there is at least one variable, and the linker defines the section's bounds. */
static OUTBOARD_KEPT volatile char first_kept;

extern char __start_outboard_kept[];
extern char __stop_outboard_kept[];

void *outboard_kept_variables(size_t *bytes)
{
	(void) first_kept;
	*bytes = (size_t) (__stop_outboard_kept - __start_outboard_kept);
	OUTBOARD_ASSERT(*bytes > 0 && *bytes < 4096);
	return __start_outboard_kept;
}

/* Since glibc 2.35; the kernel writes to it when it moves the thread to another processor. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* The area is registered with 32 bytes even where __rseq_size counts fewer that have a meaning. */
#define RSEQ_BYTES 32

void *outboard_rseq_area(size_t *bytes)
{
	if (!&__rseq_size || __rseq_size == 0) {
		*bytes = 0;
		return NULL;
	}
	*bytes = __rseq_size > RSEQ_BYTES ? __rseq_size : RSEQ_BYTES;
	return (char *) __builtin_thread_pointer() + __rseq_offset;
}

static void *stack_pointer(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (void *) context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	return (void *) context->uc_mcontext.sp;
#else
# error "unknown stack pointer"
#endif
}

/* On the other stack: takes the snapshot, then rewinds or adds to it each time it is resumed. */
static void rewinder(void)
{
	const char *here = __builtin_frame_address(0);
	for (;;) {
		const char *script = stack_pointer(&both->script);
		/* What is put back must not have the stack on which that is done. */
		OUTBOARD_ASSERT(here > both->stack && here < both->stack + STACK_BYTES);
		OUTBOARD_ASSERT(script < (char *) both || script >= (char *) (both + 1));
		outboard_rs_rewind(outboard_host.events, script);
		swapcontext(&both->rewinder, &both->script);
	}
}

/* Large enough for what a request of a framework needs beyond the free memory of the boot. */
#define HEAP_BYTES (1024 * 1024)
#define CHUNKS 2

/* Of the engine's allocator (zend_alloc_sizes.h). */
#define CHUNK_BYTES (2 * 1024 * 1024)
#define PAGE_BYTES 4096

/*
 * Has the C library's heap grow by a free part, and keep it; and never map memory beside it. More than all that is
 * free fits into none of the holes.
 */
static void reserve_heap(void)
{
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	free(malloc(mallinfo2().fordblks + HEAP_BYTES));
}

/*
 * Has the engine's allocator keep free chunks, as far as they leave half of memory_limit: all but one page of each is
 * allocated and freed. The engine unmaps a chunk that is wholly free.
 */
static void reserve_chunks(void)
{
	void *most[CHUNKS];
	int count = 0;
	while (count < CHUNKS && zend_memory_usage(true) + CHUNK_BYTES <= (size_t) PG(memory_limit) / 2) {
		most[count++] = emalloc(CHUNK_BYTES - 2 * PAGE_BYTES);
	}
	for (int i = 0; i < count; i++) {
		emalloc(PAGE_BYTES);
	}
	while (count > 0) {
		efree(most[--count]);
	}
}

void outboard_rewind_mark(void)
{
	OUTBOARD_ASSERT(!both && !outboard_host.is_rewinding);
	both = outboard_rs_rewind_memory(outboard_host.events, sizeof(*both));
	if (!both || getcontext(&both->rewinder) != 0) {
		both = NULL;
		return;
	}
	outboard_host.is_rewinding = true;
	reserve_heap();
	reserve_chunks();
	outboard_reserve_context();
	outboard_randomness_prepare();
	outboard_warm_caches_begin();
	outboard_native_watch();
	outboard_mapping_changes_begin();
	both->rewinder.uc_stack.ss_sp = both->stack;
	both->rewinder.uc_stack.ss_size = sizeof(both->stack);
	both->rewinder.uc_link = NULL;
	sigfillset(&both->rewinder.uc_sigmask);
	makecontext(&both->rewinder, rewinder, 0);
	/* The second time for what the worker has done between two requests, and keeps. */
	do {
		swapcontext(&both->script, &both->rewinder);
		OUTBOARD_ASSERT(both && outboard_host.is_rewinding && !outboard_host.is_fork);
	} while (outboard_warm_caches_add());
	outboard_randomness_renew();
}

/* In a worker that was just forked, and at the end of each request; returns if the process is to end. */
void outboard_rewind(void)
{
	if (!both) {
		return;
	}
	OUTBOARD_ASSERT(outboard_host.is_rewinding && !outboard_host.is_child);
	/* What a worker that was just forked has changed is its own. */
	if (outboard_rs_is_rewound(outboard_host.events)) {
		outboard_process_changes_undo();
	}
	if (!outboard_rs_may_rewind(outboard_host.events, outboard_host.is_broken || outboard_host.is_tainted)) {
		return;
	}
	OUTBOARD_RUN_HOOKS(rewind_due);
	outboard_warm_caches_note();
	fflush(stdout);
	/* The zygote's mask, which is the mark's, is not the worker's. */
	if (!outboard_rs_is_rewound(outboard_host.events)) {
		sigprocmask(SIG_SETMASK, NULL, &both->script.uc_sigmask);
	}
	setcontext(&both->rewinder);
}

/* A worker that was just forked returns to the mark, as after a request. */
void outboard_rewind_to_mark(void)
{
	if (!outboard_rs_is_rewound(outboard_host.events)) {
		outboard_rewind();
	}
}
