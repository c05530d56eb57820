/*
 * Waits of Swoole's coroutines: for a time, for each other, for a descriptor. A coroutine that is
 * resumed runs at once, before the one that has resumed it.
 *
 * Invariants: a wait ends once, for one reason; only waits of the functions here can be ended by
 * another coroutine.
 */
#include "swoole/sapi/coroutines.h"
#include "waiting/waiting.h"
#include "ext/spl/spl_exceptions.h"

typedef outboard_swoole_record record;

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

/* Suspends the running coroutine; below 0 there is no time-out. */
enum outboard_swoole_reason outboard_swoole_wait(int64_t timeout_us)
{
	coroutine *self = outboard_running;
	const uint64_t waiter = outboard_waiter();
	uint64_t other = 0;
	/* A wait ends once: it has not begun before. */
	OUTBOARD_ASSERT(self->phase == RUNNING && !self->is_cancellable);
	self->wait_ended = OUTBOARD_SWOOLE_OVER;
	self->is_cancellable = true;
	if (timeout_us >= 0) {
		outboard_rs_wait(outboard_host.events, waiter, NULL, 0, timeout_us, false, &other);
	}
	outboard_suspend();
	if (timeout_us >= 0) {
		outboard_rs_unwait(outboard_host.events, waiter);
	}
	self->is_cancellable = false;
	outboard_throw_if_cancelled();
	return (enum outboard_swoole_reason) self->wait_ended;
}

/* False, with an exception, where the engine forbids a switch, or without memory for another context. */
bool outboard_swoole_may_wait(void)
{
	if (!outboard_host.events || zend_fiber_switch_blocked()) {
		zend_throw_exception(spl_ce_LogicException, "it is not possible to wait here", 0);
		return false;
	}
	if (!outboard_reserve_context()) {
		zend_throw_error(NULL, "there is no memory for another coroutine");
		return false;
	}
	return true;
}

/* Waits for the end of another one, which wakes this wait alone. */
static enum outboard_swoole_reason wait_for_end(record *one, int64_t timeout_us)
{
	one->awaited_by =
		safe_erealloc(one->awaited_by, one->awaited_count + 1, sizeof(uint64_t), 0);
	one->awaited_by[one->awaited_count++] = outboard_waiter();
	return outboard_swoole_wait(timeout_us);
}

int64_t outboard_swoole_timeout_us(double seconds)
{
	return seconds < 0 || seconds > 1e9 ? -1 : (int64_t) (seconds * 1e6);
}

/* 0: the time is over, 1: resumed, 2: cancelled. */
PHP_FUNCTION(outboard_swoole_wait)
{
	double seconds = -1;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	if (outboard_swoole_may_wait()) {
		RETURN_LONG(outboard_swoole_wait(outboard_swoole_timeout_us(seconds)));
	}
}

PHP_FUNCTION(outboard_swoole_await)
{
	zend_long id;
	double seconds = -1;
	ZEND_PARSE_PARAMETERS_START(1, 2)
		Z_PARAM_LONG(id)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	record *one = outboard_swoole_record_of(id);
	if (!one) {
		RETURN_LONG(OUTBOARD_SWOOLE_RESUMED);
	}
	if (outboard_swoole_may_wait()) {
		RETURN_LONG(wait_for_end(one, outboard_swoole_timeout_us(seconds)));
	}
}

/* The number of the descriptor below a stream, or the number itself; -1: there is none. */
static int descriptor_of(zval *value)
{
	php_stream *stream = NULL;
	int fd = -1;
	if (Z_TYPE_P(value) == IS_LONG) {
		return (int) Z_LVAL_P(value);
	}
	if (Z_TYPE_P(value) == IS_OBJECT) {
		return outboard_socket_descriptor(value);
	}
	if (Z_TYPE_P(value) == IS_RESOURCE) {
		php_stream_from_zval_no_verify(stream, value);
	}
	if (!stream || php_stream_cast(stream, PHP_STREAM_AS_FD_FOR_SELECT | PHP_STREAM_CAST_INTERNAL,
			(void **) &fd, 0) != SUCCESS) {
		return -1;
	}
	return fd;
}

PHP_FUNCTION(outboard_swoole_descriptor)
{
	zval *value;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_ZVAL(value)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_LONG(descriptor_of(value));
}

enum { READ = 512, WRITE = 1024 };

