/*
 * Changes of the process that PHP does not undo in any mode: signals, alarms, limits, priority,
 * identity. Called by the hooks at the end of a request (request_ended), and once a
 * script has booted.
 *
 * Functions that make such changes are wrapped, and the first call saves the state before; a
 * request that calls none costs nothing. In a worker that is rewound the functions of the C library
 * are replaced as well (process/calls.c). Invariant: after a request the process is as it was
 * before, or it takes no further request.
 */
#include "process/process.h"
#include "state/state.h"
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define SIGNALS 65

enum change {
	NONE = 0,
	SIGNAL = 1,
	LIMIT = 2,
	PRIORITY = 4,
	IDENTITY = 8, /* cannot be undone, but may change nothing */
	PERMANENT = 16, /* cannot be undone */
};

static const struct {
	const char *name;
	enum change change;
} changers[] = {
	{"pcntl_signal", SIGNAL},
	{"pcntl_async_signals", SIGNAL},
	{"pcntl_sigprocmask", SIGNAL},
	{"pcntl_alarm", SIGNAL},
	{"posix_setrlimit", LIMIT},
	{"proc_nice", PRIORITY},
	{"pcntl_setpriority", PRIORITY},
	{"chroot", PERMANENT},
	{"pcntl_unshare", PERMANENT},
	{"posix_initgroups", PERMANENT},
	{"posix_setegid", IDENTITY},
	{"posix_seteuid", IDENTITY},
	{"posix_setgid", IDENTITY},
	{"posix_setpgid", PERMANENT},
	{"posix_setsid", PERMANENT},
	{"posix_setuid", IDENTITY},
};
#define CHANGERS (sizeof(changers) / sizeof(changers[0]))

static zif_handler wrapped[CHANGERS];
/* What a request has changed, and the state before. A rewind puts it back with all other memory. */
static struct {
	uint32_t changed; /* of enum change, since the last request */
	bool hides_children; /* SIGCHLD was ignored */
	bool is_undoing;

	uint32_t requests; /* that have changed something and have not ended */
	bool is_saved; /* what follows */
	struct sigaction actions[SIGNALS];
	sigset_t blocked;
	struct rlimit limits[RLIM_NLIMITS];
	int priority;
	struct identity {
		/* Real, effective, saved, of the file system. */
		uid_t users[4];
		gid_t groups[4];
		/* The signal at the parent's end. The kernel clears it when one of them becomes another, and so capabilities
		 * may have (commit_creds). */
		int at_end_of_parent;
	} identity;
	zval handlers[SIGNALS]; /* of pcntl */
	zval is_async;
} state;

static void call(const char *function, uint32_t count, zval *arguments, zval *result)
{
	zval name;
	ZVAL_UNDEF(result);
	ZVAL_STRING(&name, function);
	call_user_function(NULL, NULL, &name, result, count, arguments);
	zval_ptr_dtor(&name);
}

/* The handlers that a worker script's boot has set; in classic mode there are none. */
static void save_handlers(void)
{
	for (int number = 1; outboard_host.events && number < SIGNALS; number++) {
		zval argument;
		ZVAL_LONG(&argument, number);
		/* 32 and 33 belong to the C library. */
		ZVAL_UNDEF(&state.handlers[number]);
		if (state.actions[number].sa_handler != SIG_DFL && state.actions[number].sa_handler != SIG_IGN) {
			call("pcntl_signal_get_handler", 1, &argument, &state.handlers[number]);
		}
	}
	if (outboard_host.events) {
		call("pcntl_async_signals", 0, NULL, &state.is_async);
	}
}

static struct identity read_identity(void)
{
	struct identity now = {.at_end_of_parent = 0};
	prctl(PR_GET_PDEATHSIG, &now.at_end_of_parent);
	getresuid(&now.users[0], &now.users[1], &now.users[2]);
	getresgid(&now.groups[0], &now.groups[1], &now.groups[2]);
	/* An invalid id changes nothing (setfsuid(2)). */
	now.users[3] = (uid_t) syscall(SYS_setfsuid, -1);
	now.groups[3] = (gid_t) syscall(SYS_setfsgid, -1);
	return now;
}

static bool has_same_identity(void)
{
	const struct identity now = read_identity();
	return memcmp(now.users, state.identity.users, sizeof(now.users)) == 0
		&& memcmp(now.groups, state.identity.groups, sizeof(now.groups)) == 0
		&& now.at_end_of_parent == state.identity.at_end_of_parent;
}

static void save(void)
{
	OUTBOARD_ASSERT(!state.is_undoing && !state.is_saved);
	state.is_saved = true;
	for (int number = 1; number < SIGNALS; number++) {
		sigaction(number, NULL, &state.actions[number]);
	}
	sigprocmask(SIG_SETMASK, NULL, &state.blocked);
	for (int resource = 0; resource < (int) RLIM_NLIMITS; resource++) {
		getrlimit(resource, &state.limits[resource]);
	}
	state.priority = getpriority(PRIO_PROCESS, 0);
	state.identity = read_identity();
	/* A rewind puts back what PHP knows of them. */
	if (!outboard_host.is_rewinding) {
		save_handlers();
	}
}

/* Before a call of the C library changes something. */
static void note(enum change change)
{
	int saved_errno = errno;
	if (!outboard_host.is_rewinding || state.is_undoing) {
		return;
	}
	if (!state.is_saved && change != PERMANENT) {
		save();
	}
	state.changed |= change;
	errno = saved_errno;
}

void outboard_process_change_permanent(void)
{
	note(PERMANENT);
}

void outboard_process_change_identity(void)
{
	note(IDENTITY);
}

