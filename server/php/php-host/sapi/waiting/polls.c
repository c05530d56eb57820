/*
 * Replacements for poll(2), select(2) and the sleep functions.
 */
#include "waiting/waiting.h"
#include <signal.h>
#include <sys/select.h>

/* How long a signal waits whose handler a call with a mask lets through. */
#define SIGNAL_SLICE_US 10000

/* What a call returns that was not impossible to wait for; before its time, nothing is ready only because of a signal. */
static int after_wait(int ready, int64_t until_us)
{
	if (ready == 0 && outboard_now_us() < until_us && !outboard_is_cancelled()) {
		errno = EINTR;
		return -1;
	}
	return ready;
}

static int poll_waiting(struct pollfd *fds, nfds_t count, int64_t timeout_us)
{
	const int64_t until_us = outboard_after_us(timeout_us);
	int ready = outboard_poll_real(fds, count, 0);
	if (ready != 0 || timeout_us == 0) {
		return ready;
	}
	if (outboard_wait_shared(POLL, fds, count, timeout_us) == WAIT_IMPOSSIBLE) {
		return outboard_poll_real(fds, count, timeout_us < 0 ? -1 : (int) ((timeout_us + 999) / 1000));
	}
	return after_wait(outboard_poll_real(fds, count, 0), until_us);
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	if (timeout_ms != 0 && outboard_may_wait()) {
		return poll_waiting(fds, count, timeout_ms < 0 ? -1 : (int64_t) timeout_ms * 1000);
	}
	int64_t since_us = timeout_ms ? outboard_begin_blocking() : 0;
	int ready = outboard_poll_real(fds, count, timeout_ms);
	outboard_end_blocking(POLL, since_us);
	return ready;
}

/* poll with _FORTIFY_SOURCE. */
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t size)
{
	outboard_check_room(count, size / sizeof(*fds));
	return poll(fds, count, timeout_ms);
}

/*
 * With a signal mask: signals that it lets through end the call, and are delivered while the mask is in force, which
 * it is in the moments of the attempts.
 */
static int ppoll_waiting(struct pollfd *fds, nfds_t count, int64_t until_us, const sigset_t *mask)
{
	REAL(ppoll);
	static const struct timespec none = {0, 0};
	for (;;) {
		int ready = real(fds, count, &none, mask);
		int64_t left_us = until_us - outboard_now_us();
		if (ready != 0 || left_us <= 0) {
			return ready;
		}
		int64_t slice_us = mask && left_us > SIGNAL_SLICE_US ? SIGNAL_SLICE_US : left_us;
		int64_t slice_end_us = outboard_after_us(slice_us);
		enum wait_result result = outboard_wait_shared(POLL, fds, count, until_us == INT64_MAX && !mask ? -1 : slice_us);
		if (result == WAIT_IMPOSSIBLE) {
			struct timespec rest = {.tv_sec = left_us / 1000000, .tv_nsec = left_us % 1000000 * 1000};
			return real(fds, count, until_us == INT64_MAX ? NULL : &rest, mask);
		}
		ready = real(fds, count, &none, mask);
		if (ready != 0 || outboard_is_cancelled()) {
			return ready;
		}
		/* The slice has not ended: a signal has. */
		if (outboard_now_us() < slice_end_us) {
			return after_wait(ready, until_us);
		}
	}
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time, const sigset_t *mask)
{
	REAL(ppoll);
	if ((!time || time->tv_sec || time->tv_nsec) && outboard_may_wait()) {
		int64_t us = time ? (int64_t) time->tv_sec * 1000000 + (time->tv_nsec + 999) / 1000 : -1;
		return ppoll_waiting(fds, count, outboard_after_us(us), mask);
	}
	int64_t since_us = outboard_begin_blocking();
	int ready = real(fds, count, time, mask);
	outboard_end_blocking(POLL, since_us);
	return ready;
}

int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *time, const sigset_t *mask, size_t size)
{
	outboard_check_room(count, size / sizeof(*fds));
	return ppoll(fds, count, time, mask);
}

static int select_real(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *time)
{
	REAL(select);
	return real(count, in, out, except, time);
}