/* Which of the events have come; 0: none, the time is over or the wait was cancelled. */
PHP_FUNCTION(outboard_swoole_wait_descriptor)
{
	zval *value;
	zend_long events;
	double seconds = -1;
	uint64_t other = 0;
	ZEND_PARSE_PARAMETERS_START(2, 3)
		Z_PARAM_ZVAL(value)
		Z_PARAM_LONG(events)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	struct pollfd one = {.fd = descriptor_of(value)};
	one.events = (short) ((events & READ ? POLLIN : 0) | (events & WRITE ? POLLOUT : 0));
	if (one.fd < 0 || !outboard_swoole_may_wait()) {
		RETURN_LONG(0);
	}
	const uint64_t self = outboard_waiter();
	if (outboard_poll_real(&one, 1, 0) == 0) {
		if (outboard_rs_wait(
				outboard_host.events, self, &one, 1, outboard_swoole_timeout_us(seconds), false, &other)) {
			RETURN_LONG(0);
		}
		outboard_swoole_wait(-1);
		outboard_rs_unwait(outboard_host.events, self);
		outboard_poll_real(&one, 1, 0);
	}
	RETURN_LONG((one.revents & (POLLIN | POLLHUP | POLLERR) && events & READ ? READ : 0)
		| (one.revents & POLLOUT ? WRITE : 0));
}

/* As wait(), until another coroutine resumes this one by its id. */
PHP_FUNCTION(outboard_swoole_pause)
{
	double seconds = -1;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	record *one = outboard_running->record;
	if (one && outboard_swoole_may_wait()) {
		one->is_yielded = true;
		const zend_long reason = outboard_swoole_wait(outboard_swoole_timeout_us(seconds));
		one->is_yielded = false;
		RETURN_LONG(reason);
	}
}

/* Ends the wait of a coroutine, which runs at once; false when it does not wait. */
bool outboard_swoole_continue(coroutine *one, enum outboard_swoole_reason reason)
{
	if (!one || one->phase != WAITING) {
		return false;
	}
	OUTBOARD_ASSERT(one != outboard_running);
	one->wait_ended = reason;
	one->serial++;
	/* In a destructor the engine forbids a switch before PHP 8.4: it runs when that has returned. */
	if (zend_fiber_switch_blocked()) {
		outboard_ready(one);
	} else {
		outboard_switch_now(one);
	}
	return true;
}

/* Ends the wait of this name; false when it has ended already. */
PHP_FUNCTION(outboard_swoole_wake)
{
	zend_long waiter;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(waiter)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_BOOL(outboard_swoole_continue(outboard_find_waiter((uint64_t) waiter), OUTBOARD_SWOOLE_RESUMED));
}

PHP_FUNCTION(outboard_swoole_resume)
{
	zend_long id;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(id)
	ZEND_PARSE_PARAMETERS_END();
	const record *one = outboard_swoole_record_of(id);
	RETURN_BOOL(one && one->is_yielded && outboard_swoole_continue(one->runs_on, OUTBOARD_SWOOLE_RESUMED));
}

/* Ends a wait of the functions here and of channels. */
PHP_FUNCTION(outboard_swoole_cancel)
{
	zend_long id;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(id)
	ZEND_PARSE_PARAMETERS_END();
	const record *one = outboard_swoole_record_of(id);
	RETURN_BOOL(one && one->runs_on && one->runs_on->is_cancellable
		&& outboard_swoole_continue(one->runs_on, OUTBOARD_SWOOLE_CANCELLED));
}

/* Whether the last wait of the running coroutine was ended by cancel(). */
PHP_FUNCTION(outboard_swoole_is_cancelled)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(outboard_running->wait_ended == OUTBOARD_SWOOLE_CANCELLED);
}

#define ENGINE(name) \
	ZEND_NS_FENTRY("Outboard\\Engine\\Swoole", name, ZEND_FN(outboard_swoole_##name), arginfo_any, 0)

const zend_function_entry outboard_swoole_wait_functions[] = {
	ENGINE(wait)
	ENGINE(await)
	ENGINE(descriptor)
	ENGINE(wait_descriptor)
	ENGINE(pause)
	ENGINE(wake)
	ENGINE(resume)
	ENGINE(cancel)
	ENGINE(is_cancelled)
	PHP_FE_END
};
