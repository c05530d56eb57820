/*
 * Changes of the process by functions of the C library, for any caller: replacements that note a change of a
 * worker that is rewound, so that extensions whose functions process/changes.c does not know are covered as well.
 *
 * Exported for PHP and its extensions (build.rs). Invariant: a replacement does what the function does; results
 * and errno are those of the original.
 */
#include "process/process.h"

#ifndef __SANITIZE_ADDRESS__

#include "interpose.h"
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* One that cannot be undone, if it succeeds. */
#define PERMANENT(name, parameters, arguments) \
	int name parameters \
	{ \
		REAL(name); \
		int result = real arguments; \
		if (result >= 0) { \
			outboard_process_change_permanent(); \
		} \
		return result; \
	}

/* Some libraries give up rights that a process may have for the time of a call, as libtinfo does to read a file. */
#define IDENTITY(name, parameters, arguments) \
	int name parameters \
	{ \
		REAL(name); \
		outboard_process_change_identity(); \
		return real arguments; \
	}

IDENTITY(setuid, (uid_t user), (user))
IDENTITY(seteuid, (uid_t user), (user))
IDENTITY(setreuid, (uid_t real_user, uid_t user), (real_user, user))
IDENTITY(setresuid, (uid_t real_user, uid_t user, uid_t saved), (real_user, user, saved))
IDENTITY(setgid, (gid_t group), (group))
IDENTITY(setegid, (gid_t group), (group))
IDENTITY(setregid, (gid_t real_group, gid_t group), (real_group, group))
IDENTITY(setresgid, (gid_t real_group, gid_t group, gid_t saved), (real_group, group, saved))
IDENTITY(setfsuid, (uid_t user), (user))
IDENTITY(setfsgid, (gid_t group), (group))

PERMANENT(setgroups, (size_t count, const gid_t *groups), (count, groups))
PERMANENT(initgroups, (const char *user, gid_t group), (user, group))
PERMANENT(setsid, (void), ())
PERMANENT(setpgid, (pid_t process, pid_t group), (process, group))
PERMANENT(setpgrp, (void), ())
PERMANENT(chroot, (const char *path), (path))
PERMANENT(unshare, (int flags), (flags))
PERMANENT(setns, (int fd, int type), (fd, type))
PERMANENT(capset, (void *header, const void *data), (header, data))
PERMANENT(mlock, (const void *address, size_t bytes), (address, bytes))
PERMANENT(mlock2, (const void *address, size_t bytes, unsigned flags), (address, bytes, flags))
PERMANENT(mlockall, (int flags), (flags))
PERMANENT(sched_setscheduler, (pid_t process, int policy, const struct sched_param *parameters),
	(process, policy, parameters))
PERMANENT(sched_setparam, (pid_t process, const struct sched_param *parameters), (process, parameters))
PERMANENT(sched_setaffinity, (pid_t process, size_t bytes, const cpu_set_t *cores), (process, bytes, cores))
PERMANENT(timer_create, (clockid_t clock, struct sigevent *event, timer_t *timer), (clock, event, timer))

int personality(unsigned long persona)
{
	REAL(personality);
	int result = real(persona);
	/* This one only asks. */
	if (result >= 0 && persona != 0xffffffff) {
		outboard_process_change_permanent();
	}
	return result;
}

/* Requests that ask, and the one that names memory. */
static bool only_asks(int request)
{
	switch (request) {
	case PR_SET_PDEATHSIG:
	case PR_SET_DUMPABLE:
	case PR_SET_UNALIGN:
	case PR_SET_KEEPCAPS:
	case PR_SET_FPEMU:
	case PR_SET_FPEXC:
	case PR_SET_TIMING:
	case PR_SET_NAME:
	case PR_SET_ENDIAN:
	case PR_SET_SECCOMP:
	case PR_CAPBSET_DROP:
	case PR_SET_TSC:
	case PR_SET_SECUREBITS:
	case PR_SET_TIMERSLACK:
	case PR_MCE_KILL:
	case PR_SET_MM:
	case PR_SET_CHILD_SUBREAPER:
	case PR_SET_NO_NEW_PRIVS:
	case PR_SET_THP_DISABLE:
	case PR_CAP_AMBIENT:
		return false;
	default:
		return true;
	}
}

