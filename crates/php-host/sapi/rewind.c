/*
 * The point to which a worker is rewound after each request (src/rewind.rs), and the stack on which that is
 * done: the script's own stack is part of what is put back.
 *
 * Called by worker_script.c: outboard_rewind_mark() at the script's first call for a request, and
 * outboard_rewind() at the end of each. The mark returns once in the zygote and once after each rewind, every
 * time to the same memory. Invariants: no frame of Rust lies between the mark and a rewind; no signal is
 * handled on the other stack.
 */
#include "coroutine.h"
#include "rewind.h"
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

/* On the other stack: takes the snapshot, then rewinds each time it is resumed. */
static void rewinder(void)
{
	for (;;) {
		outboard_rs_rewind(outboard_events, stack_pointer(&both->script));
		swapcontext(&both->rewinder, &both->script);
	}
}

void outboard_rewind_mark(void)
{
	both = outboard_rs_rewind_memory(outboard_events, sizeof(*both));
	if (!both || getcontext(&both->rewinder) != 0) {
		both = NULL;
		return;
	}
	both->rewinder.uc_stack.ss_sp = both->stack;
	both->rewinder.uc_stack.ss_size = sizeof(both->stack);
	both->rewinder.uc_link = NULL;
	sigfillset(&both->rewinder.uc_sigmask);
	makecontext(&both->rewinder, rewinder, 0);
	swapcontext(&both->script, &both->rewinder);
}

/* In a worker that was just forked, and at the end of each request; returns if the process is to end. */
void outboard_rewind(void)
{
	if (!both || !outboard_rs_may_rewind(outboard_events, outboard_broken || outboard_process_is_tainted)) {
		return;
	}
	fflush(stdout);
	/* The zygote's mask, which is the mark's, is not the worker's. */
	if (!outboard_rs_is_rewound(outboard_events)) {
		sigprocmask(SIG_SETMASK, NULL, &both->script.uc_sigmask);
	}
	setcontext(&both->rewinder);
}
