/*
 * Blocking calls of the C library that a thread makes (`offload.rs`) while the coroutine is suspended. Called by the
 * replacements of calls whose end no descriptor of the caller shows.
 *
 * Invariant: such a call writes to the stack of the coroutine that began it, which therefore stays suspended until the
 * call has ended, cancelled or not.
 */
#include "waiting/waiting.h"
#include <netdb.h>
#include <stdatomic.h>

/*
 * Arguments are words: on both architectures (System V, AAPCS64) integers and pointers are passed in the same registers
 * and slots, and a function ignores those that it does not have.
 */
typedef long (*function_of_words)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

struct threaded_call {
	function_of_words function;
	const uintptr_t *words;
	long result;
	int error;
	int resolver_error; /* h_errno, which each thread has of its own */
	atomic_bool done;
};

static void run(void *arg)
{
	struct threaded_call *call = arg;
	const uintptr_t *words = call->words;
	OUTBOARD_ASSERT(call->function && !atomic_load(&call->done));
	call->result = call->function(
		words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7]);
	call->error = errno;
	call->resolver_error = h_errno;
	atomic_store(&call->done, true);
}

long outboard_in_thread(enum call kind, outboard_c_function function, const uintptr_t words[WORDS_MAX])
{
	struct threaded_call call = {.function = (function_of_words) function, .words = words};
	OUTBOARD_ASSERT(outboard_may_wait());
	if (outboard_rs_offload(outboard_host.events, outboard_waiter(), run, &call)) {
		outboard_rs_count_wait(outboard_host.events, kind, -1);
		do {
			outboard_suspend();
		} while (!atomic_load(&call.done));
	} else {
		run(&call);
	}
	OUTBOARD_ASSERT(atomic_load(&call.done));
	errno = call.error;
	h_errno = call.resolver_error;
	outboard_throw_if_cancelled();
	return call.result;
}
