/*
 * Replacements for semaphores and condition variables, by which threads of a library wake the thread that PHP runs in:
 * librdkafka, gRPC, libmongoc. Their events have no descriptor, so they are looked at again after pauses.
 *
 * Invariant: the wait of a cancelled coroutine goes on until its event or time, because these calls fail for no such
 * reason, and their callers try again.
 */
#include "waiting/waiting.h"
#include <pthread.h>
#include <semaphore.h>

#define PAUSE_US 4000

static int64_t pause_until(int64_t until_us)
{
	const int64_t left_us = until_us - outboard_now_us();
	return left_us < PAUSE_US ? left_us : PAUSE_US;
}

static int await_semaphore(sem_t *semaphore, int64_t until_us)
{
	while (sem_trywait(semaphore) != 0) {
		const int64_t us = pause_until(until_us);
		if (errno != EAGAIN || us <= 0) {
			errno = errno == EAGAIN ? ETIMEDOUT : errno;
			return -1;
		}
		outboard_pause_always(LOCK, us);
	}
	return 0;
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
	REAL(sem_clockwait);
	if (outboard_may_wait()) {
		return await_semaphore(semaphore, outboard_until_us(clock, until));
	}
	return real(semaphore, clock, until);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
	return sem_clockwait(semaphore, CLOCK_REALTIME, until);
}

int sem_wait(sem_t *semaphore)
{
	REAL(sem_wait);
	return outboard_may_wait() ? await_semaphore(semaphore, INT64_MAX) : real(semaphore);
}

/* A wait may end without a signal, so a caller looks at its condition again (pthread_cond_wait(3p)). */
static int await_condition(pthread_mutex_t *mutex, int64_t until_us)
{
	const int64_t us = pause_until(until_us);
	if (us <= 0) {
		return ETIMEDOUT;
	}
	pthread_mutex_unlock(mutex);
	outboard_pause_always(LOCK, us);
	pthread_mutex_lock(mutex);
	return 0;
}

/* The first version of these functions on x86-64 has another pthread_cond_t, and dlsym(3) finds it. */
#define REAL_CONDITION(name) \
	static __typeof__(&name) real; \
	if (!real) { \
		void *newer = dlvsym(RTLD_NEXT, #name, "GLIBC_2.3.2"); \
		real = (__typeof__(&name)) (newer ? newer : dlsym(RTLD_NEXT, #name)); \
	}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	REAL_CONDITION(pthread_cond_wait);
	return outboard_may_wait() ? await_condition(mutex, INT64_MAX) : real(condition, mutex);
}

int pthread_cond_clockwait(
	pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
	REAL_CONDITION(pthread_cond_clockwait);
	if (outboard_may_wait()) {
		return await_condition(mutex, outboard_until_us(clock, until));
	}
	return real(condition, mutex, clock, until);
}

/* glibc's bit for a condition variable whose times are of the monotonic clock (pthread_condattr_setclock(3p)). */
#define IS_MONOTONIC 2u

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
	REAL_CONDITION(pthread_cond_timedwait);
	if (outboard_may_wait()) {
		const bool is_monotonic = condition->__data.__wrefs & IS_MONOTONIC;
		return await_condition(mutex, outboard_until_us(is_monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME, until));
	}
	return real(condition, mutex, until);
}
