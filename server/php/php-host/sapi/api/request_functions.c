/*
 * Functions of Outboard\Engine for Outboard\Request (runtime/Request.php): the parts of the current
 * request.
 */
#include "api/api.h"
#include "worker/worker.h"
#include "ext/spl/spl_exceptions.h"

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

/* 0 outside of a request. */
PHP_FUNCTION(outboard_engine_request_number)
{
	outboard_request_state *state = outboard_running_state();
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_LONG(state ? (zend_long) state->id : 0);
}

/* Throws if the object has outlived its request. */
static const outboard_request *request_of(zend_long id)
{
	outboard_request_state *state = outboard_running_state();
	if (!state || (zend_long) state->id != id) {
		zend_throw_exception(spl_ce_LogicException, "this request is over", 0);
		return NULL;
	}
	return state->request;
}

PHP_FUNCTION(outboard_engine_field)
{
	zend_long id;
	zend_long which;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(id)
		Z_PARAM_LONG(which)
	ZEND_PARSE_PARAMETERS_END();
	const outboard_request *request = request_of(id);
	if (request) {
		/* The strings of outboard_request are in the order of ring's Field. */
		const outboard_str *fields = &request->method;
		if (which < 0 || which > 14) {
			zend_argument_value_error(2, "must be a field");
			return;
		}
		RETURN_STRINGL(fields[which].ptr, fields[which].len);
	}
}

/* Path and query; the absolute form (RFC 9112 3.2.2) names the host as well. */
static outboard_str target_of(const outboard_request *request)
{
	outboard_str target = request->uri;
	const char *host = target.len > 0 && *target.ptr != '/' ? strstr(target.ptr, "://") : NULL;
	if (host) {
		const char *path = strchr(host + 3, '/');
		const outboard_str root = {"/", 1};
		const outboard_str rest = {path, path ? target.len - (size_t) (path - target.ptr) : 0};
		return path ? rest : root;
	}
	return target;
}

static void return_target(INTERNAL_FUNCTION_PARAMETERS, bool with_query)
{
	zend_long id;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(id)
	ZEND_PARSE_PARAMETERS_END();
	const outboard_request *request = request_of(id);
	if (request) {
		const outboard_str target = target_of(request);
		const char *query = with_query ? NULL : memchr(target.ptr, '?', target.len);
		RETURN_STRINGL(target.ptr, query ? (size_t) (query - target.ptr) : target.len);
	}
}

PHP_FUNCTION(outboard_engine_target)
{
	return_target(INTERNAL_FUNCTION_PARAM_PASSTHRU, true);
}

PHP_FUNCTION(outboard_engine_path)
{
	return_target(INTERNAL_FUNCTION_PARAM_PASSTHRU, false);
}

/* All lines of the header joined, or null. */
PHP_FUNCTION(outboard_engine_header)
{
	zend_long id;
	zend_string *name;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(id)
		Z_PARAM_STR(name)
	ZEND_PARSE_PARAMETERS_END();
	const outboard_request *request = request_of(id);
	zend_string *value = NULL;
	if (!request) {
		return;
	}
	for (size_t i = 0; i < request->header_count; i++) {
		const outboard_pair *header = &request->headers[i];
		if (header->name.len == ZSTR_LEN(name)
			&& strncasecmp(header->name.ptr, ZSTR_VAL(name), ZSTR_LEN(name)) == 0) {
			zend_string *longer = value
				? zend_string_concat3(ZSTR_VAL(value), ZSTR_LEN(value), ", ", 2,
					header->value.ptr, header->value.len)
				: zend_string_init(header->value.ptr, header->value.len, false);
			if (value) {
				zend_string_release(value);
			}
			value = longer;
		}
	}
	if (value) {
		RETURN_STR(value);
	}
}

/* A list of [name, value]. */
PHP_FUNCTION(outboard_engine_headers)
{
	zend_long id;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(id)
	ZEND_PARSE_PARAMETERS_END();
	const outboard_request *request = request_of(id);
	if (!request) {
		return;
	}
	array_init_size(return_value, (uint32_t) request->header_count);
	for (size_t i = 0; i < request->header_count; i++) {
		const outboard_pair *header = &request->headers[i];
		zval line;
		array_init_size(&line, 2);
		add_next_index_stringl(&line, header->name.ptr, header->name.len);
		add_next_index_stringl(&line, header->value.ptr, header->value.len);
		add_next_index_zval(return_value, &line);
	}
}

PHP_FUNCTION(outboard_engine_server)
{
	zend_long id;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(id)
	ZEND_PARSE_PARAMETERS_END();
	if (request_of(id)) {
		zend_is_auto_global(ZSTR_KNOWN(ZEND_STR_AUTOGLOBAL_SERVER));
		ZVAL_COPY(return_value, &PG(http_globals)[TRACK_VARS_SERVER]);
	}
}

#define ENGINE(name) \
	ZEND_NS_FENTRY("Outboard\\Engine", name, ZEND_FN(outboard_engine_##name), arginfo_any, 0)

const zend_function_entry outboard_request_functions[] = {
	ENGINE(request_number)
	ENGINE(field)
	ENGINE(target)
	ENGINE(path)
	ENGINE(header)
	ENGINE(headers)
	ENGINE(server)
	PHP_FE_END
};
