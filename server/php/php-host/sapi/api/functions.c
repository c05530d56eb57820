/*
 * PHP functions that the host adds in every mode. php/stubs documents them.
 */
#include "api/api.h"
#include "worker/worker.h"
#include <syslog.h>

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_finish, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_headers, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

PHP_FUNCTION(outboard_finish_request)
{
	ZEND_PARSE_PARAMETERS_NONE();
	void *exchange = SG(server_context);
	if (!exchange || outboard_rs_is_finished(exchange)) {
		RETURN_FALSE;
	}
	php_output_end_all();
	php_header();
	RETURN_BOOL(outboard_rs_finish(exchange, outboard_is_handled()));
}

static void add_request_header(
	zend_string *name, const char *value, size_t value_len, void *target)
{
	sapi_add_request_header(ZSTR_VAL(name), (unsigned int) ZSTR_LEN(name), (char *) value,
		(unsigned int) value_len, target);
}

PHP_FUNCTION(apache_request_headers)
{
	ZEND_PARSE_PARAMETERS_NONE();
	array_init(return_value);
	if (outboard_now.request) {
		OUTBOARD_RUN_HOOKS(variable_read, NULL);
		outboard_variables_each_header(add_request_header, return_value);
	}
}

PHP_FUNCTION(apache_response_headers)
{
	ZEND_PARSE_PARAMETERS_NONE();
	array_init(return_value);
	zend_llist_position position;
	sapi_header_struct *line = zend_llist_get_first_ex(&SG(sapi_headers).headers, &position);
	for (; line; line = zend_llist_get_next_ex(&SG(sapi_headers).headers, &position)) {
		const char *colon = memchr(line->header, ':', line->header_len);
		if (!colon) {
			continue;
		}
		const char *value = colon + 1;
		const char *end = line->header + line->header_len;
		while (value < end && (*value == ' ' || *value == '\t')) {
			value++;
		}
		add_assoc_stringl_ex(return_value, line->header, (size_t) (colon - line->header),
			value, (size_t) (end - value));
	}
}

const zend_function_entry outboard_functions[] = {
	PHP_FE(outboard_finish_request, arginfo_finish)
	PHP_FALIAS(fastcgi_finish_request, outboard_finish_request, arginfo_finish)
	PHP_FE(apache_request_headers, arginfo_headers)
	PHP_FALIAS(getallheaders, apache_request_headers, arginfo_headers)
	PHP_FE(apache_response_headers, arginfo_headers)
	PHP_FE_END
};

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_send, 0, 0, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, status, IS_LONG, 0, "200")
ZEND_END_ARG_INFO()

/* An interim response (1xx) has the headers set so far, which stay set for the final one. */
PHP_FUNCTION(headers_send)
{
	zend_long status = 200;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(status)
	ZEND_PARSE_PARAMETERS_END();
	if (status >= 100 && status < 200) {
		RETURN_LONG(outboard_send_interim((int) status)
			? SAPI_HEADER_SENT_SUCCESSFULLY : SAPI_HEADER_SEND_FAILED);
	}
	if (status >= 200) {
		SG(sapi_headers).http_response_code = (int) status;
		sapi_send_headers();
		sapi_flush();
	}
	RETURN_LONG(SUCCESS);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_log, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, message, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, level, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, context, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

PHP_FUNCTION(frankenphp_log)
{
	zend_string *message;
	zend_long level = 0;
	HashTable *context = NULL;
	ZEND_PARSE_PARAMETERS_START(1, 3)
		Z_PARAM_STR(message)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(level)
		Z_PARAM_ARRAY_HT(context)
	ZEND_PARSE_PARAMETERS_END();
	(void) context;
	/* Maps slog's levels to those of syslog(3). */
	int severity = level < 0 ? LOG_DEBUG : level < 4 ? LOG_INFO : level < 8 ? LOG_WARNING : LOG_ERR;
	if (SG(server_context)) {
		outboard_rs_log(SG(server_context), severity, ZSTR_VAL(message), ZSTR_LEN(message));
	} else {
		outboard_log_message(ZSTR_VAL(message), severity);
	}
}

const zend_function_entry outboard_frankenphp_functions[] = {
	PHP_FALIAS(frankenphp_finish_request, outboard_finish_request, arginfo_finish)
	PHP_FALIAS(frankenphp_request_headers, apache_request_headers, arginfo_headers)
	PHP_FALIAS(frankenphp_response_headers, apache_response_headers, arginfo_headers)
	PHP_FE(headers_send, arginfo_send)
	PHP_FE(frankenphp_log, arginfo_log)
	PHP_FE_END
};
