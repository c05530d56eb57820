/*
 * Waiting without holding the worker. The host exports functions of the C library in which PHP,
 * its extensions and the libraries below them wait; the dynamic linker binds them to these. Where
 * a coroutine could wait, it is suspended and the others go on; the real function is then called
 * when it has nothing to wait for. Everywhere else (classic mode, start-up, other threads) these
 * are the real functions.
 *
 * Invariants: a descriptor that is not ready is never given to a call that would block, unless the
 * engine forbids a switch; what is returned, and errno, are the real function's own. Non-blocking
 * descriptors are left to their owners.
 */
#include "waiting.h"
#include "ext/spl/spl_exceptions.h"

zend_class_entry *outboard_connection_in_use_class;

/* The engine's thread: libcurl resolves names in threads of its own. */
static __thread bool is_engine_thread;

void outboard_waiting_startup(void)
{
	is_engine_thread = true;
}

bool outboard_may_wait(void)
{
	return is_engine_thread && outboard_events && outboard_may_suspend();
}

int64_t outboard_now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* For waits that hold the whole worker: `outboard status` shows them. */
int64_t outboard_begin_blocking(void)
{
	return is_engine_thread && outboard_events ? outboard_now_us() : 0;
}

void outboard_end_blocking(enum call call, int64_t since_us)
{
	if (since_us) {
		int64_t took_us = outboard_now_us() - since_us;
		/* What took no time waited for nothing. */
		if (took_us > 100) {
			int saved_errno = errno;
			outboard_rs_count_wait(outboard_events, call, took_us);
			errno = saved_errno;
		}
	}
}

/*
 * Suspends until one of the descriptors is ready or the time is over; below 0 there is no end.
 * Where another coroutine waits for one of them, `other` is that one.
 */
static enum wait_result wait_unless_in_use(
	enum call call, struct pollfd *fds, size_t count, int64_t timeout_us, uint64_t *other)
{
	int saved_errno = errno;
	if (outboard_is_cancelled()) {
		outboard_throw_if_cancelled();
		return WAIT_ENDED;
	}
	*other = 0;
	if (outboard_rs_wait(outboard_events, outboard_waiter(), fds, count, timeout_us, other)) {
		return *other ? WAIT_IN_USE : WAIT_IMPOSSIBLE;
	}
	outboard_rs_count_wait(outboard_events, call, -1);
	uint64_t self = outboard_waiter();
	bool cancelled = outboard_suspend() == OUTBOARD_CANCELLED;
	outboard_rs_unwait(outboard_events, self);
	errno = saved_errno;
	if (cancelled) {
		outboard_throw_if_cancelled();
	}
	return cancelled ? WAIT_ENDED : WAIT_READY;
}

/* The same for who would read or write: what another waits for is refused. */
enum wait_result outboard_wait_for(enum call call, struct pollfd *fds, size_t count, int64_t timeout_us)
{
	uint64_t other;
	enum wait_result result = wait_unless_in_use(call, fds, count, timeout_us, &other);
	if (result == WAIT_IN_USE) {
		outboard_throw_connection_in_use(outboard_frame_of(other));
		errno = EBUSY;
		return WAIT_IMPOSSIBLE;
	}
	return result;
}

enum wait_result outboard_wait_for_one(enum call call, int fd, short events, int64_t timeout_us)
{
	struct pollfd one = {.fd = fd, .events = events};
	return outboard_wait_for(call, &one, 1, timeout_us);
}

int outboard_poll_real(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	REAL(poll);
	return real(fds, count, timeout_ms);
}

/*
 * Asking what is ready takes nothing from another who asks the same, such as two requests that
 * share a multi handle of curl. The kernel is asked again and again then: it tells one of them.
 */
enum wait_result outboard_wait_shared(
	enum call call, struct pollfd *fds, size_t count, int64_t timeout_us)
{
	int64_t until_us = timeout_us < 0 ? INT64_MAX : outboard_now_us() + timeout_us;
	int64_t pause_us = 500;
	uint64_t other;
	enum wait_result result;
	for (;;) {
		int64_t left_us = until_us == INT64_MAX ? -1 : until_us - outboard_now_us();
		result = wait_unless_in_use(call, fds, count, left_us < -1 ? 0 : left_us, &other);
		if (result != WAIT_IN_USE) {
			return result;
		}
		result = outboard_wait_for(call, NULL, 0, pause_us);
		if (result != WAIT_READY || outboard_poll_real(fds, count, 0) != 0 || outboard_now_us() >= until_us) {
			return result;
		}
		pause_us = pause_us < 8000 ? pause_us * 2 : 8000;
	}
}

/*
 * PHP loads extensions with RTLD_DEEPBIND, which would have them, and the libraries that they
 * bring, bind to the C library before this program.
 */
void *dlopen(const char *file, int flags)
{
	REAL(dlopen);
	return real(file, flags & ~RTLD_DEEPBIND);
}
