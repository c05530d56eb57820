/*
 * Outboard\Engine, the functions that the PHP part of the API (runtime/) is built on. Internal:
 * applications use that part.
 */
#include "api/api.h"
#include "worker/worker.h"
#include "zend_fibers.h"
#include "ext/spl/spl_exceptions.h"
#include <time.h>

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

static bool throw_if_unavailable(void)
{
	if (!outboard_host.events) {
		zend_throw_exception(spl_ce_RuntimeException, "this needs worker mode", 0);
		return true;
	}
	if (outboard_rs_is_forking(outboard_host.events)) {
		zend_throw_exception(spl_ce_RuntimeException,
			"with isolation \"fork\" this is unavailable before the first request", 0);
		return true;
	}
	return false;
}

PHP_FUNCTION(outboard_engine_spawn)
{
	zval *task;
	zval *ended;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_ZVAL(task)
		Z_PARAM_ZVAL(ended)
	ZEND_PARSE_PARAMETERS_END();
	if (!throw_if_unavailable()) {
		RETURN_LONG((zend_long) outboard_spawn(task, ended));
	}
}

PHP_FUNCTION(outboard_engine_cancel)
{
	zend_long id;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(id)
	ZEND_PARSE_PARAMETERS_END();
	if (outboard_host.events) {
		outboard_cancel_task((uint64_t) id);
	}
}

PHP_FUNCTION(outboard_engine_current)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_LONG((zend_long) outboard_waiter());
}

/* The engine forbids a switch e.g. in a destructor that the garbage collector calls. */
static bool suspend(void)
{
	if (throw_if_unavailable()) {
		return false;
	}
	if (zend_fiber_switch_blocked()) {
		zend_throw_exception(spl_ce_LogicException, "a coroutine cannot wait here", 0);
		return false;
	}
	outboard_suspend();
	outboard_throw_if_cancelled();
	return !EG(exception);
}

PHP_FUNCTION(outboard_engine_suspend)
{
	ZEND_PARSE_PARAMETERS_NONE();
	suspend();
}

PHP_FUNCTION(outboard_engine_wake)
{
	zend_long waiter;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(waiter)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_BOOL(outboard_wake((uint64_t) waiter));
}

PHP_FUNCTION(outboard_engine_sleep)
{
	double seconds;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	struct timespec time;
	if (seconds < 0 || seconds > 1e9) {
		zend_argument_value_error(1, "must be between 0 and 1,000,000,000");
		return;
	}
	time.tv_sec = (time_t) seconds;
	time.tv_nsec = (long) ((seconds - (double) time.tv_sec) * 1e9);
	nanosleep(&time, NULL);
	outboard_throw_if_cancelled();
}

PHP_FUNCTION(outboard_engine_timer)
{
	static uint64_t ids;
	double seconds;
	zval *callback;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_DOUBLE(seconds)
		Z_PARAM_ZVAL(callback)
	ZEND_PARSE_PARAMETERS_END();
	if (!throw_if_unavailable()) {
		uint64_t id = ++ids;
		outboard_timer_add(id, callback);
		outboard_rs_timer_set(outboard_host.events, id, (int64_t) (seconds * 1e6));
		RETURN_LONG((zend_long) id);
	}
}

PHP_FUNCTION(outboard_engine_timer_again)
{
	zend_long id;
	double seconds;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(id)
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	if (!throw_if_unavailable()) {
		outboard_rs_timer_set(outboard_host.events, (uint64_t) id, (int64_t) (seconds * 1e6));
	}
}

PHP_FUNCTION(outboard_engine_timer_cancel)
{
	zend_long id;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(id)
	ZEND_PARSE_PARAMETERS_END();
	outboard_timer_remove((uint64_t) id);
}

static void release_callback(void *callback)
{
	zval_ptr_dtor(callback);
}

PHP_FUNCTION(outboard_engine_defer)
{
	zval *callback;
	outboard_request_state *state = outboard_running_state();
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_ZVAL(callback)
	ZEND_PARSE_PARAMETERS_END();
	if (!state) {
		zend_throw_exception(spl_ce_LogicException, "there is no request to defer after", 0);
		return;
	}
	if (!state->deferred) {
		state->deferred = emalloc(sizeof(*state->deferred));
		zend_llist_init(state->deferred, sizeof(zval), release_callback, false);
	}
	Z_TRY_ADDREF_P(callback);
	zend_llist_add_element(state->deferred, callback);
}

