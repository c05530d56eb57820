/*
 * What an object of Swoole\Http\Response sends: head, body and trailers.
 *
 * Called by swoole/runtime/Http.php, in any coroutine. Invariants: a response has one head, which is sent before its
 * body; nothing is sent after its end.
 */
#include "swoole/sapi/http.h"

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

/* A client that takes nothing holds up the coroutine that writes to it, and no other. */
static void wait_for_client(conversation *one)
{
	const zend_long id = one->id;
	while ((one = outboard_swoole_http_find(id)) && !one->is_gone && outboard_rs_is_paused(one->exchange)
		&& outboard_may_suspend() && !outboard_is_cancelled()) {
		outboard_rs_await_client(one->exchange, outboard_waiter());
		outboard_suspend();
	}
	outboard_throw_if_cancelled();
}

static bool write_bytes(conversation *one, const zend_string *bytes)
{
	const size_t len = ZSTR_LEN(bytes);
	if (!one->is_gone && len > 0
		&& outboard_rs_write(one->exchange, ZSTR_VAL(bytes), len) < len) {
		one->is_gone = true;
	}
	return !one->is_gone;
}

/* A line break would begin another field (RFC 9110 5.5). */
static bool is_line(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\r' || text[i] == '\n' || text[i] == '\0') {
			return false;
		}
	}
	return true;
}

static bool is_head(const outboard_str *method)
{
	return method->len == 4 && memcmp(method->ptr, "HEAD", 4) == 0;
}

/*
 * The status and the lines, each "Name: value", of a response that has none yet. The length is that
 * of the whole body, if it is known: it is sent to HEAD, whose responses have no other sign of it.
 */
PHP_FUNCTION(outboard_swoole_http_head)
{
	static const char length_name[] = "content-length:";
	zend_long id;
	zend_long status;
	zend_string *reason;
	HashTable *lines;
	zend_long length = -1;
	zval *line;
	ZEND_PARSE_PARAMETERS_START(4, 5)
		Z_PARAM_LONG(id)
		Z_PARAM_LONG(status)
		Z_PARAM_STR(reason)
		Z_PARAM_ARRAY_HT(lines)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(length)
	ZEND_PARSE_PARAMETERS_END();
	conversation *one = outboard_swoole_http_find(id);
	if (!one || one->has_head || one->is_ended) {
		RETURN_FALSE;
	}
	OUTBOARD_ASSERT(one->id == id && one->request);
	bool adds_length = length >= 0 && is_head(&one->request->method);
	const bool is_plain = is_line(ZSTR_VAL(reason), ZSTR_LEN(reason));
	outboard_swoole_http_send_head(one, status >= 100 && status <= 999 ? (int) status : 500, ZSTR_VAL(reason),
		is_plain ? ZSTR_LEN(reason) : 0);
	ZEND_HASH_FOREACH_VAL(lines, line) {
		if (Z_TYPE_P(line) == IS_STRING && is_line(Z_STRVAL_P(line), Z_STRLEN_P(line))) {
			adds_length = adds_length && strncasecmp(Z_STRVAL_P(line), length_name, sizeof(length_name) - 1) != 0;
			outboard_rs_head_line(one->exchange, Z_STRVAL_P(line), Z_STRLEN_P(line));
		} else {
			zend_error(E_WARNING, "a header with a line break is not sent");
		}
	} ZEND_HASH_FOREACH_END();
	if (adds_length) {
		char text[64];
		const int len = snprintf(text, sizeof(text), "Content-Length: " ZEND_LONG_FMT, length);
		outboard_rs_head_line(one->exchange, text, (size_t) len);
	}
	RETURN_TRUE;
}

/* Sends a piece at once. */
PHP_FUNCTION(outboard_swoole_http_write)
{
	zend_long id;
	zend_string *bytes;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(id)
		Z_PARAM_STR(bytes)
	ZEND_PARSE_PARAMETERS_END();
	conversation *one = outboard_swoole_http_find(id);
	if (!one || one->is_ended || !write_bytes(one, bytes)) {
		RETURN_FALSE;
	}
	if (!outboard_rs_flush(one->exchange, outboard_is_handled())) {
		one->is_gone = true;
	} else {
		wait_for_client(one);
		/* Another coroutine may have ended it meanwhile. */
		one = outboard_swoole_http_find(id);
	}
	RETURN_BOOL(one && !one->is_gone);
}

/* The trailers are lines, each "Name: value". */
PHP_FUNCTION(outboard_swoole_http_end)
{
	zend_long id;
	zend_string *bytes;
	HashTable *trailers = NULL;
	zval *line;
	ZEND_PARSE_PARAMETERS_START(2, 3)
		Z_PARAM_LONG(id)
		Z_PARAM_STR(bytes)
		Z_PARAM_OPTIONAL
		Z_PARAM_ARRAY_HT(trailers)
	ZEND_PARSE_PARAMETERS_END();
	conversation *one = outboard_swoole_http_find(id);
	if (!one || one->is_ended) {
		RETURN_FALSE;
	}
	if (trailers) {
		ZEND_HASH_FOREACH_VAL(trailers, line) {
			if (Z_TYPE_P(line) == IS_STRING && is_line(Z_STRVAL_P(line), Z_STRLEN_P(line))) {
				outboard_rs_trailer(one->exchange, Z_STRVAL_P(line), Z_STRLEN_P(line));
			}
		} ZEND_HASH_FOREACH_END();
	}
	const bool is_sent = write_bytes(one, bytes);
	outboard_swoole_http_finish(one);
	RETURN_BOOL(is_sent);
}

/* The object may go; another one, made of the number, ends the response. */
PHP_FUNCTION(outboard_swoole_http_detach)
{
	conversation *one = outboard_swoole_http_named(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (!one || one->is_ended) {
		RETURN_FALSE;
	}
	one->is_detached = true;
	RETURN_TRUE;
}

/* A Response for the number of one that was detached, or null. */
PHP_FUNCTION(outboard_swoole_http_attach)
{
	conversation *one = outboard_swoole_http_named(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (!one || one->is_ended || !one->is_detached) {
		return;
	}
	one->is_detached = false;
	outboard_swoole_http_make_response(one, return_value);
}

PHP_FUNCTION(outboard_swoole_http_is_writable)
{
	const conversation *one = outboard_swoole_http_named(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	RETURN_BOOL(one && !one->is_ended && !one->is_gone);
}

const zend_function_entry outboard_swoole_http_response_functions[] = {
	HTTP_FUNCTION(head)
	HTTP_FUNCTION(write)
	HTTP_FUNCTION(end)
	HTTP_FUNCTION(detach)
	HTTP_FUNCTION(attach)
	HTTP_FUNCTION(is_writable)
	PHP_FE_END
};
