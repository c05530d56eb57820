/*
 * Swoole\Atomic, Swoole\Atomic\Long and Swoole\Lock, in memory that all processes share.
 *
 * Invariants: a wait for a lock or a wake-up suspends its coroutine and not the worker; a lock of a
 * process that has gone is free.
 */
#include "swoole.h"
#include "ext/spl/spl_exceptions.h"
#include <signal.h>
#include <time.h>
#include <unistd.h>

typedef struct {
	uint64_t value;
	uint32_t word;    /* a lock's owner: process, or that of the only writer */
	uint32_t readers;
} shared;

typedef struct {
	shared *memory;
	zend_long kind; /* of a lock */
	zend_object object;
} holder;

enum kind { FILELOCK = 2, MUTEX = 3, SEM = 4, RWLOCK = 1, SPINLOCK = 5 };

static zend_class_entry *atomic_class;
static zend_class_entry *long_class;
static zend_class_entry *lock_class;
static zend_object_handlers handlers;

static holder *holder_of(zend_object *object)
{
	return (holder *) ((char *) object - XtOffsetOf(holder, object));
}

static zend_object *create_object(zend_class_entry *class)
{
	holder *one = zend_object_alloc(sizeof(*one), class);
	one->memory = NULL;
	one->kind = MUTEX;
	zend_object_std_init(&one->object, class);
	object_properties_init(&one->object, class);
	one->object.handlers = &handlers;
	return &one->object;
}

static void free_object(zend_object *object)
{
	holder *one = holder_of(object);
	if (one->memory) {
		outboard_swoole_unshare(one->memory, sizeof(shared));
	}
	zend_object_std_dtor(object);
}