PHP_FUNCTION(outboard_engine_log)
{
	zend_string *message;
	zend_long level;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_STR(message)
		Z_PARAM_LONG(level)
	ZEND_PARSE_PARAMETERS_END();
	if (SG(server_context)) {
		outboard_rs_log(SG(server_context), (int) level, ZSTR_VAL(message), ZSTR_LEN(message));
	} else {
		fprintf(stderr, "%s\n", ZSTR_VAL(message));
	}
}

static outboard_str string_of(const zval *value)
{
	outboard_str none = {"", 0};
	outboard_str text = {Z_STRVAL_P(value), Z_STRLEN_P(value)};
	return Z_TYPE_P(value) == IS_STRING ? text : none;
}

static zend_string *copied(const outboard_str *text)
{
	return zend_string_init(text->ptr, text->len, false);
}

/* Adds an array of lists of values by lower-case name. */
static void add_headers(zval *target, const outboard_str *lines)
{
	const char *line = lines->ptr;
	const char *end = lines->ptr + lines->len;
	zval headers;
	array_init(&headers);
	while (line < end) {
		const char *line_end = memchr(line, '\n', (size_t) (end - line));
		line_end = line_end ? line_end : end;
		const char *colon = memchr(line, ':', (size_t) (line_end - line));
		if (colon) {
			const char *value = colon + 1;
			while (value < line_end && (*value == ' ' || *value == '\t')) {
				value++;
			}
			zend_string *name = zend_string_alloc((size_t) (colon - line), false);
			zend_str_tolower_copy(ZSTR_VAL(name), line, ZSTR_LEN(name));
			zend_ulong number;
			zval *values = ZEND_HANDLE_NUMERIC(name, number)
				? zend_hash_index_lookup(Z_ARRVAL(headers), number)
				: zend_hash_lookup(Z_ARRVAL(headers), name);
			if (Z_TYPE_P(values) != IS_ARRAY) {
				array_init_size(values, 1);
			}
			add_next_index_stringl(values, value, (size_t) (line_end - value));
			zend_string_release(name);
		}
		line = line_end + 1;
	}
	add_next_index_zval(target, &headers);
}

/* [status, HTTP version, URL, headers, body], or [failure, message]. */
static void set_result(zval *target, const outboard_fetch_result *fetched)
{
	array_init_size(target, 5);
	if (fetched->failure) {
		add_next_index_long(target, fetched->failure);
		add_next_index_str(target, copied(&fetched->body));
		return;
	}
	add_next_index_long(target, fetched->status);
	add_next_index_long(target, fetched->http_version);
	add_next_index_str(target, copied(&fetched->url));
	add_headers(target, &fetched->headers);
	add_next_index_str(target, copied(&fetched->body));
}

/* Waits for the result of a fetch or a task. */
static void await_result(zval *target, uint64_t operation)
{
	outboard_fetch_result fetched;
	while (!outboard_rs_fetch_result(outboard_host.events, operation, &fetched)) {
		outboard_rs_fetch_awaited(outboard_host.events, operation, outboard_waiter());
		if (!suspend()) {
			outboard_rs_fetch_free(outboard_host.events, operation);
			return;
		}
	}
	set_result(target, &fetched);
	outboard_rs_fetch_free(outboard_host.events, operation);
}

/* Classic mode has no other coroutine to run meanwhile. */
static bool is_classic(void)
{
	return !outboard_host.events && SG(server_context);
}

static void return_blocking(zval *return_value, bool has_responded, const outboard_fetch_result *fetched)
{
	if (has_responded) {
		set_result(return_value, fetched);
	} else {
		zend_throw_exception(spl_ce_RuntimeException, "the gateway does not respond", 0);
	}
}

