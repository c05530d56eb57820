/*
 * Swoole's coroutines on the host's: a new one runs at once, until it waits; so does one that is
 * resumed. The PHP part (runtime/swoole/Coroutine.php) is made of the functions in here.
 *
 * Invariants: a coroutine belongs to no request, so it outlives the one that has created it; an id is
 * never used again; a wait ends once, for one reason.
 */
#include "swoole.h"
#include "waiting.h"
#include "ext/spl/spl_exceptions.h"
#include "zend_builtin_functions.h"

typedef struct record {
	zend_long id;
	zend_long parent;
	coroutine *runs_on;
	zend_fcall_info call;
	zend_fcall_info_cache cache;
	zval context;    /* of getContext() */
	zval *deferred;  /* callables, the last is called first */
	uint32_t deferred_count;
	uint64_t *awaited_by; /* who waits for its end */
	uint32_t awaited_count;
	bool is_yielded; /* waits for a resume() */
	int64_t began_us;
} record;

enum reason {
	OVER,      /* its time is, or what it was for has come */
	RESUMED,
	CANCELLED, /* by Coroutine::cancel() */
};

/* What is known of each context, by its index. */
typedef struct {
	record *record;
	enum reason reason;
	bool is_cancellable;
} place;

static place *places;
static uint32_t place_count;
static HashTable records;
static zend_long ids;
static zend_long most;
static zend_long created;

static place *own_place(void)
{
	const uint32_t index = outboard_running->index;
	if (index >= place_count) {
		const uint32_t wanted = (index + 1) * 2;
		places = perealloc(places, sizeof(*places) * wanted, 1);
		memset(places + place_count, 0, sizeof(*places) * (wanted - place_count));
		place_count = wanted;
	}
	return &places[index];
}

static record *own_record(void)
{
	return own_place()->record;
}

static record *record_of(zend_long id)
{
	return zend_hash_index_find_ptr(&records, (zend_ulong) id);
}

static void begin(record *one, zend_long parent)
{
	one->id = ++ids;
	one->parent = parent;
	one->began_us = outboard_now_us();
	ZVAL_UNDEF(&one->context);
	zend_hash_index_add_new_ptr(&records, (zend_ulong) one->id, one);
	created++;
	if ((zend_long) zend_hash_num_elements(&records) > most) {
		most = (zend_long) zend_hash_num_elements(&records);
	}
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
		const coroutine *waiter = outboard_find_waiter(one->awaited_by[i]);
		if (waiter && waiter->phase == WAITING) {
			places[waiter->index].reason = RESUMED;
			outboard_wake(one->awaited_by[i]);
		}
	}
	if (one->awaited_by) {
		efree(one->awaited_by);
	}
}

static void end(record *one)
{
	call_deferred(one);
	wake_waiters(one);
	zval_ptr_dtor(&one->context);
	own_place()->record = NULL;
	zend_hash_index_del(&records, (zend_ulong) one->id);
	efree(one);
}

