/*
 * Waiting without blocking the worker. The host exports replacements for the functions of the C
 * library in which PHP, its extensions and their libraries wait, and the dynamic linker binds calls
 * to them. Where a coroutine can wait, it is suspended and others run; the original function is
 * called once it need not wait. Elsewhere (classic mode, start-up, other threads) the replacements
 * only call the originals.
 *
 * Invariants: no blocking call gets a descriptor that is not ready, unless the engine forbids a
 * switch; results and errno are those of the original function; non-blocking descriptors are not
 * touched.
 */
#include "waiting/waiting.h"
#include "ext/spl/spl_exceptions.h"

/* libcurl resolves names in threads of its own. */
static __thread bool is_engine_thread;

void outboard_waiting_startup(void)
{
	is_engine_thread = true;
}

bool outboard_may_wait(void)
{
	return is_engine_thread && outboard_host.events && outboard_may_suspend() && !outboard_is_autoloading();
}

/* For waits that block the whole worker, which `outboard status` shows. */
int64_t outboard_begin_blocking(void)
{
	return is_engine_thread && outboard_host.events ? outboard_now_us() : 0;
}

void outboard_end_blocking(enum call call, int64_t since_us)
{
	if (since_us) {
		int64_t took_us = outboard_now_us() - since_us;
		OUTBOARD_ASSERT(took_us >= 0);
		/* A shorter call did not wait. */
		if (took_us > 100) {
			int saved_errno = errno;
			outboard_rs_count_wait(outboard_host.events, call, took_us);
			errno = saved_errno;
		}
	}
}

/*
 * Suspends until a descriptor is ready or the time has passed (below 0: unlimited). If another
 * coroutine waits for one of them, `other` is its waiter.
 */
static enum wait_result wait_unless_in_use(
	enum call call, struct pollfd *fds, size_t count, int64_t timeout_us, uint64_t *other)
{
	int saved_errno = errno;
	/* While code is stopped at a breakpoint nothing else runs. */
	if (UNEXPECTED(outboard_host.debugger >= 0) && count == 1 && fds->fd == outboard_host.debugger) {
		return WAIT_IMPOSSIBLE;
	}
	if (outboard_is_cancelled()) {
		outboard_throw_if_cancelled();
		return WAIT_ENDED;
	}
	OUTBOARD_ASSERT(is_engine_thread && outboard_host.events);
	*other = 0;
	if (outboard_rs_wait(outboard_host.events, outboard_waiter(), fds, count, timeout_us, call <= SELECT, other)) {
		return *other ? WAIT_IN_USE : WAIT_IMPOSSIBLE;
	}
	outboard_rs_count_wait(outboard_host.events, call, -1);
	uint64_t self = outboard_waiter();
	bool cancelled = outboard_suspend() == OUTBOARD_CANCELLED;
	outboard_rs_unwait(outboard_host.events, self);
	errno = saved_errno;
	if (cancelled) {
		outboard_throw_if_cancelled();
	}
	return cancelled ? WAIT_ENDED : WAIT_READY;
}

/* For reads and writes, which throw if another coroutine waits for the descriptor. */
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
 * For readiness calls, which may share a descriptor: e.g. two requests with one multi handle of
 * curl. The poller reports an event to one waiter only, so the other one polls repeatedly.
 */
enum wait_result outboard_wait_shared(
	enum call call, struct pollfd *fds, size_t count, int64_t timeout_us)
{
	int64_t until_us = timeout_us < 0 ? INT64_MAX : outboard_now_us() + timeout_us;
	int64_t pause_us = 500;
	uint64_t other;
	enum wait_result result;
	for (;;) {
		const int64_t now_us = outboard_now_us();
		const int64_t left_us = until_us == INT64_MAX ? -1 : until_us > now_us ? until_us - now_us : 0;
		result = wait_unless_in_use(call, fds, count, left_us, &other);
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

/* False: the time is over, or the coroutine is cancelled (outboard_is_cancelled), whose call is to fail. */
bool outboard_pause(enum call call, int64_t *pause_us, int64_t until_us)
{
	const int64_t left_us = until_us - outboard_now_us();
	if (left_us <= 0) {
		return false;
	}
	const int64_t us = *pause_us < left_us ? *pause_us : left_us;
	*pause_us = *pause_us < 16000 ? *pause_us * 2 : 16000;
	return outboard_wait_for(call, NULL, 0, us) == WAIT_READY;
}

void outboard_pause_always(enum call call, int64_t us)
{
	const uint64_t self = outboard_waiter();
	uint64_t other;
	if (outboard_rs_wait(outboard_host.events, self, NULL, 0, us, false, &other) == 0) {
		outboard_rs_count_wait(outboard_host.events, call, -1);
		outboard_suspend();
		outboard_rs_unwait(outboard_host.events, self);
	}
}

int64_t outboard_after_us(int64_t us)
{
	const int64_t now_us = outboard_now_us();
	return us < 0 || us > INT64_MAX - now_us ? INT64_MAX : now_us + us;
}

int64_t outboard_until_us(clockid_t clock, const struct timespec *time)
{
	struct timespec now;
	if (!time) {
		return INT64_MAX;
	}
	clock_gettime(clock, &now);
	const int64_t us = (int64_t) (time->tv_sec - now.tv_sec) * 1000000 + (time->tv_nsec - now.tv_nsec) / 1000;
	return outboard_after_us(us > 0 ? us : 0);
}

/*
 * PHP loads extensions with RTLD_DEEPBIND, with which they and their libraries would bind to the C
 * library instead of this program.
 */
void *dlopen(const char *file, int flags)
{
	REAL(dlopen);
	return real(file, flags & ~RTLD_DEEPBIND);
}
