/*
 * Swoole's option enable_preemptive_scheduler: a coroutine that computes for 10 ms lets others run.
 *
 * A timer of the process's CPU time asks the engine for an interrupt, which it checks for in loops and at
 * calls (zend_interrupt_function). Without the option there is no timer and nothing is hooked.
 * Invariants: the signal handler only sets two flags; no timer is inherited by fork(2), so that each
 * process starts its own with its first coroutine.
 */
#include "swoole/sapi/coroutines.h"
#include <pthread.h>
#include <signal.h>
#include <time.h>

#define SLICE_NS 10000000

static bool is_wanted;
static bool is_started;
static bool is_paused; /* by Coroutine::disableScheduler() */
static volatile sig_atomic_t is_due;
static void (*interrupt_next)(zend_execute_data *frame);

static bool may_give_way(void)
{
	return !is_paused && outboard_running->record && !EG(exception)
		&& !outboard_is_autoloading() && outboard_may_suspend() && outboard_reserve_context();
}

static void on_interrupt(zend_execute_data *frame)
{
	if (interrupt_next) {
		interrupt_next(frame);
	}
	if (is_due) {
		is_due = 0;
		if (may_give_way()) {
			outboard_give_way();
			outboard_throw_if_cancelled();
		}
	}
}

static void on_signal(int number)
{
	(void) number;
	is_due = 1;
	zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
}

static void forget(void)
{
	is_started = false;
}

static void hook(void)
{
	static bool is_hooked;
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	if (!is_hooked) {
		is_hooked = true;
		interrupt_next = zend_interrupt_function;
		zend_interrupt_function = on_interrupt;
		sigaction(SIGRTMAX, &action, NULL);
		pthread_atfork(NULL, NULL, forget);
	}
}

/* Before a coroutine begins. */
void outboard_swoole_preemption_start(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMAX};
	const struct itimerspec slice = {.it_interval.tv_nsec = SLICE_NS, .it_value.tv_nsec = SLICE_NS};
	timer_t timer;
	if (is_wanted && !is_started) {
		hook();
		OUTBOARD_ASSERT(zend_interrupt_function == on_interrupt || interrupt_next != on_interrupt);
		is_started = timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) == 0
			&& timer_settime(timer, 0, &slice, NULL) == 0;
	}
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

PHP_FUNCTION(outboard_swoole_set_preemptive)
{
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_BOOL(is_wanted)
	ZEND_PARSE_PARAMETERS_END();
}

/* False when it changes nothing. */
PHP_FUNCTION(outboard_swoole_pause_preemption)
{
	bool wanted;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_BOOL(wanted)
	ZEND_PARSE_PARAMETERS_END();
	const bool changes = is_paused != wanted;
	is_paused = wanted;
	RETURN_BOOL(changes);
}

#define ENGINE(name) \
	ZEND_NS_FENTRY("Outboard\\Engine\\Swoole", name, ZEND_FN(outboard_swoole_##name), arginfo_any, 0)

const zend_function_entry outboard_swoole_preemption_functions[] = {
	ENGINE(set_preemptive)
	ENGINE(pause_preemption)
	PHP_FE_END
};

/* Of swoole.enable_preemptive_scheduler. */
ZEND_INI_MH(outboard_swoole_on_preemptive)
{
	(void) entry, (void) mh_arg1, (void) mh_arg2, (void) mh_arg3, (void) stage;
	is_wanted = zend_ini_parse_bool(new_value);
	return SUCCESS;
}