/* The running context is a coroutine from here to outboard_swoole_coroutine_leave(). */
void outboard_swoole_coroutine_enter(void)
{
	record *one = ecalloc(1, sizeof(*one));
	one->runs_on = outboard_running;
	own_place()->record = one;
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
	one->runs_on = outboard_running;
	own_place()->record = one;
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

/* go(): its id; the function has run until its first wait. */
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
	if (!outboard_events || outboard_broken) {
		zend_throw_error(NULL, "a coroutine cannot be created here");
		return;
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
	const record *one = id ? record_of(id) : own_record();
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
	record *one = id ? record_of(id) : own_record();
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

/* Suspends the running coroutine; the reason why it goes on. Below 0 there is no time-out. */
static enum reason wait_for(int64_t timeout_us, bool is_yielded)
{
	const uint32_t index = outboard_running->index;
	const uint64_t self = outboard_waiter();
	uint64_t other = 0;
	record *one = own_record();
	own_place()->reason = OVER;
	places[index].is_cancellable = true;
	if (one) {
		one->is_yielded = is_yielded;
	}
	if (timeout_us >= 0) {
		outboard_rs_wait(outboard_events, self, NULL, 0, timeout_us, &other);
	}
	outboard_suspend();
	if (timeout_us >= 0) {
		outboard_rs_unwait(outboard_events, self);
	}
	if (one) {
		one->is_yielded = false;
	}
	places[index].is_cancellable = false;
	outboard_throw_if_cancelled();
	return places[index].reason;
}

static bool may_wait(void)
{
	if (outboard_events && !zend_fiber_switch_blocked()) {
		return true;
	}
	zend_throw_exception(spl_ce_LogicException, "it is not possible to wait here", 0);
	return false;
}

/*
 * Waits for the end of another one; the reason as above. Who waits for something else meanwhile is not
 * woken by it, since a wait has a name of its own.
 */
static enum reason wait_for_end(record *one, int64_t timeout_us)
{
	one->awaited_by =
		safe_erealloc(one->awaited_by, one->awaited_count + 1, sizeof(uint64_t), 0);
	one->awaited_by[one->awaited_count++] = outboard_waiter();
	return wait_for(timeout_us, false);
}

static int64_t microseconds(double seconds)
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
	if (may_wait()) {
		RETURN_LONG(wait_for(microseconds(seconds), false));
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
	record *one = record_of(id);
	if (!one) {
		RETURN_LONG(RESUMED);
	}
	if (may_wait()) {
		RETURN_LONG(wait_for_end(one, microseconds(seconds)));
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
	if (one.fd < 0 || !may_wait()) {
		RETURN_LONG(0);
	}
	const uint64_t self = outboard_waiter();
	if (outboard_poll_real(&one, 1, 0) == 0) {
		if (outboard_rs_wait(
				outboard_events, self, &one, 1, seconds < 0 ? -1 : (int64_t) (seconds * 1e6), &other)) {
			RETURN_LONG(0);
		}
		wait_for(-1, false);
		outboard_rs_unwait(outboard_events, self);
		outboard_poll_real(&one, 1, 0);
	}
	RETURN_LONG((one.revents & (POLLIN | POLLHUP | POLLERR) && events & READ ? READ : 0)
		| (one.revents & POLLOUT ? WRITE : 0));
}

PHP_FUNCTION(outboard_swoole_pause)
{
	double seconds = -1;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	if (may_wait()) {
		RETURN_LONG(wait_for(microseconds(seconds), true));
	}
}

static bool go_on(coroutine *one, enum reason reason)
{
	if (!one || one->phase != WAITING || one->index >= place_count) {
		return false;
	}
	places[one->index].reason = reason;
	one->serial++;
	/* In a destructor the engine forbids a switch before PHP 8.4: it goes on when that has returned. */
	if (zend_fiber_switch_blocked()) {
		outboard_ready(one);
	} else {
		outboard_switch_now(one);
	}
	return true;
}

/* Has who waits under this name go on at once; false when that wait is over. */
PHP_FUNCTION(outboard_swoole_wake)
{
	zend_long waiter;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(waiter)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_BOOL(go_on(outboard_find_waiter((uint64_t) waiter), RESUMED));
}

PHP_FUNCTION(outboard_swoole_resume)
{
	zend_long id;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(id)
	ZEND_PARSE_PARAMETERS_END();
	const record *one = record_of(id);
	RETURN_BOOL(one && one->is_yielded && go_on(one->runs_on, RESUMED));
}

/* Ends a wait of the functions in here; others cannot be ended from outside. */
PHP_FUNCTION(outboard_swoole_cancel)
{
	zend_long id;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(id)
	ZEND_PARSE_PARAMETERS_END();
	const record *one = record_of(id);
	RETURN_BOOL(one && one->runs_on && one->runs_on->index < place_count
		&& places[one->runs_on->index].is_cancellable && go_on(one->runs_on, CANCELLED));
}

PHP_FUNCTION(outboard_swoole_exists)
{
	zend_long id;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(id)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_BOOL(record_of(id) != NULL);
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

/* For how many milliseconds it has been there; -1: it is not. */
PHP_FUNCTION(outboard_swoole_elapsed)
{
	zend_long id = 0;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(id)
	ZEND_PARSE_PARAMETERS_END();
	const record *one = id ? record_of(id) : own_record();
	RETURN_LONG(one ? (outboard_now_us() - one->began_us) / 1000 : -1);
}

/* The frames of another one that waits; of the running one, debug_backtrace() tells. */
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
	const record *one = record_of(id);
	if (!one) {
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
	if (outboard_running == &outboard_main_script && outboard_events && !outboard_broken) {
		outboard_run_until_idle();
	}
	RETURN_LONG((zend_long) zend_hash_num_elements(&records));
}

PHP_FUNCTION(outboard_swoole_is_main)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(outboard_running == &outboard_main_script);
}

PHP_FUNCTION(outboard_swoole_is_worker)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(outboard_swoole_is_worker);
}

#define ENGINE(name) \
	ZEND_NS_FENTRY("Outboard\\Engine\\Swoole", name, ZEND_FN(outboard_swoole_##name), arginfo_any, 0)

const zend_function_entry outboard_swoole_coroutine_functions[] = {
	ZEND_FENTRY(go, ZEND_FN(outboard_swoole_create), arginfo_create, 0)
	ZEND_FENTRY(swoole_coroutine_create, ZEND_FN(outboard_swoole_create), arginfo_create, 0)
	ZEND_NS_FENTRY("Swoole\\Coroutine", go, ZEND_FN(outboard_swoole_create), arginfo_create, 0)
	ZEND_FENTRY(defer, ZEND_FN(outboard_swoole_defer), arginfo_callable, 0)
	ZEND_FENTRY(swoole_coroutine_defer, ZEND_FN(outboard_swoole_defer), arginfo_callable, 0)
	ZEND_NS_FENTRY("Swoole\\Coroutine", defer, ZEND_FN(outboard_swoole_defer), arginfo_callable, 0)
	ENGINE(create)
	ENGINE(defer)
	ENGINE(id)
	ENGINE(parent)
	ENGINE(context)
	ENGINE(wait)
	ENGINE(await)
	ENGINE(descriptor)
	ENGINE(wait_descriptor)
	ENGINE(pause)
	ENGINE(wake)
	ENGINE(resume)
	ENGINE(cancel)
	ENGINE(exists)
	ENGINE(ids)
	ENGINE(is_worker)
	ENGINE(counts)
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
