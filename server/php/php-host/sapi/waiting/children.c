/*
 * Replacements for calls that wait for children. The end of one child has a descriptor, a pidfd; that of any child has
 * none and is tried for; pclose(3) runs in a thread.
 */
#include "waiting/waiting.h"
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The descriptor of a process is readable once it has ended (pidfd_open(2)). */
static void await_child(pid_t pid)
{
	int saved_errno = errno;
	int fd = (int) syscall(SYS_pidfd_open, pid, 0);
	if (fd >= 0) {
		outboard_wait_for_one(CHILD, fd, POLLIN, -1);
		close(fd);
	}
	errno = saved_errno;
}

/* Of any child, or any of a process group, or that one has stopped or continued. */
static pid_t await_any(pid_t pid, int *status, int options, struct rusage *usage)
{
	REAL(wait4);
	for (int64_t pause_us = FIRST_PAUSE_US;;) {
		pid_t ended = real(pid, status, options | WNOHANG, usage);
		if (ended != 0) {
			return ended;
		}
		if (!outboard_pause(CHILD, &pause_us, INT64_MAX)) {
			errno = ECANCELED;
			return -1;
		}
	}
}

pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	REAL(wait4);
	if (!(options & WNOHANG) && outboard_may_wait()) {
		if (pid <= 0 || (options & (WUNTRACED | WCONTINUED))) {
			return await_any(pid, status, options, usage);
		}
		pid_t ended = real(pid, status, options | WNOHANG, usage);
		if (ended != 0) {
			return ended;
		}
		await_child(pid);
	}
	int64_t since_us = options & WNOHANG ? 0 : outboard_begin_blocking();
	pid_t ended = real(pid, status, options, usage);
	outboard_end_blocking(CHILD, since_us);
	return ended;
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	return wait4(pid, status, options, NULL);
}

pid_t wait3(int *status, int options, struct rusage *usage)
{
	return wait4(-1, status, options, usage);
}

pid_t wait(int *status)
{
	return wait4(-1, status, 0, NULL);
}

int waitid(idtype_t kind, id_t id, siginfo_t *about, int options)
{
	REAL(waitid);
	siginfo_t own;
	if ((options & WNOHANG) || !outboard_may_wait()) {
		int64_t since_us = options & WNOHANG ? 0 : outboard_begin_blocking();
		int result = real(kind, id, about, options);
		outboard_end_blocking(CHILD, since_us);
		return result;
	}
	about = about ? about : &own;
	for (int64_t pause_us = FIRST_PAUSE_US;;) {
		/* So one that has not ended is told from one that has (waitid(2)). */
		about->si_pid = 0;
		int result = real(kind, id, about, options | WNOHANG);
		if (result != 0 || about->si_pid != 0) {
			return result;
		}
		if (!outboard_pause(CHILD, &pause_us, INT64_MAX)) {
			errno = ECANCELED;
			return -1;
		}
	}
}

int pclose(FILE *pipe)
{
	const pid_t shell = outboard_popen_forget(pipe);
	if (outboard_may_wait()) {
		return (int) outboard_in_thread(CHILD, (outboard_c_function) outboard_popen_close,
			(uintptr_t[WORDS_MAX]) {(uintptr_t) pipe, (uintptr_t) shell});
	}
	int64_t since_us = outboard_begin_blocking();
	int result = outboard_popen_close(pipe, shell);
	outboard_end_blocking(CHILD, since_us);
	return result;
}
