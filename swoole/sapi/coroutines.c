/*
 * Swoole's coroutines on the host's: a new one runs at once, until it waits. The PHP part is
 * swoole/runtime/Coroutine.php; wait.c has the waits.
 *
 * Invariants: a coroutine belongs to no request, so it outlives the one that has created it; an id is
 * never used again.
 */
#include "swoole/sapi/coroutines.h"
#include "waiting/waiting.h"
#include "zend_builtin_functions.h"

typedef outboard_swoole_record record;

static HashTable records;
static zend_long ids;
static zend_long most;
static zend_long created;
static zend_long limit = 100000; /* max_coroutine */

static record *own_record(void)
{
	return outboard_running->record;
}

record *outboard_swoole_record_of(zend_long id)
{
	return zend_hash_index_find_ptr(&records, (zend_ulong) id);
}

static void begin(record *one, zend_long parent)
{
	one->id = ++ids;
	one->parent = parent;
	one->began_us = outboard_now_us();
	outboard_swoole_preemption_start();
	ZVAL_UNDEF(&one->context);
	zend_hash_index_add_new_ptr(&records, (zend_ulong) one->id, one);
	created++;
	if ((zend_long) zend_hash_num_elements(&records) > most) {
		most = (zend_long) zend_hash_num_elements(&records);
	}
}

/* On the running context. */
static void start(record *one)
{
	OUTBOARD_ASSERT(!outboard_running->record && !one->runs_on);
	one->runs_on = outboard_running;
	outboard_running->record = one;
	outboard_running->wait_ended = OUTBOARD_SWOOLE_OVER;
}

static void call_deferred(record *one)
{
	while (one->deferred_count > 0) {
		zval callable = one->deferred[--one->deferred_count];
		outboard_call_php(&callable, NULL);
		zval_ptr_dtor(&callable);
	}
	if (one->deferred) {
		efree(one->deferred);
		one->deferred = NULL;
	}
}

static void wake_waiters(record *one)
{
	for (uint32_t i = 0; i < one->awaited_count; i++) {
		coroutine *waiter = outboard_find_waiter(one->awaited_by[i]);
		if (waiter && waiter->phase == WAITING) {
			waiter->wait_ended = OUTBOARD_SWOOLE_RESUMED;
			outboard_wake(one->awaited_by[i]);
		}
	}
	if (one->awaited_by) {
		efree(one->awaited_by);
	}
}

/* What is left in its output buffers is printed. */
static void end_output(void *arg)
{
	(void) arg;
	php_output_end_all();
}

static void end(record *one)
{
	OUTBOARD_ASSERT(one == outboard_running->record && one->runs_on == outboard_running && one->id > 0);
	call_deferred(one);
	if (OG(active)) {
		outboard_protected_call(end_output, NULL, NULL);
	}
	wake_waiters(one);
	zval_ptr_dtor(&one->context);
	outboard_running->record = NULL;
	zend_hash_index_del(&records, (zend_ulong) one->id);
	efree(one);
}

/* In a forked child: those of its parent are not here. */
void outboard_program_forget_coroutines(void)
{
	zend_hash_clean(&records);
}

/* The running context is a coroutine from here to outboard_swoole_coroutine_leave(). */
void outboard_swoole_coroutine_enter(void)
{
	record *one = ecalloc(1, sizeof(*one));
	start(one);
	begin(one, -1);
}

void outboard_swoole_coroutine_leave(void)
{
	end(own_record());
}

static void call_function(void *arg)
{
	record *one = arg;
	zval result;
	ZVAL_UNDEF(&result);
	one->call.retval = &result;
	zend_call_function(&one->call, &one->cache);
	zval_ptr_dtor(&result);
}

static void run(void *arg)
{
	record *one = arg;
	start(one);
	outboard_protected_call(call_function, one, NULL);
	for (uint32_t i = 0; i < one->call.param_count; i++) {
		zval_ptr_dtor(&one->call.params[i]);
	}
	if (one->call.params) {
		efree(one->call.params);
	}
	zval_ptr_dtor(&one->call.function_name);
	end(one);
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_create, 0, 0, 1)
	ZEND_ARG_TYPE_INFO(0, func, IS_CALLABLE, 0)
	ZEND_ARG_VARIADIC_INFO(0, params)
ZEND_END_ARG_INFO()

