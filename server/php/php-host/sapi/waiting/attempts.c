/*
 * Replacements for calls whose event no descriptor reports: locks, semaphores and messages of System V, signals.
 * The call is tried, with growing pauses, until it would not wait.
 *
 * Invariant: the call of a cancelled coroutine fails with ECANCELED. With EINTR many callers try again, sessions and
 * sem_acquire() among them, and would do so forever.
 */
#include "waiting/waiting.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>

/* In a replacement: `call` if no coroutine can wait, else `attempt` until its error is none of these or the time is over. */
#define ATTEMPT(kind, type, waits, call, attempt, one_error, other_error, until_us, late_error) \
	do { \
		if (!(waits) || !outboard_may_wait()) { \
			int64_t since_us = (waits) ? outboard_begin_blocking() : 0; \
			type result = call; \
			outboard_end_blocking(kind, since_us); \
			return result; \
		} \
		const int64_t until = (until_us); \
		for (int64_t pause_us = FIRST_PAUSE_US;;) { \
			type result = attempt; \
			if (result >= 0 || (errno != (one_error) && errno != (other_error))) { \
				return result; \
			} \
			if (!outboard_pause(kind, &pause_us, until)) { \
				errno = outboard_is_cancelled() ? ECANCELED : (late_error); \
				return -1; \
			} \
		} \
	} while (0)

int flock(int fd, int operation)
{
	REAL(flock);
	ATTEMPT(LOCK, int, !(operation & (LOCK_NB | LOCK_UN)), real(fd, operation), real(fd, operation | LOCK_NB),
		EWOULDBLOCK, EWOULDBLOCK, INT64_MAX, ECANCELED);
}

int lockf64(int fd, int command, off64_t len)
{
	REAL(lockf64);
	ATTEMPT(LOCK, int, command == F_LOCK, real(fd, command, len), real(fd, F_TLOCK, len), EACCES, EAGAIN, INT64_MAX, ECANCELED);
}

int lockf(int fd, int command, off_t len)
{
	return lockf64(fd, command, len);
}

/* fcntl(2) with F_SETLKW or F_OFD_SETLKW; `call` is the C library's function. */
int outboard_lock_range(int (*call)(int fd, int command, ...), int fd, int command, struct flock *range)
{
	const int attempt = command == F_SETLKW ? F_SETLK : F_OFD_SETLK;
	ATTEMPT(LOCK, int, range->l_type != F_UNLCK, call(fd, command, range), call(fd, attempt, range),
		EACCES, EAGAIN, INT64_MAX, ECANCELED);
}

/* Of several operations either all are done or none, so the attempt has IPC_NOWAIT in each. */
#define OPERATIONS_MAX 64

static int64_t after(const struct timespec *time)
{
	return time ? outboard_after_us((int64_t) time->tv_sec * 1000000 + (time->tv_nsec + 999) / 1000) : INT64_MAX;
}

int semtimedop(int set, struct sembuf *operations, size_t count, const struct timespec *time)
{
	REAL(semtimedop);
	struct sembuf attempted[OPERATIONS_MAX];
	bool waits = count <= OPERATIONS_MAX;
	for (size_t i = 0; waits && i < count; i++) {
		waits = !(operations[i].sem_flg & IPC_NOWAIT);
		attempted[i] = operations[i];
		attempted[i].sem_flg |= IPC_NOWAIT;
	}
	ATTEMPT(LOCK, int, waits, real(set, operations, count, time), real(set, attempted, count, NULL),
		EAGAIN, EAGAIN, after(time), EAGAIN);
}

ssize_t msgrcv(int queue, void *message, size_t len, long type, int flags)
{
	REAL(msgrcv);
	ATTEMPT(RECEIVE, ssize_t, !(flags & IPC_NOWAIT), real(queue, message, len, type, flags),
		real(queue, message, len, type, flags | IPC_NOWAIT), ENOMSG, ENOMSG, INT64_MAX, ECANCELED);
}

int msgsnd(int queue, const void *message, size_t len, int flags)
{
	REAL(msgsnd);
	ATTEMPT(SEND, int, !(flags & IPC_NOWAIT), real(queue, message, len, flags),
		real(queue, message, len, flags | IPC_NOWAIT), EAGAIN, EAGAIN, INT64_MAX, ECANCELED);
}

int sigtimedwait(const sigset_t *signals, siginfo_t *about, const struct timespec *time)
{
	REAL(sigtimedwait);
	static const struct timespec none = {0, 0};
	ATTEMPT(SLEEP, int, !time || time->tv_sec || time->tv_nsec, real(signals, about, time),
		real(signals, about, &none), EAGAIN, EAGAIN, after(time), EAGAIN);
}

int sigwaitinfo(const sigset_t *signals, siginfo_t *about)
{
	return sigtimedwait(signals, about, NULL);
}

int sigwait(const sigset_t *signals, int *found)
{
	int number;
	do {
		number = sigtimedwait(signals, NULL, NULL);
	} while (number < 0 && errno == EINTR);
	if (number < 0) {
		return errno;
	}
	*found = number;
	return 0;
}