int prctl(int request, ...)
{
	REAL(prctl);
	unsigned long arguments[4];
	va_list list;
	va_start(list, request);
	for (int i = 0; i < 4; i++) {
		arguments[i] = va_arg(list, unsigned long);
	}
	va_end(list);
	int result = real(request, arguments[0], arguments[1], arguments[2], arguments[3]);
	if (result >= 0 && !only_asks(request)) {
		outboard_process_change_permanent();
	}
	return result;
}

/* Those that can be undone: the state before is saved. */

int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
	REAL(sigaction);
	if (action) {
		outboard_process_change_signal(number);
	}
	return real(number, action, before);
}

sighandler_t signal(int number, sighandler_t handler)
{
	REAL(signal);
	outboard_process_change_signal(number);
	return real(number, handler);
}

int setitimer(__itimer_which_t timer, const struct itimerval *restrict value, struct itimerval *restrict before)
{
	REAL(setitimer);
	outboard_process_change_signals();
	return real(timer, value, before);
}

unsigned alarm(unsigned seconds)
{
	REAL(alarm);
	outboard_process_change_signals();
	return real(seconds);
}

useconds_t ualarm(useconds_t us, useconds_t interval)
{
	REAL(ualarm);
	outboard_process_change_signals();
	return real(us, interval);
}

int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	REAL(setrlimit);
	outboard_process_change_limits();
	return real(resource, limit);
}

int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
	REAL(setrlimit64);
	outboard_process_change_limits();
	return real(resource, limit);
}

int prlimit(pid_t process, __rlimit_resource_t resource, const struct rlimit *limit, struct rlimit *before)
{
	REAL(prlimit);
	if (limit) {
		outboard_process_change_limits();
	}
	return real(process, resource, limit, before);
}

int prlimit64(pid_t process, __rlimit_resource_t resource, const struct rlimit64 *limit, struct rlimit64 *before)
{
	REAL(prlimit64);
	if (limit) {
		outboard_process_change_limits();
	}
	return real(process, resource, limit, before);
}

int setpriority(__priority_which_t which, id_t who, int priority)
{
	REAL(setpriority);
	outboard_process_change_priority();
	return real(which, who, priority);
}

int nice(int more)
{
	REAL(nice);
	outboard_process_change_priority();
	return real(more);
}

/*
 * Semaphores that a request holds. The kernel releases them when the process ends (SEM_UNDO), and so the worker
 * ends if the request has not.
 */
#define SEMAPHORES 16

static struct {
	int set;
	unsigned short number;
	int adjustment;
} held[SEMAPHORES];

static void hold(int set, const struct sembuf *operation)
{
	int free = -1;
	for (int i = 0; i < SEMAPHORES; i++) {
		if (held[i].adjustment == 0) {
			free = i;
		} else if (held[i].set == set && held[i].number == operation->sem_num) {
			held[i].adjustment += operation->sem_op;
			return;
		}
	}
	if (free < 0) {
		outboard_process_change_permanent();
		return;
	}
	OUTBOARD_ASSERT(operation->sem_op != 0 && held[free].adjustment == 0);
	held[free].set = set;
	held[free].number = operation->sem_num;
	held[free].adjustment = operation->sem_op;
}

int semop(int set, struct sembuf *operations, size_t count)
{
	/* waiting/attempts.c: it may suspend a coroutine. */
	int result = semtimedop(set, operations, count, NULL);
	/* Those of the boot belong to the zygote. */
	for (size_t i = 0; outboard_host.is_rewinding && result == 0 && i < count; i++) {
		if ((operations[i].sem_flg & SEM_UNDO) && operations[i].sem_op != 0) {
			hold(set, &operations[i]);
		}
	}
	return result;
}

bool outboard_holds_semaphores(void)
{
	for (int i = 0; i < SEMAPHORES; i++) {
		if (held[i].adjustment != 0) {
			return true;
		}
	}
	return false;
}

#else

#include <sys/sem.h>

int semop(int set, struct sembuf *operations, size_t count)
{
	return semtimedop(set, operations, count, NULL);
}

bool outboard_holds_semaphores(void)
{
	return false;
}

#endif