void outboard_process_change_signals(void)
{
	note(SIGNAL);
}

/* Where SIGCHLD is ignored, the kernel does not count the faults of children (wait_task_zombie in kernel/exit.c). */
void outboard_process_change_signal(int number)
{
	note(SIGNAL);
	state.hides_children |= number == SIGCHLD && !state.is_undoing;
}

bool outboard_process_hides_children(void)
{
	return state.hides_children;
}

void outboard_process_change_limits(void)
{
	note(LIMIT);
}

void outboard_process_change_priority(void)
{
	note(PRIORITY);
}

/*
 * While a request goes on, no other one's end puts back what it has set. Classic mode has one at a time, and no state
 * of it.
 */
static void note_request(void)
{
	outboard_request_state *request = outboard_now.state;
	if (request && request != &outboard_boot_state && !request->has_changed_process) {
		request->has_changed_process = true;
		state.requests++;
	}
}

/* Whether another request has made changes as well. */
static bool end_of_request(void)
{
	outboard_request_state *request = outboard_now.state;
	if (request && request->has_changed_process) {
		OUTBOARD_ASSERT(state.requests > 0);
		request->has_changed_process = false;
		state.requests--;
	}
	return state.requests > 0;
}

static void call_wrapped(INTERNAL_FUNCTION_PARAMETERS)
{
	const zend_string *name = execute_data->func->common.function_name;
	size_t at = 0;
	while (at + 1 < CHANGERS && !zend_string_equals_cstr(name, changers[at].name, strlen(changers[at].name))) {
		at++;
	}
	OUTBOARD_ASSERT(wrapped[at]);
	const enum change change = changers[at].change;
	if (!state.is_saved) {
		/* save() calls wrapped functions itself, which are not changes. */
		save();
	}
	wrapped[at](INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (!state.is_undoing && (change != PERMANENT || Z_TYPE_P(return_value) == IS_TRUE)) {
		state.changed |= change;
		note_request();
	}
}

static void restore_handlers(void)
{
	const zend_module_entry *pcntl = zend_hash_str_find_ptr(&module_registry, ZEND_STRL("pcntl"));
	zval result;
	/* Resets the extension's tables; in classic mode PHP does so. */
	if (!outboard_host.events || !pcntl) {
		return;
	}
	pcntl->request_shutdown_func(MODULE_PERSISTENT, pcntl->module_number);
	pcntl->request_startup_func(MODULE_PERSISTENT, pcntl->module_number);
	for (int number = 1; number < SIGNALS; number++) {
		zval arguments[2];
		if (Z_ISUNDEF(state.handlers[number]) || Z_TYPE(state.handlers[number]) == IS_LONG) {
			continue;
		}
		ZVAL_LONG(&arguments[0], number);
		ZVAL_COPY_VALUE(&arguments[1], &state.handlers[number]);
		call("pcntl_signal", 2, arguments, &result);
		zval_ptr_dtor(&result);
	}
	call("pcntl_async_signals", 1, &state.is_async, &result);
	zval_ptr_dtor(&result);
}

/* Signals that are blocked and wait would be delivered to what was there before, and may end the process. */
static void discard_pending(void)
{
	sigset_t pending;
	sigpending(&pending);
	for (int number = 1; number < SIGNALS; number++) {
		if (sigismember(&pending, number) == 1) {
			signal(number, SIG_IGN);
		}
	}
}

static void restore_signals(void)
{
	const struct itimerval never = {0};
	alarm(0);
	if (outboard_host.is_rewinding) {
		setitimer(ITIMER_VIRTUAL, &never, NULL);
		setitimer(ITIMER_PROF, &never, NULL);
		discard_pending();
	}
	for (int number = 1; number < SIGNALS; number++) {
		sigaction(number, &state.actions[number], NULL);
	}
	sigprocmask(SIG_SETMASK, &state.blocked, NULL);
}

static bool restore_limits(void)
{
	bool is_restored = true;
	for (int resource = 0; resource < (int) RLIM_NLIMITS; resource++) {
		is_restored &= setrlimit(resource, &state.limits[resource]) == 0;
	}
	return is_restored;
}

void outboard_process_changes_revert(void)
{
	if (end_of_request()) {
		return;
	}
	if (state.changed & SIGNAL) {
		state.is_undoing = true;
		restore_handlers();
		state.is_undoing = false;
	}
	outboard_process_changes_undo();
}

/* Without what PHP itself knows of signals, for a process whose memory is put back. */
void outboard_process_changes_undo(void)
{
	const uint32_t changes = state.changed;
	outboard_host.is_tainted |= outboard_host.is_rewinding && outboard_holds_semaphores();
	if (changes == NONE) {
		return;
	}
	OUTBOARD_ASSERT(!state.is_undoing && (state.is_saved || changes == PERMANENT));
	state.is_undoing = true;
	if (changes & SIGNAL) {
		restore_signals();
	}
	outboard_host.is_tainted |= (changes & PERMANENT) != 0
		|| ((changes & IDENTITY) && !has_same_identity())
		|| ((changes & LIMIT) && !restore_limits())
		|| ((changes & PRIORITY) && setpriority(PRIO_PROCESS, 0, state.priority) != 0);
	state.changed = NONE;
	state.is_undoing = false;
}

/* Changes by a worker script's boot apply to all its requests. */
void outboard_process_changes_accept(void)
{
	state.changed = NONE;
	state.is_saved = false;
}

void outboard_process_changes_startup(void)
{
	for (size_t i = 0; i < CHANGERS; i++) {
		wrapped[i] = outboard_wrap(changers[i].name, call_wrapped);
	}
}
