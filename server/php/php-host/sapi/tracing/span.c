/*
 * Outboard\span(), in every mode: a span of the request's trace. callbacks/span.rs sends it to the
 * gateway when it has ended; whether it is exported is decided there. Invariant: a span that begins within
 * another one is part of it, in each coroutine (call_state.c) and each request (request.c).
 */
#include "tracing/tracing.h"
#include <time.h>

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_span, 0, 1, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, body, IS_CALLABLE, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, attributes, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

/* That of the running code; 0: none. */
uint32_t outboard_open_span(void)
{
	return outboard_now.span;
}

static uint64_t now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

/* False if the request takes none; then the span must not be ended. */
bool outboard_span_begin(outboard_span *span)
{
	static uint32_t last;
	/* A child that a script has forked has no gateway. */
	if (!outboard_now.request || outboard_now.request->trace_detail == 0 || !SG(server_context)) {
		return false;
	}
	last = last == UINT32_MAX ? 1 : last + 1;
	*span = (outboard_span) {now_us(), last, outboard_now.span};
	outboard_now.span = last;
	return true;
}

uint64_t outboard_span_us(const outboard_span *span)
{
	const uint64_t now = now_us();
	return now > span->start_us ? now - span->start_us : 0;
}

/* The span has ended, and is not worth a report. */
void outboard_span_abandon(const outboard_span *span)
{
	outboard_now.span = span->parent;
}

/* Takes the value, which is text behind the letter of its kind; further ones than there is room for are left out. */
void outboard_span_attribute(outboard_span_texts *texts, const char *key, size_t key_len, zend_string *value)
{
	if (texts->count == OUTBOARD_MAX_ATTRIBUTES) {
		zend_string_release(value);
		return;
	}
	texts->texts[2 + 2 * texts->count] = (outboard_str) {key, key_len};
	texts->texts[3 + 2 * texts->count] = (outboard_str) {ZSTR_VAL(value), ZSTR_LEN(value)};
	texts->values[texts->count++] = value;
}

/* Releases the attributes. `failed` adds to what an exception says. */
void outboard_span_end(const outboard_span *span, const char *name, size_t name_len, bool failed, outboard_span_texts *texts)
{
	const zend_object *thrown = EG(exception);
	const bool threw = thrown && !zend_is_unwind_exit(thrown) && !zend_is_graceful_exit(thrown);
	OUTBOARD_ASSERT(span->id != 0 && span->id != span->parent && texts->count <= OUTBOARD_MAX_ATTRIBUTES);
	outboard_now.span = span->parent;
	texts->texts[0] = (outboard_str) {name, name_len};
	texts->texts[1] = threw
		? (outboard_str) {ZSTR_VAL(thrown->ce->name), ZSTR_LEN(thrown->ce->name)}
		: (outboard_str) {"", 0};
	outboard_rs_span(SG(server_context), span->start_us, now_us(), span->id, span->parent, threw || failed,
		texts->texts, 2 + 2 * texts->count);
	while (texts->count > 0) {
		zend_string_release(texts->values[--texts->count]);
	}
}

/* A value as text behind a letter for its kind; NULL if it is none that an attribute can have. */
static zend_string *text_of(zval *value)
{
	ZVAL_DEREF(value);
	switch (Z_TYPE_P(value)) {
		case IS_STRING:
			return strpprintf(0, "s%.1024s", Z_STRVAL_P(value)); /* The ring cuts it as well. */
		case IS_LONG:
			return strpprintf(0, "i" ZEND_LONG_FMT, Z_LVAL_P(value));
		case IS_DOUBLE:
			return strpprintf(0, "f%.17g", Z_DVAL_P(value));
		case IS_TRUE:
		case IS_FALSE:
			return strpprintf(0, "b%d", Z_TYPE_P(value) == IS_TRUE);
		default:
			return NULL;
	}
}

static void report(const outboard_span *span, zend_string *name, HashTable *attributes)
{
	outboard_span_texts texts;
	texts.count = 0;
	zend_string *key;
	zval *value;
	ZEND_HASH_FOREACH_STR_KEY_VAL(attributes, key, value) {
		zend_string *text = key ? text_of(value) : NULL;
		if (text) {
			outboard_span_attribute(&texts, ZSTR_VAL(key), ZSTR_LEN(key), text);
		}
	} ZEND_HASH_FOREACH_END();
	outboard_span_end(span, ZSTR_VAL(name), ZSTR_LEN(name), false, &texts);
}

PHP_FUNCTION(outboard_span)
{
	zend_string *name;
	zend_fcall_info body = empty_fcall_info;
	zend_fcall_info_cache cache = empty_fcall_info_cache;
	HashTable *attributes = (HashTable *) &zend_empty_array;
	ZEND_PARSE_PARAMETERS_START(1, 3)
		Z_PARAM_STR(name)
		Z_PARAM_OPTIONAL
		Z_PARAM_FUNC_OR_NULL(body, cache)
		Z_PARAM_ARRAY_HT(attributes)
	ZEND_PARSE_PARAMETERS_END();
	outboard_span span;
	const bool is_traced = outboard_span_begin(&span);
	if (ZEND_FCI_INITIALIZED(body)) {
		zval result;
		body.retval = &result;
		if (zend_call_function(&body, &cache) == SUCCESS && Z_TYPE(result) != IS_UNDEF) {
			if (Z_ISREF(result)) {
				zend_unwrap_reference(&result);
			}
			ZVAL_COPY_VALUE(return_value, &result);
		}
	}
	if (is_traced) {
		report(&span, name, attributes);
	}
}

const zend_function_entry outboard_span_functions[] = {
	ZEND_NS_FENTRY("Outboard", span, ZEND_FN(outboard_span), arginfo_span, 0)
	PHP_FE_END
};
