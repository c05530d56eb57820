/*
 * popen(3) for exec(), shell_exec(), mail() and others: like the C library's, but the shell dies
 * with the process that started it (PR_SET_PDEATHSIG).
 *
 * Invariant: between vfork and execve the child calls nothing that allocates, locks or returns.
 */
#include "waiting/waiting.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct pipe {
	FILE *stream;
	pid_t shell;
	struct pipe *next;
};

static struct pipe *pipes;

static void become_shell(const char *command, int end, int as, pid_t starter, const sigset_t *mask)
{
	OUTBOARD_ASSERT(end >= 0 && as >= 0);
	/* Not by its name, which notes a change of the parent, whose memory this is (process/calls.c). */
	syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != starter) {
		_exit(127);
	}
	if (end == as) {
		fcntl(end, F_SETFD, 0);
	} else {
		dup2(end, as);
	}
	sigprocmask(SIG_SETMASK, mask, NULL);
	execl("/bin/sh", "sh", "-c", command, NULL);
	_exit(127);
}

static pid_t start_shell(const char *command, int end, int as)
{
	sigset_t every;
	sigset_t mask;
	const pid_t starter = getpid();
	/* The child shares this memory until execve: no signal handler may run in it. */
	sigfillset(&every);
	sigprocmask(SIG_SETMASK, &every, &mask);
	pid_t shell = vfork();
	if (shell == 0) {
		/* It calls nothing but what may run in the parent's memory. NOLINTNEXTLINE(clang-analyzer-unix.Vfork) */
		become_shell(command, end, as, starter, &mask);
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return shell;
}

FILE *popen(const char *command, const char *mode)
{
	const bool reads = strchr(mode, 'r') != NULL;
	struct pipe *self = malloc(sizeof(*self));
	int ends[2];
	if (!self || pipe2(ends, O_CLOEXEC) != 0) {
		free(self);
		return NULL;
	}
	const int own = ends[reads ? 0 : 1];
	const int other = ends[reads ? 1 : 0];
	self->shell = start_shell(command, other, reads ? STDOUT_FILENO : STDIN_FILENO);
	self->stream = self->shell > 0 ? fdopen(own, reads ? "r" : "w") : NULL;
	int saved_errno = errno;
	close(other);
	if (!self->stream) {
		close(own);
		free(self);
		errno = saved_errno;
		return NULL;
	}
	self->next = pipes;
	pipes = self;
	return self->stream;
}

/* Whether it is the shell of an open stream. */
bool outboard_popen_has(pid_t shell)
{
	for (const struct pipe *one = pipes; one; one = one->next) {
		if (one->shell == shell) {
			return true;
		}
	}
	return false;
}

/* Returns the shell of a stream that is about to be closed, or -1. */
pid_t outboard_popen_forget(const FILE *stream)
{
	for (struct pipe **at = &pipes; *at; at = &(*at)->next) {
		if ((*at)->stream == stream) {
			struct pipe *found = *at;
			const pid_t shell = found->shell;
			*at = found->next;
			free(found);
			return shell;
		}
	}
	return -1;
}

/* The part of pclose(3) that may run in any thread. */
int outboard_popen_close(FILE *stream, pid_t shell)
{
	int status = -1;
	fclose(stream);
	while (waitpid(shell, &status, 0) < 0) {
		if (errno != EINTR) {
			return -1;
		}
	}
	return status;
}
