/*
 * How a worker dies by itself: of a fault, by abort() or by exit(3) and _exit(2) of native code. The kernel takes the
 * memory of the process apart before it reports the end, which takes milliseconds. So the worker announces its death,
 * and the gateway has another one take its place meanwhile.
 *
 * src/worker_fds.rs says in each worker where to announce it; the handlers are set before the fork
 * (script_start in hooks.h). Invariants: the handler takes no lock and switches to no coroutine; the process ends as it
 * would have, with its core dump.
 */
#include "process/process.h"
#include "kept.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The ring's header has the mark. A child process that PHP forks has neither. */
static OUTBOARD_KEPT struct {
	_Atomic uint32_t *mark;
	int bell;
	pid_t process;
} announcement;

void outboard_crash_announce_to(uint32_t *mark, int bell)
{
	OUTBOARD_ASSERT(((uintptr_t) mark & 3) == 0);
	announcement.mark = (_Atomic uint32_t *) mark;
	announcement.bell = bell;
	announcement.process = getpid();
}

static void announce(void)
{
	const uint64_t ring = 1;
	if (announcement.mark && announcement.process == getpid()) {
		atomic_store(announcement.mark, 1);
		/* Not by write(), whose replacement may have another coroutine run. With a full counter the gateway is being
		 * woken already. */
		syscall(SYS_write, announcement.bell, &ring, sizeof(ring));
	}
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	(void) context;
	if (number == SIGSEGV) {
		OUTBOARD_RUN_HOOKS(fault, info->si_addr);
	}
	announce();
	/* The kernel has put back the default (SA_RESETHAND): the instruction faults again and ends the process, unless a
	 * process has sent the signal. */
	if (info->si_code <= 0) {
		raise(number);
	}
}

void outboard_crash_startup(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	/* The handler has a stack of its own, since the fault may be that there is no more of another. */
	static char memory[64 * 1024];
	const stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND};
	if (sigaltstack(&stack, NULL) != 0) {
		return;
	}
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		sigaction(faults[i], &action, NULL);
	}
}

#ifndef __SANITIZE_ADDRESS__

#include "interpose.h"

void exit(int status)
{
	REAL(exit);
	announce();
	real(status);
	__builtin_unreachable();
}

void _exit(int status)
{
	REAL(_exit);
	announce();
	real(status);
	__builtin_unreachable();
}

void _Exit(int status)
{
	_exit(status);
}

#endif
