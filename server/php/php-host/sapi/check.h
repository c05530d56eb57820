/*
 * Invariants that are executed. A broken one ends the process: it serves others' requests from memory that is not what
 * the code believes, and the gateway replaces a worker that dies.
 *
 * OUTBOARD_ASSERT is on in every build and for what costs a comparison; OUTBOARD_ASSERT_SLOWLY is on in debug and test
 * builds (build.rs), for what walks a list.
 */
#ifndef OUTBOARD_CHECK_H
#define OUTBOARD_CHECK_H

/* check.c: prints the place and the condition to standard error, and aborts. */
__attribute__((cold, noreturn)) void outboard_assertion_failed(const char *file, int line, const char *condition);

#define OUTBOARD_ASSERT(condition) \
	(__builtin_expect(!!(condition), 1) ? (void) 0 : outboard_assertion_failed(__FILE__, __LINE__, #condition))

#ifdef OUTBOARD_SLOW_ASSERTIONS
# define OUTBOARD_ASSERT_SLOWLY(condition) OUTBOARD_ASSERT(condition)
#else
# define OUTBOARD_ASSERT_SLOWLY(condition) ((void) sizeof(!(condition)))
#endif

#endif
