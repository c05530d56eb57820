/*
 * Outboard\span(), in every mode: a span of the request's trace. callbacks/span.rs sends it to the
 * gateway when it has ended; whether it is exported is decided there.
 */
#include "shim.h"
#include <time.h>

/* Further attributes are left out. */
#define MAX_ATTRIBUTES 32

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_span, 0, 1, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, body, IS_CALLABLE, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, attributes, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

static uint64_t now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

/* A value as text behind a letter for its kind; NULL if it is none that an attribute can have. */
static zend_string *text_of(zval *value)
{
	ZVAL_DEREF(value);
	switch (Z_TYPE_P(value)) {
		case IS_STRING:
			return strpprintf(0, "s%s", Z_STRVAL_P(value));
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

static void report(zend_string *name, HashTable *attributes, uint64_t start_us)
{
	outboard_str texts[2 + 2 * MAX_ATTRIBUTES];
	zend_string *values[MAX_ATTRIBUTES];
	size_t count = 0;
	zend_object *thrown = EG(exception);
	bool failed = thrown && !zend_is_unwind_exit(thrown) && !zend_is_graceful_exit(thrown);
	texts[0] = (outboard_str) {ZSTR_VAL(name), ZSTR_LEN(name)};
	texts[1] = failed
		? (outboard_str) {ZSTR_VAL(thrown->ce->name), ZSTR_LEN(thrown->ce->name)}
		: (outboard_str) {"", 0};
	zend_string *key;
	zval *value;
	ZEND_HASH_FOREACH_STR_KEY_VAL(attributes, key, value) {
		zend_string *text = key && count < MAX_ATTRIBUTES ? text_of(value) : NULL;
		if (text) {
			texts[2 + 2 * count] = (outboard_str) {ZSTR_VAL(key), ZSTR_LEN(key)};
			texts[3 + 2 * count] = (outboard_str) {ZSTR_VAL(text), ZSTR_LEN(text)};
			values[count++] = text;
		}
	} ZEND_HASH_FOREACH_END();
	outboard_rs_span(SG(server_context), start_us, now_us(), failed, texts, 2 + 2 * count);
	while (count > 0) {
		zend_string_release(values[--count]);
	}
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
	uint64_t start_us = now_us();
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
	report(name, attributes, start_us);
}

const zend_function_entry outboard_span_functions[] = {
	ZEND_NS_FENTRY("Outboard", span, ZEND_FN(outboard_span), arginfo_span, 0)
	PHP_FE_END
};
