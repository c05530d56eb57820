/*
 * Swoole\Atomic and Swoole\Atomic\Long, numbers in memory that all processes share.
 *
 * Invariant: a wait for a wake-up suspends its coroutine and not the worker.
 */
#include "swoole/sapi/swoole.h"

typedef struct {
	uint64_t value;
	uint32_t is_set; /* whether a process has stored the first value */
} shared;

static zend_class_entry *long_class;

static shared *memory_of(zval *this)
{
	return outboard_swoole_shared_of(this);
}

/* An Atomic has 32 bits without a sign, a Long 64 with one. */
static bool is_long(zval *this)
{
	return instanceof_function(Z_OBJCE_P(this), long_class);
}

static zend_long shown(zval *this, uint64_t value)
{
	return is_long(this) ? (zend_long) value : (zend_long) (uint32_t) value;
}

static uint64_t fitted(zval *this, zend_long value)
{
	return is_long(this) ? (uint64_t) value : (uint64_t) (uint32_t) value;
}

PHP_METHOD(Swoole_Atomic, __construct)
{
	zend_long value = 0;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(value)
	ZEND_PARSE_PARAMETERS_END();
	shared *memory = memory_of(ZEND_THIS);
	uint32_t new = 0;
	/* Another process that has made it may have changed it since. */
	if (memory && __atomic_compare_exchange_n(
			&memory->is_set, &new, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		__atomic_store_n(&memory->value, fitted(ZEND_THIS, value), __ATOMIC_SEQ_CST);
	}
}

static void change(INTERNAL_FUNCTION_PARAMETERS, int sign)
{
	zend_long by = 1;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(by)
	ZEND_PARSE_PARAMETERS_END();
	shared *memory = memory_of(ZEND_THIS);
	if (memory) {
		RETURN_LONG(shown(ZEND_THIS, __atomic_add_fetch(
			&memory->value, (uint64_t) by * (uint64_t) sign, __ATOMIC_SEQ_CST)));
	}
}

PHP_METHOD(Swoole_Atomic, add)
{
	change(INTERNAL_FUNCTION_PARAM_PASSTHRU, 1);
}

PHP_METHOD(Swoole_Atomic, sub)
{
	change(INTERNAL_FUNCTION_PARAM_PASSTHRU, -1);
}

PHP_METHOD(Swoole_Atomic, get)
{
	ZEND_PARSE_PARAMETERS_NONE();
	shared *memory = memory_of(ZEND_THIS);
	if (memory) {
		RETURN_LONG(shown(ZEND_THIS, __atomic_load_n(&memory->value, __ATOMIC_SEQ_CST)));
	}
}

PHP_METHOD(Swoole_Atomic, set)
{
	zend_long value;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(value)
	ZEND_PARSE_PARAMETERS_END();
	shared *memory = memory_of(ZEND_THIS);
	if (memory) {
		__atomic_store_n(&memory->value, fitted(ZEND_THIS, value), __ATOMIC_SEQ_CST);
	}
}

PHP_METHOD(Swoole_Atomic, cmpset)
{
	zend_long expected;
	zend_long value;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(expected)
		Z_PARAM_LONG(value)
	ZEND_PARSE_PARAMETERS_END();
	shared *memory = memory_of(ZEND_THIS);
	if (!memory) {
		return;
	}
	uint64_t there = __atomic_load_n(&memory->value, __ATOMIC_SEQ_CST);
	while (shown(ZEND_THIS, there) == shown(ZEND_THIS, fitted(ZEND_THIS, expected))) {
		if (__atomic_compare_exchange_n(&memory->value, &there, fitted(ZEND_THIS, value), false,
				__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
			RETURN_TRUE;
		}
	}
	RETURN_FALSE;
}

/* wait() ends when the value is 1, and sets it to 0. */
static bool take_wakeup(void *arg)
{
	shared *memory = arg;
	OUTBOARD_ASSERT(((uintptr_t) &memory->value & 7) == 0);
	uint64_t set = 1;
	return __atomic_compare_exchange_n(
		&memory->value, &set, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

PHP_METHOD(Swoole_Atomic, wait)
{
	double seconds = 1.0;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	shared *memory = memory_of(ZEND_THIS);
	RETURN_BOOL(memory && outboard_swoole_try_for(take_wakeup, memory, seconds));
}

PHP_METHOD(Swoole_Atomic, wakeup)
{
	zend_long count = 1;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(count)
	ZEND_PARSE_PARAMETERS_END();
	shared *memory = memory_of(ZEND_THIS);
	(void) count;
	if (memory) {
		__atomic_store_n(&memory->value, 1, __ATOMIC_SEQ_CST);
	}
	RETURN_BOOL(memory != NULL);
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

#define METHOD(name) PHP_ME(Swoole_Atomic, name, arginfo_any, ZEND_ACC_PUBLIC)

#define NUMBER_METHODS \
	METHOD(__construct) \
	METHOD(add) \
	METHOD(sub) \
	METHOD(get) \
	METHOD(set) \
	METHOD(cmpset)

static const zend_function_entry atomic_methods[] = {
	NUMBER_METHODS
	METHOD(wait)
	METHOD(wakeup)
	PHP_FE_END
};

static const zend_function_entry long_methods[] = {
	NUMBER_METHODS
	PHP_FE_END
};

void outboard_swoole_atomic_startup(void)
{
	zend_class_entry class;
	INIT_NS_CLASS_ENTRY(class, "Swoole", "Atomic", atomic_methods);
	zend_register_class_alias("swoole_atomic", outboard_swoole_declare_shared(&class));
	INIT_NS_CLASS_ENTRY(class, "Swoole\\Atomic", "Long", long_methods);
	long_class = outboard_swoole_declare_shared(&class);
	zend_register_class_alias("swoole_atomic_long", long_class);
}
