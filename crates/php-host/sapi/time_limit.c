/*
 * The max_execution_time of php.ini without a system call per request. PHP sets and clears an
 * interval timer and its handler around every request (zend_set_timeout in zend_execute_API.c):
 * three system calls, a fifth of what a cached one-liner costs. Here a worker has one timer that
 * ticks once per second of its CPU time; the tick counts for the request in progress.
 *
 * A limit so holds to the second, and ends the script through PHP's own handler. Whatever sets
 * another limit for a request (set_time_limit, ini_set, .user.ini) arms PHP's timer as ever, and
 * the tick stands back. Invariant: outside of a script no tick reaches PHP.
 */
#include "shim.h"
#include <errno.h>
#include <signal.h>
#include <time.h>

/* Nobody else's in a PHP process. */
#define TICK_SIGNAL SIGVTALRM

static const zend_ini_entry *setting;
static zend_long configured_s;
static volatile sig_atomic_t counting;
static volatile sig_atomic_t ticks;

/* After the ini files were read. */
void outboard_time_limit_hook(void)
{
	setting = zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("max_execution_time"));
	configured_s = setting && EG(timeout_seconds) > 0 ? EG(timeout_seconds) : 0;
}

/* Before php_request_startup: leaves it nothing to arm. */
void outboard_time_limit_prepare(void)
{
	EG(timeout_seconds) = 0;
	PG(max_input_time) = -1;
}

void outboard_time_limit_begin(void)
{
	ticks = 0;
	counting = configured_s > 0;
}

void outboard_time_limit_end(void)
{
	counting = 0;
}

/*
 * The first tick may come at once, so it is the one after the last whole second that counts.
 * EG(timeout_seconds) is not 0 when PHP's own timer runs; a limit of 0 that a script set shows in
 * the setting alone.
 */
static void tick(int signal_number)
{
	int saved_errno = errno;
	(void) signal_number;
	if (counting && EG(timeout_seconds) == 0 && !setting->modified && ++ticks > configured_s) {
		EG(timeout_seconds) = configured_s; /* for the message in zend_timeout() */
		raise(SIGPROF);
	}
	errno = saved_errno;
}

/* In a worker, because fork(2) does not hand timers on. False: errno says why. */
bool outboard_time_limit_start(void)
{
	struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = TICK_SIGNAL };
	struct itimerspec second = { .it_interval = { .tv_sec = 1 }, .it_value = { .tv_sec = 1 } };
	timer_t timer;
	if (configured_s == 0) {
		return true;
	}
	sigemptyset(&action.sa_mask);
	return sigaction(TICK_SIGNAL, &action, NULL) == 0
		&& timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) == 0
		&& timer_settime(timer, 0, &second, NULL) == 0;
}
