/*
 * php.ini's max_execution_time without a system call per request. PHP sets and clears an interval
 * timer and its handler around each request (zend_set_timeout in zend_execute_API.c): three system
 * calls, a fifth of the cost of a cached one-liner. Here each worker has one timer that ticks once
 * per second of its CPU time, and the ticks count for the current request.
 *
 * So a limit is exact to a second, and PHP's own handler ends the script. If a request sets another
 * limit (set_time_limit, ini_set, .user.ini), PHP's timer runs as usual and the tick does nothing.
 * Invariant: outside of a script no tick reaches PHP.
 */
#include "request/request.h"
#include <errno.h>
#include <signal.h>
#include <time.h>

/* PHP processes use it for nothing else. */
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

/* Before php_request_startup, so that it sets no timer. */
void outboard_time_limit_prepare(void)
{
	EG(timeout_seconds) = 0;
	PG(max_input_time) = -1;
}

void outboard_time_limit_begin(void)
{
	OUTBOARD_ASSERT(!counting);
	ticks = 0;
	counting = configured_s > 0;
}

void outboard_time_limit_end(void)
{
	counting = 0;
}

/*
 * The first tick may come at once, so one tick more than the limit is counted. EG(timeout_seconds)
 * is not 0 while PHP's own timer runs; a script's limit of 0 shows only in the setting.
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

/* In a worker, because timers are not inherited by fork(2). False: see errno. */
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
