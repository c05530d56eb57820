/*
 * What Swoole\Process needs of the system and PHP has no functions for. Called by swoole/runtime/Process.php.
 */
#include "swoole/sapi/swoole.h"
#include "fork/fork.h"
#include <sched.h>
#include <sys/prctl.h>
#include <sys/time.h>

ZEND_BEGIN_ARG_INFO_EX(arginfo_descriptor, 0, 0, 1)
	ZEND_ARG_TYPE_INFO(0, descriptor, IS_LONG, 0)
ZEND_END_ARG_INFO()

/* Standard input and output become this descriptor. */
PHP_FUNCTION(outboard_swoole_redirect)
{
	zend_long fd;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(fd)
	ZEND_PARSE_PARAMETERS_END();
	fflush(stdout);
	RETURN_BOOL(dup2((int) fd, STDIN_FILENO) >= 0 && dup2((int) fd, STDOUT_FILENO) >= 0);
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_outlive, 0, 0, 0)
ZEND_END_ARG_INFO()

/* Of a child that goes on without its parent; false in a worker, whose descendants end with it. */
PHP_FUNCTION(outboard_swoole_outlive)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(!outboard_program.is_worker && prctl(PR_SET_PDEATHSIG, 0) == 0);
}

/* Of a child that a coroutine has forked: it gets an event loop of its own. */
PHP_FUNCTION(outboard_swoole_take_root)
{
	ZEND_PARSE_PARAMETERS_NONE();
	outboard_child_take_root();
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_alarm, 0, 0, 2)
	ZEND_ARG_TYPE_INFO(0, microseconds, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, type, IS_LONG, 0)
ZEND_END_ARG_INFO()

/* Below 0 there is no timer any more. */
PHP_FUNCTION(outboard_swoole_alarm)
{
	zend_long us;
	zend_long type;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(us)
		Z_PARAM_LONG(type)
	ZEND_PARSE_PARAMETERS_END();
	const struct timeval time = {us < 0 ? 0 : us / 1000000, us < 0 ? 0 : us % 1000000};
	const struct itimerval timer = {time, time};
	RETURN_BOOL(us != 0 && setitimer((int) type, &timer, NULL) == 0);
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_set_affinity, 0, 0, 1)
	ZEND_ARG_TYPE_INFO(0, processors, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

PHP_FUNCTION(outboard_swoole_set_affinity)
{
	HashTable *processors;
	zval *number;
	cpu_set_t set;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_ARRAY_HT(processors)
	ZEND_PARSE_PARAMETERS_END();
	CPU_ZERO(&set);
	ZEND_HASH_FOREACH_VAL(processors, number) {
		const zend_long processor = zval_get_long(number);
		if (processor < 0 || processor >= CPU_SETSIZE) {
			RETURN_FALSE;
		}
		CPU_SET((size_t) processor, &set);
	} ZEND_HASH_FOREACH_END();
	RETURN_BOOL(sched_setaffinity(0, sizeof(set), &set) == 0);
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_get_affinity, 0, 0, 0)
ZEND_END_ARG_INFO()

PHP_FUNCTION(outboard_swoole_get_affinity)
{
	cpu_set_t set;
	ZEND_PARSE_PARAMETERS_NONE();
	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	array_init(return_value);
	for (zend_long i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET((size_t) i, &set)) {
			add_next_index_long(return_value, i);
		}
	}
}

#define ENGINE(name, arginfo) \
	ZEND_NS_FENTRY("Outboard\\Engine\\Swoole", name, ZEND_FN(outboard_swoole_##name), arginfo, 0)

const zend_function_entry outboard_swoole_process_functions[] = {
	ENGINE(redirect, arginfo_descriptor)
	ENGINE(alarm, arginfo_alarm)
	ENGINE(outlive, arginfo_outlive)
	ENGINE(take_root, arginfo_outlive)
	ENGINE(set_affinity, arginfo_set_affinity)
	ENGINE(get_affinity, arginfo_get_affinity)
	PHP_FE_END
};
