/*
 * Replacements for calls whose end no descriptor of the caller shows. A child's end has a pidfd;
 * name resolution and pclose(3) run in a thread (`offload.rs`) while the coroutine waits.
 *
 * Invariant: a blocking call writes to the stack of the coroutine that began it, which therefore
 * stays suspended until the call has ended, cancelled or not.
 */
#include "waiting/waiting.h"
#include <netdb.h>
#include <stdatomic.h>
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

pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	REAL(wait4);
	if (pid > 0 && !(options & WNOHANG) && outboard_may_wait()) {
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

/* A call that a thread makes for a waiting coroutine. */
struct blocking_call {
	void (*run)(struct blocking_call *call);
	const char *node;
	const char *service;
	const struct addrinfo *hints;
	struct addrinfo **found;
	FILE *pipe;
	pid_t shell;
	struct hostent *host;
	char *buffer;
	size_t buffer_len;
	struct hostent **host_found;
	int *host_error;
	int result;
	int error;
	atomic_bool done;
};

static void run_blocking_call(void *arg)
{
	struct blocking_call *call = arg;
	OUTBOARD_ASSERT(call->run && !atomic_load(&call->done));
	call->run(call);
	call->error = errno;
	atomic_store(&call->done, true);
}

static int offload(enum call kind, struct blocking_call *call)
{
	if (!outboard_rs_offload(outboard_host.events, outboard_waiter(), run_blocking_call, call)) {
		run_blocking_call(call);
		return call->result;
	}
	outboard_rs_count_wait(outboard_host.events, kind, -1);
	/* The call writes to this stack, so even a cancelled coroutine waits for it. */
	do {
		outboard_suspend();
	} while (!atomic_load(&call->done));
	OUTBOARD_ASSERT(atomic_load(&call->done));
	errno = call->error;
	outboard_throw_if_cancelled();
	return call->result;
}

static int getaddrinfo_real(
	const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	REAL(getaddrinfo);
	return real(node, service, hints, found);
}

static void resolve(struct blocking_call *call)
{
	call->result =
		getaddrinfo_real(call->node, call->service, call->hints, call->found);
}

static bool is_address(const char *node)
{
	return !node || node[strspn(node, "0123456789.")] == '\0' || strchr(node, ':');
}

int getaddrinfo(
	const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	if (!is_address(node) && outboard_may_wait()) {
		struct blocking_call call = {
			.run = resolve, .node = node, .service = service, .hints = hints, .found = found};
		return offload(RESOLVE, &call);
	}
	int64_t since_us = outboard_begin_blocking();
	int result = getaddrinfo_real(node, service, hints, found);
	outboard_end_blocking(RESOLVE, since_us);
	return result;
}

static int gethostbyname_real(const char *name, struct hostent *host, char *buffer,
	size_t buffer_len, struct hostent **found, int *error)
{
	REAL(gethostbyname_r);
	return real(name, host, buffer, buffer_len, found, error);
}

static void find_host(struct blocking_call *call)
{
	call->result = gethostbyname_real(call->node, call->host, call->buffer,
		call->buffer_len, call->host_found, call->host_error);
}

int gethostbyname_r(const char *name, struct hostent *host, char *buffer, size_t buffer_len,
	struct hostent **found, int *error)
{
	if (!is_address(name) && outboard_may_wait()) {
		struct blocking_call call = {.run = find_host, .node = name, .host = host, .buffer = buffer,
			.buffer_len = buffer_len, .host_found = found, .host_error = error};
		return offload(RESOLVE, &call);
	}
	int64_t since_us = outboard_begin_blocking();
	int result = gethostbyname_real(name, host, buffer, buffer_len, found, error);
	outboard_end_blocking(RESOLVE, since_us);
	return result;
}

static void close_pipe(struct blocking_call *call)
{
	call->result = outboard_popen_close(call->pipe, call->shell);
}

int pclose(FILE *pipe)
{
	const pid_t shell = outboard_popen_forget(pipe);
	if (outboard_may_wait()) {
		struct blocking_call call = {.run = close_pipe, .pipe = pipe, .shell = shell};
		return offload(CHILD, &call);
	}
	int64_t since_us = outboard_begin_blocking();
	int result = outboard_popen_close(pipe, shell);
	outboard_end_blocking(CHILD, since_us);
	return result;
}
