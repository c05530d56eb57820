/*
 * Replacements for epoll_wait(2) and its kin, in which libevent, libev, libuv and ZeroMQ wait. An epoll is itself a
 * descriptor that is ready once it has an event (epoll(7)), so that the worker's own epoll watches it.
 */
#include "waiting/waiting.h"
#include <signal.h>
#include <sys/epoll.h>

static int take_now(int epoll, struct epoll_event *events, int max, const sigset_t *mask)
{
	REAL(epoll_pwait);
	return real(epoll, events, max, 0, mask);
}

static int epoll_waiting(int epoll, struct epoll_event *events, int max, int64_t timeout_us, const sigset_t *mask)
{
	int ready = take_now(epoll, events, max, mask);
	if (ready != 0) {
		return ready;
	}
	struct pollfd one = {.fd = epoll, .events = POLLIN};
	const struct timespec time = {.tv_sec = timeout_us / 1000000, .tv_nsec = timeout_us % 1000000 * 1000};
	ready = ppoll(&one, 1, timeout_us < 0 ? NULL : &time, mask);
	return ready > 0 ? take_now(epoll, events, max, mask) : ready;
}

int epoll_pwait2(int epoll, struct epoll_event *events, int max, const struct timespec *time, const sigset_t *mask)
{
	REAL(epoll_pwait2);
	if ((!time || time->tv_sec || time->tv_nsec) && outboard_may_wait()) {
		const int64_t us = time ? (int64_t) time->tv_sec * 1000000 + (time->tv_nsec + 999) / 1000 : -1;
		return epoll_waiting(epoll, events, max, us, mask);
	}
	int64_t since_us = outboard_begin_blocking();
	int ready = real(epoll, events, max, time, mask);
	outboard_end_blocking(POLL, since_us);
	return ready;
}

int epoll_pwait(int epoll, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask)
{
	REAL(epoll_pwait);
	if (timeout_ms != 0 && outboard_may_wait()) {
		return epoll_waiting(epoll, events, max, timeout_ms < 0 ? -1 : (int64_t) timeout_ms * 1000, mask);
	}
	int64_t since_us = timeout_ms ? outboard_begin_blocking() : 0;
	int ready = real(epoll, events, max, timeout_ms, mask);
	outboard_end_blocking(POLL, since_us);
	return ready;
}

int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
	return epoll_pwait(epoll, events, max, timeout_ms, NULL);
}