static shared *memory_of(zval *this)
{
	holder *one = holder_of(Z_OBJ_P(this));
	if (!one->memory) {
		one->memory = outboard_swoole_share(sizeof(shared));
		if (!one->memory) {
			zend_throw_error(NULL, "there is no shared memory left");
		}
	}
	return one->memory;
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
			&memory->word, &new, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
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

/* Tries until it succeeds or the time is over, and has other coroutines go on between. */
static bool try_for(bool (*step)(void *arg), void *arg, double seconds)
{
	double waited = 0;
	long pause_us = 20;
	while (!step(arg)) {
		if (seconds >= 0 && waited >= seconds) {
			return false;
		}
		const struct timespec pause = {0, pause_us * 1000};
		nanosleep(&pause, NULL);
		if (EG(exception)) {
			return false;
		}
		waited += (double) pause_us / 1e6;
		pause_us = pause_us < 2000 ? pause_us * 2 : 2000;
	}
	return true;
}

/* wait() ends when the value is 1, and sets it to 0. */
static bool take_wakeup(void *arg)
{
	shared *memory = arg;
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
	RETURN_BOOL(memory && try_for(take_wakeup, memory, seconds));
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

PHP_METHOD(Swoole_Lock, __construct)
{
	zend_long kind = MUTEX;
	zend_string *file = NULL;
	ZEND_PARSE_PARAMETERS_START(0, 2)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(kind)
		Z_PARAM_STR(file)
	ZEND_PARSE_PARAMETERS_END();
	(void) file;
	if (memory_of(ZEND_THIS)) {
		holder_of(Z_OBJ_P(ZEND_THIS))->kind = kind;
	}
}

static bool is_alive(uint32_t pid)
{
	return kill((pid_t) pid, 0) == 0 || errno != ESRCH;
}

/* For a writer: nobody else is in there. */
static bool try_write(void *arg)
{
	shared *memory = arg;
	if (__atomic_load_n(&memory->readers, __ATOMIC_SEQ_CST) > 0) {
		return false;
	}
	if (outboard_swoole_try_lock(&memory->word)) {
		if (__atomic_load_n(&memory->readers, __ATOMIC_SEQ_CST) == 0) {
			return true;
		}
		outboard_swoole_unlock(&memory->word);
		return false;
	}
	uint32_t owner = __atomic_load_n(&memory->word, __ATOMIC_RELAXED);
	if (owner != 0 && !is_alive(owner)) {
		__atomic_compare_exchange_n(
			&memory->word, &owner, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	}
	return false;
}

static bool try_read(void *arg)
{
	shared *memory = arg;
	__atomic_add_fetch(&memory->readers, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&memory->word, __ATOMIC_SEQ_CST) == 0) {
		return true;
	}
	__atomic_sub_fetch(&memory->readers, 1, __ATOMIC_SEQ_CST);
	return false;
}

static void take(INTERNAL_FUNCTION_PARAMETERS, bool (*step)(void *), double seconds)
{
	ZEND_PARSE_PARAMETERS_NONE();
	shared *memory = memory_of(ZEND_THIS);
	RETURN_BOOL(memory && try_for(step, memory, seconds));
}

/* Newer versions have one method for all of these: an operation and a time-out. */
PHP_METHOD(Swoole_Lock, lock)
{
	zend_long operation = 2;
	double seconds = -1;
	ZEND_PARSE_PARAMETERS_START(0, 2)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(operation)
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	shared *memory = memory_of(ZEND_THIS);
	/* LOCK_SH is 1 and LOCK_NB 4, as of flock(). */
	RETURN_BOOL(memory && try_for((operation & 3) == 1 ? try_read : try_write, memory,
		operation & 4 ? 0 : seconds));
}

PHP_METHOD(Swoole_Lock, trylock)
{
	take(INTERNAL_FUNCTION_PARAM_PASSTHRU, try_write, 0);
}

PHP_METHOD(Swoole_Lock, lockwait)
{
	double seconds = 1.0;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	shared *memory = memory_of(ZEND_THIS);
	RETURN_BOOL(memory && try_for(try_write, memory, seconds));
}

PHP_METHOD(Swoole_Lock, lock_read)
{
	take(INTERNAL_FUNCTION_PARAM_PASSTHRU, try_read, -1);
}

PHP_METHOD(Swoole_Lock, trylock_read)
{
	take(INTERNAL_FUNCTION_PARAM_PASSTHRU, try_read, 0);
}

PHP_METHOD(Swoole_Lock, unlock)
{
	ZEND_PARSE_PARAMETERS_NONE();
	shared *memory = memory_of(ZEND_THIS);
	if (!memory) {
		return;
	}
	if (__atomic_load_n(&memory->word, __ATOMIC_SEQ_CST) != 0) {
		outboard_swoole_unlock(&memory->word);
	} else if (__atomic_load_n(&memory->readers, __ATOMIC_SEQ_CST) > 0) {
		__atomic_sub_fetch(&memory->readers, 1, __ATOMIC_SEQ_CST);
	} else {
		RETURN_FALSE;
	}
	RETURN_TRUE;
}

PHP_METHOD(Swoole_Lock, destroy)
{
	ZEND_PARSE_PARAMETERS_NONE();
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

#define METHOD(class, name) PHP_ME(class, name, arginfo_any, ZEND_ACC_PUBLIC)

static const zend_function_entry atomic_methods[] = {
	METHOD(Swoole_Atomic, __construct)
	METHOD(Swoole_Atomic, add)
	METHOD(Swoole_Atomic, sub)
	METHOD(Swoole_Atomic, get)
	METHOD(Swoole_Atomic, set)
	METHOD(Swoole_Atomic, cmpset)
	METHOD(Swoole_Atomic, wait)
	METHOD(Swoole_Atomic, wakeup)
	PHP_FE_END
};

static const zend_function_entry long_methods[] = {
	METHOD(Swoole_Atomic, __construct)
	METHOD(Swoole_Atomic, add)
	METHOD(Swoole_Atomic, sub)
	METHOD(Swoole_Atomic, get)
	METHOD(Swoole_Atomic, set)
	METHOD(Swoole_Atomic, cmpset)
	PHP_FE_END
};

static const zend_function_entry lock_methods[] = {
	METHOD(Swoole_Lock, __construct)
	METHOD(Swoole_Lock, lock)
	METHOD(Swoole_Lock, trylock)
	METHOD(Swoole_Lock, lockwait)
	METHOD(Swoole_Lock, lock_read)
	METHOD(Swoole_Lock, trylock_read)
	METHOD(Swoole_Lock, unlock)
	METHOD(Swoole_Lock, destroy)
	PHP_FE_END
};

static zend_class_entry *declare(zend_class_entry *class)
{
	zend_class_entry *declared = zend_register_internal_class_ex(class, NULL);
	declared->create_object = create_object;
	declared->ce_flags |= ZEND_ACC_NOT_SERIALIZABLE;
	return declared;
}

void outboard_swoole_atomic_startup(void)
{
	static const struct { const char *name; zend_long kind; } kinds[] = {
		{"RWLOCK", RWLOCK}, {"FILELOCK", FILELOCK}, {"MUTEX", MUTEX}, {"SEM", SEM},
		{"SPINLOCK", SPINLOCK},
	};
	zend_class_entry atomic;
	zend_class_entry wide;
	zend_class_entry lock;
	INIT_NS_CLASS_ENTRY(atomic, "Swoole", "Atomic", atomic_methods);
	INIT_NS_CLASS_ENTRY(wide, "Swoole\\Atomic", "Long", long_methods);
	INIT_NS_CLASS_ENTRY(lock, "Swoole", "Lock", lock_methods);
	atomic_class = declare(&atomic);
	long_class = declare(&wide);
	lock_class = declare(&lock);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char name[32];
		zend_declare_class_constant_long(
			lock_class, kinds[i].name, strlen(kinds[i].name), kinds[i].kind);
		const int len = snprintf(name, sizeof(name), "SWOOLE_%s", kinds[i].name);
		zend_register_long_constant(name, (size_t) len, kinds[i].kind, CONST_PERSISTENT, 0);
	}
	zend_declare_property_long(lock_class, ZEND_STRL("errCode"), 0, ZEND_ACC_PUBLIC);
	zend_register_class_alias("swoole_atomic", atomic_class);
	zend_register_class_alias("swoole_atomic_long", long_class);
	zend_register_class_alias("swoole_lock", lock_class);
	memcpy(&handlers, &std_object_handlers, sizeof(handlers));
	handlers.offset = XtOffsetOf(holder, object);
	handlers.free_obj = free_object;
	handlers.clone_obj = NULL;
}