PHP_FUNCTION(outboard_engine_fetch)
{
	zval *method, *url, *headers, *body;
	zend_long connect_ms, timeout_ms, max_bytes, redirects, retries, switches;
	ZEND_PARSE_PARAMETERS_START(10, 10)
		Z_PARAM_ZVAL(method)
		Z_PARAM_ZVAL(url)
		Z_PARAM_ZVAL(headers)
		Z_PARAM_ZVAL(body)
		Z_PARAM_LONG(connect_ms)
		Z_PARAM_LONG(timeout_ms)
		Z_PARAM_LONG(max_bytes)
		Z_PARAM_LONG(redirects)
		Z_PARAM_LONG(retries)
		Z_PARAM_LONG(switches)
	ZEND_PARSE_PARAMETERS_END();
	outboard_fetch fetch = {
		.method = string_of(method),
		.url = string_of(url),
		.headers = string_of(headers),
		.body = string_of(body),
		.connect_timeout_ms = (uint32_t) connect_ms,
		.timeout_ms = (uint32_t) timeout_ms,
		.max_body_bytes = (uint32_t) max_bytes,
		.max_redirects = (uint16_t) redirects,
		.retries = (uint8_t) retries,
		.verify = switches & 1,
		.decompress = (switches & 2) != 0,
		.http2 = (switches & 4) != 0,
	};
	if (is_classic()) {
		outboard_fetch_result fetched;
		return_blocking(return_value, outboard_rs_blocking_fetch(SG(server_context), &fetch, &fetched), &fetched);
	} else if (!throw_if_unavailable()) {
		await_result(return_value,
			outboard_rs_fetch(outboard_host.events, SG(server_context), outboard_waiter(), &fetch));
	}
}

/* A batch for a namespace of the entity store. */
PHP_FUNCTION(outboard_engine_entities)
{
	zval *namespace, *batch;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_ZVAL(namespace)
		Z_PARAM_ZVAL(batch)
	ZEND_PARSE_PARAMETERS_END();
	if (is_classic()) {
		outboard_fetch_result fetched;
		return_blocking(return_value, outboard_rs_blocking_entities(SG(server_context), string_of(namespace),
			string_of(batch), &fetched), &fetched);
	} else if (!throw_if_unavailable()) {
		await_result(return_value, outboard_rs_entities(outboard_host.events, SG(server_context), outboard_waiter(),
			string_of(namespace), string_of(batch)));
	}
}

/* Tokens of a rate limit for a key. */
PHP_FUNCTION(outboard_engine_rate)
{
	zval *limit, *key;
	zend_long tokens;
	bool takes;
	ZEND_PARSE_PARAMETERS_START(4, 4)
		Z_PARAM_ZVAL(limit)
		Z_PARAM_ZVAL(key)
		Z_PARAM_LONG(tokens)
		Z_PARAM_BOOL(takes)
	ZEND_PARSE_PARAMETERS_END();
	if (is_classic()) {
		outboard_fetch_result fetched;
		return_blocking(return_value, outboard_rs_blocking_rate(SG(server_context), string_of(limit),
			string_of(key), (uint32_t) tokens, takes, &fetched), &fetched);
	} else if (!throw_if_unavailable()) {
		await_result(return_value, outboard_rs_rate(outboard_host.events, SG(server_context), outboard_waiter(),
			string_of(limit), string_of(key), (uint32_t) tokens, takes));
	}
}

PHP_FUNCTION(outboard_engine_task)
{
	zval *name, *data;
	zend_long delay_ms, retries;
	bool is_awaited;
	ZEND_PARSE_PARAMETERS_START(5, 5)
		Z_PARAM_ZVAL(name)
		Z_PARAM_ZVAL(data)
		Z_PARAM_LONG(delay_ms)
		Z_PARAM_LONG(retries)
		Z_PARAM_BOOL(is_awaited)
	ZEND_PARSE_PARAMETERS_END();
	if (!is_awaited && is_classic()) {
		outboard_fetch_result fetched;
		return_blocking(return_value, outboard_rs_blocking_dispatch(SG(server_context), string_of(name),
			string_of(data), (uint64_t) delay_ms, (int) retries, &fetched), &fetched);
	} else if (!throw_if_unavailable()) {
		await_result(return_value, outboard_rs_task(outboard_host.events, SG(server_context), outboard_waiter(),
			string_of(name), string_of(data), (uint64_t) delay_ms, (int) retries, is_awaited));
	}
}

#define ENGINE(name) \
	ZEND_NS_FENTRY("Outboard\\Engine", name, ZEND_FN(outboard_engine_##name), arginfo_any, 0)

const zend_function_entry outboard_engine_functions[] = {
	ENGINE(spawn)
	ENGINE(cancel)
	ENGINE(current)
	ENGINE(suspend)
	ENGINE(wake)
	ENGINE(sleep)
	ENGINE(timer)
	ENGINE(timer_again)
	ENGINE(timer_cancel)
	ENGINE(defer)
	ENGINE(log)
	ENGINE(fetch)
	ENGINE(entities)
	ENGINE(rate)
	ENGINE(task)
	PHP_FE_END
};