static size_t collect(int count, const fd_set *sets[3], struct pollfd *fds)
{
	static const short kinds[3] = {POLLIN, POLLOUT, POLLPRI};
	size_t used = 0;
	for (int fd = 0; fd < count; fd++) {
		short events = 0;
		for (int i = 0; i < 3; i++) {
			if (sets[i] && FD_ISSET(fd, sets[i])) {
				events |= kinds[i];
			}
		}
		if (events) {
			OUTBOARD_ASSERT(used < FD_SETSIZE);
			fds[used++] = (struct pollfd) {.fd = fd, .events = events};
		}
	}
	return used;
}

/* select(2) overwrites its sets, so they are copied for the second call. */
int select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *time)
{
	fd_set *given[3] = {in, out, except};
	fd_set copies[3];
	const fd_set *sets[3];
	struct pollfd fds[FD_SETSIZE];
	struct timeval none = {0, 0};
	int64_t timeout_us = time ? (int64_t) time->tv_sec * 1000000 + time->tv_usec : -1;
	if (timeout_us == 0 || count > FD_SETSIZE || !outboard_may_wait()) {
		int64_t since_us = timeout_us ? outboard_begin_blocking() : 0;
		int ready = select_real(count, in, out, except, time);
		outboard_end_blocking(SELECT, since_us);
		return ready;
	}
	for (int i = 0; i < 3; i++) {
		sets[i] = given[i] ? &copies[i] : NULL;
		if (given[i]) {
			copies[i] = *given[i];
		}
	}
	int ready = select_real(count, in, out, except, &none);
	if (ready != 0) {
		return ready;
	}
	const int64_t until_us = outboard_after_us(timeout_us);
	enum wait_result result = outboard_wait_shared(SELECT, fds, collect(count, sets, fds), timeout_us);
	for (int i = 0; i < 3; i++) {
		if (given[i]) {
			*given[i] = copies[i];
		}
	}
	if (result == WAIT_IMPOSSIBLE) {
		return select_real(count, in, out, except, time);
	}
	return after_wait(select_real(count, in, out, except, &none), until_us);
}

/* The rest of the mask's semantics is ppoll's: its wait comes first. */
int pselect(int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *time, const sigset_t *mask)
{
	REAL(pselect);
	static const struct timespec none = {0, 0};
	const fd_set *sets[3] = {in, out, except};
	struct pollfd fds[FD_SETSIZE];
	const bool waits = (!time || time->tv_sec || time->tv_nsec) && count <= FD_SETSIZE && outboard_may_wait();
	if (waits && ppoll(fds, collect(count, sets, fds), time, mask) < 0) {
		return -1;
	}
	int64_t since_us = waits ? 0 : outboard_begin_blocking();
	int ready = real(count, in, out, except, waits ? &none : time, mask);
	outboard_end_blocking(SELECT, since_us);
	return ready;
}

static void sleep_waiting(int64_t us)
{
	outboard_wait_for(SLEEP, NULL, 0, us);
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
	REAL(nanosleep);
	if (outboard_may_wait() && wanted->tv_sec >= 0 && wanted->tv_nsec >= 0 && wanted->tv_nsec < 1000000000) {
		sleep_waiting((int64_t) wanted->tv_sec * 1000000 + (wanted->tv_nsec + 999) / 1000);
		return 0;
	}
	int64_t since_us = outboard_begin_blocking();
	int result = real(wanted, left);
	outboard_end_blocking(SLEEP, since_us);
	return result;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left)
{
	REAL(clock_nanosleep);
	if (outboard_may_wait() && wanted->tv_sec >= 0) {
		int64_t us = (int64_t) wanted->tv_sec * 1000000 + (wanted->tv_nsec + 999) / 1000;
		if (flags & TIMER_ABSTIME) {
			struct timespec now;
			clock_gettime(clock, &now);
			us -= (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
		}
		sleep_waiting(us > 0 ? us : 0);
		return 0;
	}
	int64_t since_us = outboard_begin_blocking();
	int result = real(clock, flags, wanted, left);
	outboard_end_blocking(SLEEP, since_us);
	return result;
}

int usleep(useconds_t us)
{
	struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = (long) (us % 1000000) * 1000};
	return nanosleep(&time, NULL);
}

unsigned int sleep(unsigned int seconds)
{
	struct timespec time = {.tv_sec = seconds};
	struct timespec left = {0};
	return nanosleep(&time, &left) == 0 ? 0 : (unsigned int) left.tv_sec;
}