/* go(): its id, when the function has run until its first wait; false when there are too many. */
PHP_FUNCTION(outboard_swoole_create)
{
	zend_fcall_info call;
	zend_fcall_info_cache cache;
	zval *arguments = NULL;
	uint32_t count = 0;
	ZEND_PARSE_PARAMETERS_START(1, -1)
		Z_PARAM_FUNC(call, cache)
		Z_PARAM_VARIADIC('*', arguments, count)
	ZEND_PARSE_PARAMETERS_END();
	if (!outboard_host.events || outboard_host.is_broken || !outboard_reserve_context()) {
		zend_throw_error(NULL, outboard_host.events && !outboard_host.is_broken
			? "there is no memory for another coroutine" : "a coroutine cannot be created here");
		return;
	}
	if ((zend_long) zend_hash_num_elements(&records) >= limit) {
		zend_error(E_WARNING, "exceed max number of coroutine " ZEND_LONG_FMT, limit);
		RETURN_FALSE;
	}
	const record *creator = own_record();
	record *one = ecalloc(1, sizeof(*one));
	one->call = call;
	one->cache = cache;
	Z_TRY_ADDREF(one->call.function_name);
	one->call.param_count = count;
	one->call.params = count ? safe_emalloc(count, sizeof(zval), 0) : NULL;
	for (uint32_t i = 0; i < count; i++) {
		ZVAL_COPY(&one->call.params[i], &arguments[i]);
	}
	begin(one, creator ? creator->id : -1);
	const zend_long id = one->id;
	outboard_run_now(run, one);
	RETURN_LONG(id);
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_callable, 0, 0, 1)
	ZEND_ARG_TYPE_INFO(0, callback, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

PHP_FUNCTION(outboard_swoole_defer)
{
	zend_fcall_info call;
	zend_fcall_info_cache cache;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_FUNC(call, cache)
	ZEND_PARSE_PARAMETERS_END();
	record *one = own_record();
	if (!one) {
		zend_throw_error(NULL, "API must be called in the coroutine");
		return;
	}
	one->deferred = safe_erealloc(one->deferred, one->deferred_count + 1, sizeof(zval), 0);
	ZVAL_COPY(&one->deferred[one->deferred_count++], &call.function_name);
}

PHP_FUNCTION(outboard_swoole_id)
{
	ZEND_PARSE_PARAMETERS_NONE();
	const record *one = own_record();
	RETURN_LONG(one ? one->id : -1);
}

/* The id of its creator, or null when there is no such coroutine. */
PHP_FUNCTION(outboard_swoole_parent)
{
	zend_long id = 0;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(id)
	ZEND_PARSE_PARAMETERS_END();
	const record *one = id ? outboard_swoole_record_of(id) : own_record();
	if (one) {
		RETURN_LONG(one->parent);
	}
}

/* A reference to what PHP stores for a coroutine, by which it is forgotten with it. */
PHP_FUNCTION(outboard_swoole_context)
{
	zend_long id = 0;
	zval *value = NULL;
	ZEND_PARSE_PARAMETERS_START(1, 2)
		Z_PARAM_LONG(id)
		Z_PARAM_OPTIONAL
		Z_PARAM_ZVAL(value)
	ZEND_PARSE_PARAMETERS_END();
	record *one = id ? outboard_swoole_record_of(id) : own_record();
	if (!one) {
		RETURN_FALSE;
	}
	if (value) {
		zval_ptr_dtor(&one->context);
		ZVAL_COPY(&one->context, value);
	}
	if (!Z_ISUNDEF(one->context)) {
		RETURN_COPY(&one->context);
	}
}

PHP_FUNCTION(outboard_swoole_exists)
{
	zend_long id;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(id)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_BOOL(outboard_swoole_record_of(id) != NULL);
}

PHP_FUNCTION(outboard_swoole_ids)
{
	zend_ulong id;
	ZEND_PARSE_PARAMETERS_NONE();
	array_init_size(return_value, zend_hash_num_elements(&records));
	ZEND_HASH_FOREACH_NUM_KEY(&records, id) {
		add_next_index_long(return_value, (zend_long) id);
	} ZEND_HASH_FOREACH_END();
}

/* [now, at most, in all] */
PHP_FUNCTION(outboard_swoole_counts)
{
	ZEND_PARSE_PARAMETERS_NONE();
	array_init_size(return_value, 3);
	add_next_index_long(return_value, (zend_long) zend_hash_num_elements(&records));
	add_next_index_long(return_value, most);
	add_next_index_long(return_value, created);
}

PHP_FUNCTION(outboard_swoole_set_limit)
{
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(limit)
	ZEND_PARSE_PARAMETERS_END();
}

PHP_FUNCTION(outboard_swoole_stack_bytes)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_LONG((zend_long) outboard_stack_bytes());
}

