/*
 * Swoole\Lock: one writer, or readers, of all processes of the program.
 *
 * Invariants: a process that has ended, however it did, holds no lock; a wait for one suspends its
 * coroutine and not the worker.
 */
#include "swoole/sapi/swoole.h"
#include <errno.h>
#include <unistd.h>

/* Processes that can read at a time; another one waits. */
#define READERS 256

enum { RWLOCK = 1, FILELOCK = 2, MUTEX = 3, SEM = 4, SPINLOCK = 5 };

/* Those of flock(2). */
enum { SHARED = 1, EXCLUSIVE = 2, AT_ONCE = 4 };

typedef struct {
	uint32_t writer; /* the process that holds it alone */
	uint64_t readers[READERS]; /* a process and, in the lower half, how often it holds it */
} shared;

static zend_class_entry *lock_class;

_Static_assert(sizeof(shared) <= OUTBOARD_SWOOLE_SHARED_BYTES, "a lock fits into its page");

static uint32_t process_of(uint64_t reader)
{
	return (uint32_t) (reader >> 32);
}

/* Whether a process reads; those that have ended are removed. */
static bool has_readers(shared *memory)
{
	bool is_found = false;
	for (int i = 0; i < READERS; i++) {
		uint64_t reader = __atomic_load_n(&memory->readers[i], __ATOMIC_SEQ_CST);
		if (reader == 0) {
			continue;
		}
		if (!outboard_swoole_has_ended(process_of(reader))
			|| !__atomic_compare_exchange_n(&memory->readers[i], &reader, 0, false,
				__ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
			is_found = true;
		}
	}
	return is_found;
}

static bool try_write(void *arg)
{
	shared *memory = arg;
	if (has_readers(memory)) {
		return false;
	}
	if (outboard_swoole_try_lock(&memory->writer)) {
		/* One that has begun in between has seen the writer, or is seen here. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!has_readers(memory)) {
			return true;
		}
		outboard_swoole_unlock(&memory->writer);
		return false;
	}
	outboard_swoole_free_orphan(&memory->writer);
	return false;
}

/* The place of this process among the readers, if it has one. */
static uint64_t *own_reader(shared *memory)
{
	const uint32_t own = (uint32_t) getpid();
	for (int i = 0; i < READERS; i++) {
		if (process_of(__atomic_load_n(&memory->readers[i], __ATOMIC_RELAXED)) == own) {
			return &memory->readers[i];
		}
	}
	return NULL;
}

static uint64_t *claim_reader(shared *memory)
{
	const uint64_t own = (uint64_t) (uint32_t) getpid() << 32;
	for (int i = 0; i < READERS; i++) {
		uint64_t none = 0;
		if (__atomic_compare_exchange_n(
				&memory->readers[i], &none, own, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
			return &memory->readers[i];
		}
	}
	return NULL;
}

static void release_read(uint64_t *reader)
{
	/* Only its own process changes it. */
	OUTBOARD_ASSERT_SLOWLY((uint32_t) *reader > 0 && process_of(*reader) == (uint32_t) getpid());
	const uint64_t left = *reader - 1;
	__atomic_store_n(reader, (uint32_t) left == 0 ? 0 : left, __ATOMIC_SEQ_CST);
}

static bool try_read(void *arg)
{
	shared *memory = arg;
	uint64_t *reader = own_reader(memory);
	if (!reader) {
		reader = claim_reader(memory);
	}
	if (!reader) {
		return false;
	}
	__atomic_add_fetch(reader, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&memory->writer, __ATOMIC_SEQ_CST) == 0) {
		return true;
	}
	release_read(reader);
	outboard_swoole_free_orphan(&memory->writer);
	return false;
}

/* The reason of a failure is in the property errCode: EBUSY at once, else ETIMEDOUT. */
static bool take(zval *this, bool (*step)(void *), double seconds)
{
	shared *memory = outboard_swoole_shared_of(this);
	const bool is_taken = memory && outboard_swoole_try_for(step, memory, seconds);
	zend_update_property_long(lock_class, Z_OBJ_P(this), ZEND_STRL("errCode"),
		is_taken ? 0 : seconds == 0 ? EBUSY : ETIMEDOUT);
	return is_taken;
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
	/* All kinds are one: a file is not needed, and none of them spins. */
	(void) kind;
	(void) file;
	outboard_swoole_shared_of(ZEND_THIS);
}

/* Newer versions have one method for all of these: an operation and a time-out. */
PHP_METHOD(Swoole_Lock, lock)
{
	zend_long operation = EXCLUSIVE;
	double seconds = -1;
	ZEND_PARSE_PARAMETERS_START(0, 2)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(operation)
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_BOOL(take(ZEND_THIS, (operation & 3) == SHARED ? try_read : try_write,
		operation & AT_ONCE ? 0 : seconds));
}

PHP_METHOD(Swoole_Lock, trylock)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(take(ZEND_THIS, try_write, 0));
}

PHP_METHOD(Swoole_Lock, lockwait)
{
	double seconds = 1.0;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_BOOL(take(ZEND_THIS, try_write, seconds));
}

PHP_METHOD(Swoole_Lock, lock_read)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(take(ZEND_THIS, try_read, -1));
}

PHP_METHOD(Swoole_Lock, trylock_read)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(take(ZEND_THIS, try_read, 0));
}

PHP_METHOD(Swoole_Lock, unlock)
{
	ZEND_PARSE_PARAMETERS_NONE();
	shared *memory = outboard_swoole_shared_of(ZEND_THIS);
	if (!memory) {
		return;
	}
	uint64_t *reader = own_reader(memory);
	if (reader) {
		release_read(reader);
		RETURN_TRUE;
	}
	const bool is_held = __atomic_load_n(&memory->writer, __ATOMIC_SEQ_CST) != 0;
	if (is_held) {
		outboard_swoole_unlock(&memory->writer);
	}
	RETURN_BOOL(is_held);
}

PHP_METHOD(Swoole_Lock, destroy)
{
	ZEND_PARSE_PARAMETERS_NONE();
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

#define METHOD(name) PHP_ME(Swoole_Lock, name, arginfo_any, ZEND_ACC_PUBLIC)

static const zend_function_entry methods[] = {
	METHOD(__construct)
	METHOD(lock)
	METHOD(trylock)
	METHOD(lockwait)
	METHOD(lock_read)
	METHOD(trylock_read)
	METHOD(unlock)
	METHOD(destroy)
	PHP_FE_END
};

void outboard_swoole_lock_startup(void)
{
	static const struct { const char *name; zend_long kind; } kinds[] = {
		{"RWLOCK", RWLOCK}, {"FILELOCK", FILELOCK}, {"MUTEX", MUTEX}, {"SEM", SEM},
		{"SPINLOCK", SPINLOCK},
	};
	zend_class_entry class;
	INIT_NS_CLASS_ENTRY(class, "Swoole", "Lock", methods);
	lock_class = outboard_swoole_declare_shared(&class);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char name[32];
		zend_declare_class_constant_long(
			lock_class, kinds[i].name, strlen(kinds[i].name), kinds[i].kind);
		const int len = snprintf(name, sizeof(name), "SWOOLE_%s", kinds[i].name);
		zend_register_long_constant(name, (size_t) len, kinds[i].kind, CONST_PERSISTENT, 0);
	}
	zend_declare_property_long(lock_class, ZEND_STRL("errCode"), 0, ZEND_ACC_PUBLIC);
	zend_register_class_alias("swoole_lock", lock_class);
}
