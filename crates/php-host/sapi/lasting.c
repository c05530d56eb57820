/*
 * What a request can change of its process that PHP leaves changed in any mode: signals, alarms,
 * limits, priority, identity. Called by request.c and reset.c at a request's end, and by resident.c
 * once a script has booted.
 *
 * Functions that change such a thing are wrapped, and the first call notes how everything was; a
 * request that calls none costs nothing. Invariant: after a request the process is as it was before,
 * or takes no further one.
 */
#include "shim.h"
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#define SIGNALS 65

enum lasting {
	NONE = 0,
	SIGNAL = 1,
	LIMIT = 2,
	PRIORITY = 4,
	FOR_GOOD = 8, /* cannot be undone */
};

static const struct {
	const char *name;
	enum lasting what;
} changing[] = {
	{"pcntl_signal", SIGNAL},
	{"pcntl_async_signals", SIGNAL},
	{"pcntl_sigprocmask", SIGNAL},
	{"pcntl_alarm", SIGNAL},
	{"posix_setrlimit", LIMIT},
	{"proc_nice", PRIORITY},
	{"pcntl_setpriority", PRIORITY},
	{"chroot", FOR_GOOD},
	{"pcntl_unshare", FOR_GOOD},
	{"posix_initgroups", FOR_GOOD},
	{"posix_setegid", FOR_GOOD},
	{"posix_seteuid", FOR_GOOD},
	{"posix_setgid", FOR_GOOD},
	{"posix_setpgid", FOR_GOOD},
	{"posix_setsid", FOR_GOOD},
	{"posix_setuid", FOR_GOOD},
};
#define CHANGING (sizeof(changing) / sizeof(changing[0]))

bool outboard_process_is_spoilt;

static zif_handler wrapped[CHANGING];
static uint32_t changed;
static bool is_noted;

static struct sigaction actions[SIGNALS];
static sigset_t blocked;
static struct rlimit limits[RLIM_NLIMITS];
static int priority;
static zval handlers[SIGNALS];
static zval is_async;

static void call(const char *function, uint32_t count, zval *arguments, zval *result)
{
	zval name;
	ZVAL_UNDEF(result);
	ZVAL_STRING(&name, function);
	call_user_function(NULL, NULL, &name, result, count, arguments);
	zval_ptr_dtor(&name);
}

/* What a resident script's boot has set by PHP's functions; nothing in a script per request. */
static void note_handlers(void)
{
	for (int number = 1; outboard_events && number < SIGNALS; number++) {
		zval argument;
		ZVAL_LONG(&argument, number);
		/* 32 and 33 are the C library's own. */
		ZVAL_UNDEF(&handlers[number]);
		if (actions[number].sa_handler != SIG_DFL && actions[number].sa_handler != SIG_IGN) {
			call("pcntl_signal_get_handler", 1, &argument, &handlers[number]);
		}
	}
	if (outboard_events) {
		call("pcntl_async_signals", 0, NULL, &is_async);
	}
}

static void note(void)
{
	is_noted = true;
	for (int number = 1; number < SIGNALS; number++) {
		sigaction(number, NULL, &actions[number]);
	}
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	for (int which = 0; which < (int) RLIM_NLIMITS; which++) {
		getrlimit(which, &limits[which]);
	}
	priority = getpriority(PRIO_PROCESS, 0);
	note_handlers();
}

static void change(INTERNAL_FUNCTION_PARAMETERS)
{
	const zend_string *name = execute_data->func->common.function_name;
	size_t at = 0;
	while (at + 1 < CHANGING && !zend_string_equals_cstr(name, changing[at].name, strlen(changing[at].name))) {
		at++;
	}
	const enum lasting what = changing[at].what;
	if (!is_noted) {
		/* Its own calls of the functions that are wrapped here are no change. */
		note();
	}
	wrapped[at](INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (what != FOR_GOOD || Z_TYPE_P(return_value) == IS_TRUE) {
		changed |= what;
	}
}

static void put_handlers_back(void)
{
	const zend_module_entry *pcntl = zend_hash_str_find_ptr(&module_registry, ZEND_STRL("pcntl"));
	zval result;
	/* The module's own tables; in a script per request they are new already. */
	if (!outboard_events || !pcntl) {
		return;
	}
	pcntl->request_shutdown_func(MODULE_PERSISTENT, pcntl->module_number);
	pcntl->request_startup_func(MODULE_PERSISTENT, pcntl->module_number);
	for (int number = 1; number < SIGNALS; number++) {
		zval arguments[2];
		if (Z_ISUNDEF(handlers[number]) || Z_TYPE(handlers[number]) == IS_LONG) {
			continue;
		}
		ZVAL_LONG(&arguments[0], number);
		ZVAL_COPY_VALUE(&arguments[1], &handlers[number]);
		call("pcntl_signal", 2, arguments, &result);
		zval_ptr_dtor(&result);
	}
	call("pcntl_async_signals", 1, &is_async, &result);
	zval_ptr_dtor(&result);
}

static void put_signals_back(void)
{
	alarm(0);
	put_handlers_back();
	for (int number = 1; number < SIGNALS; number++) {
		sigaction(number, &actions[number], NULL);
	}
	sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static bool put_limits_back(void)
{
	bool is_back = true;
	for (int which = 0; which < (int) RLIM_NLIMITS; which++) {
		is_back &= setrlimit(which, &limits[which]) == 0;
	}
	return is_back;
}

/* After a request. */
void outboard_lasting_put_back(void)
{
	const uint32_t made = changed;
	if (made == NONE) {
		return;
	}
	if (made & SIGNAL) {
		put_signals_back();
	}
	outboard_process_is_spoilt |= (made & FOR_GOOD) != 0
		|| ((made & LIMIT) && !put_limits_back())
		|| ((made & PRIORITY) && setpriority(PRIO_PROCESS, 0, priority) != 0);
	changed = NONE;
}

/* What a resident script's boot has changed is for all its requests. */
void outboard_lasting_keep(void)
{
	changed = NONE;
	is_noted = false;
}

/* After start-up. */
void outboard_lasting_startup(void)
{
	for (size_t i = 0; i < CHANGING; i++) {
		zend_function *function =
			zend_hash_str_find_ptr(CG(function_table), changing[i].name, strlen(changing[i].name));
		if (function && function->type == ZEND_INTERNAL_FUNCTION) {
			wrapped[i] = function->internal_function.handler;
			function->internal_function.handler = change;
		}
	}
}