PHP_FUNCTION(outboard_swoole_set_stack_bytes)
{
	zend_long bytes;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(bytes)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_BOOL(outboard_stack_set_bytes(bytes < 0 ? 0 : (size_t) bytes));
}

/* For how many milliseconds it has been there; -1: it is not. */
PHP_FUNCTION(outboard_swoole_elapsed)
{
	zend_long id = 0;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(id)
	ZEND_PARSE_PARAMETERS_END();
	const record *one = id ? outboard_swoole_record_of(id) : own_record();
	RETURN_LONG(one ? (outboard_now_us() - one->began_us) / 1000 : -1);
}

/* The frames of another one, which waits; debug_backtrace() has those of the running one. */
PHP_FUNCTION(outboard_swoole_trace)
{
	zend_long id;
	zend_long options;
	zend_long limit;
	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_LONG(id)
		Z_PARAM_LONG(options)
		Z_PARAM_LONG(limit)
	ZEND_PARSE_PARAMETERS_END();
	const record *one = outboard_swoole_record_of(id);
	/* One that has not begun has no frames. */
	if (!one || !one->runs_on) {
		RETURN_FALSE;
	}
	zend_execute_data *const here = EG(current_execute_data);
	const bool is_own = one->runs_on == outboard_running || !one->runs_on->frame;
	if (!is_own) {
		EG(current_execute_data) = (zend_execute_data *) one->runs_on->frame;
	}
	zend_fetch_debug_backtrace(return_value, 0, (int) options, (int) limit);
	EG(current_execute_data) = here;
}

/* The main script waits until all coroutines have ended, or can never go on; how many are left. */
PHP_FUNCTION(outboard_swoole_run_all)
{
	ZEND_PARSE_PARAMETERS_NONE();
	if (outboard_running == outboard_root && outboard_host.events && !outboard_host.is_broken) {
		outboard_run_until_idle();
	}
	RETURN_LONG((zend_long) zend_hash_num_elements(&records));
}

PHP_FUNCTION(outboard_swoole_is_main)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(outboard_running == outboard_root);
}

PHP_FUNCTION(outboard_swoole_is_worker)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(outboard_program.is_worker);
}

#define ENGINE(name) \
	ZEND_NS_FENTRY("Outboard\\Engine\\Swoole", name, ZEND_FN(outboard_swoole_##name), arginfo_any, 0)

/* With `swoole.use_shortname`. */
const zend_function_entry outboard_swoole_short_functions[] = {
	ZEND_FENTRY(go, ZEND_FN(outboard_swoole_create), arginfo_create, 0)
	ZEND_FENTRY(defer, ZEND_FN(outboard_swoole_defer), arginfo_callable, 0)
	PHP_FE_END
};

const zend_function_entry outboard_swoole_coroutine_functions[] = {
	ZEND_FENTRY(swoole_coroutine_create, ZEND_FN(outboard_swoole_create), arginfo_create, 0)
	ZEND_NS_FENTRY("Swoole\\Coroutine", go, ZEND_FN(outboard_swoole_create), arginfo_create, 0)
	ZEND_FENTRY(swoole_coroutine_defer, ZEND_FN(outboard_swoole_defer), arginfo_callable, 0)
	ZEND_NS_FENTRY("Swoole\\Coroutine", defer, ZEND_FN(outboard_swoole_defer), arginfo_callable, 0)
	ENGINE(create)
	ENGINE(defer)
	ENGINE(id)
	ENGINE(parent)
	ENGINE(context)
	ENGINE(exists)
	ENGINE(ids)
	ENGINE(is_worker)
	ENGINE(counts)
	ENGINE(set_limit)
	ENGINE(stack_bytes)
	ENGINE(set_stack_bytes)
	ENGINE(elapsed)
	ENGINE(trace)
	ENGINE(run_all)
	ENGINE(is_main)
	PHP_FE_END
};

/* Before the script boots. */
void outboard_swoole_coroutine_startup(void)
{
	zend_hash_init(&records, 64, NULL, NULL, false);
}
