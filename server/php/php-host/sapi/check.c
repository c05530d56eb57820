/*
 * What a broken invariant does. Called by the macros of check.h, anywhere: in a signal handler, on any stack, between fork
 * and exec. Invariant: it allocates nothing and calls no function that the host replaces.
 */
#include "check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void outboard_assertion_failed(const char *file, int line, const char *condition)
{
	char text[512];
	const int len = snprintf(text, sizeof(text), "outboard-php: %s:%d: an invariant does not hold: %s\n", file, line, condition);
	/* Not by write(), whose replacement may have another coroutine run. */
	if (len > 0) {
		(void) !syscall(SYS_write, STDERR_FILENO, text, (size_t) len < sizeof(text) ? (size_t) len : sizeof(text) - 1);
	}
	abort();
}
