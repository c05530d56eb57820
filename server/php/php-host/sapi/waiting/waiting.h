/*
 * What the replacements for functions of the C library share: how a coroutine waits, and how a
 * wait that blocks the whole worker is counted. Defined in waiting.c, used by the files beside it.
 */
#ifndef OUTBOARD_WAITING_H
#define OUTBOARD_WAITING_H

#include "interpose.h"
#include "coroutine/coroutine.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* ring's WaitCall. */
enum call { POLL, SELECT, SLEEP, CONNECT, RECEIVE, SEND, CHILD, RESOLVE, LOCK };

/* How a wait ended. WAIT_ENDED: by timeout or cancellation. WAIT_IMPOSSIBLE: it did not begin. */
enum wait_result { WAIT_READY, WAIT_ENDED, WAIT_IN_USE, WAIT_IMPOSSIBLE };

void outboard_waiting_startup(void);
bool outboard_may_wait(void);
int64_t outboard_begin_blocking(void);
void outboard_end_blocking(enum call call, int64_t since_us);
enum wait_result outboard_wait_for(
	enum call call, struct pollfd *fds, size_t count, int64_t timeout_us);
enum wait_result outboard_wait_for_one(enum call call, int fd, short events, int64_t timeout_us);
enum wait_result outboard_wait_shared(
	enum call call, struct pollfd *fds, size_t count, int64_t timeout_us);
int outboard_poll_real(struct pollfd *fds, nfds_t count, int timeout_ms);

/* For a call whose event no descriptor reports, which is tried again after each pause; they grow. */
#define FIRST_PAUSE_US 500
bool outboard_pause(enum call call, int64_t *pause_us, int64_t until_us);
/* A pause that a cancelled coroutine makes as well: for calls that can fail for no such reason. */
void outboard_pause_always(enum call call, int64_t us);
/* The time of outboard_now_us() when this much of a clock's time has passed. */
int64_t outboard_after_us(int64_t us);
int64_t outboard_until_us(clockid_t clock, const struct timespec *time);

/* waiting/threads.c: makes a blocking call in a thread while the coroutine is suspended. */
#define WORDS_MAX 8
typedef void (*outboard_c_function)(void);
long outboard_in_thread(enum call kind, outboard_c_function function, const uintptr_t words[WORDS_MAX]);

/* waiting/popen.c */
bool outboard_popen_has(pid_t shell);
pid_t outboard_popen_forget(const FILE *stream);
int outboard_popen_close(FILE *stream, pid_t shell);

/* waiting/descriptors.c: waits until the descriptor is ready; false: it failed, see errno. */
bool outboard_await_descriptor(enum call call, int fd, short events);
bool outboard_await_readable(int fd, bool is_patient);
bool outboard_await_writable(int fd, bool is_patient);
bool outboard_is_blocking(int fd);

/* waiting/attempts.c: fcntl(2) that waits for a lock; `call` is the C library's. */
int outboard_lock_range(int (*call)(int fd, int command, ...), int fd, int command, struct flock *range);

/* As the C library's __read_chk and the like with _FORTIFY_SOURCE: a buffer that is too short ends the process. */
static inline void outboard_check_room(size_t needed, size_t size)
{
	if (needed > size) {
		abort();
	}
}

#endif
