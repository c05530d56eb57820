/*
 * Outboard\serve(): calls the handler with a Request and sends its result. Called by loop.c for
 * each request; results other than a Response with a string go to Outboard\Engine\send
 * (runtime/Response.php).
 *
 * Invariant: a response sent from here leaves the engine in the state that header(),
 * http_response_code() and echo would; this path only avoids running PHP.
 */
#include "worker/worker.h"

static zend_class_entry *request_class;
static zend_class_entry *response_class;
static zend_function *send_other;
static uint32_t number_offset;
static uint32_t body_offset;
static uint32_t status_offset;
static uint32_t headers_offset;

static zend_fcall_info_cache cache;

static uint32_t offset_of(const zend_class_entry *class, const char *name)
{
	const zend_property_info *info =
		zend_hash_str_find_ptr(&class->properties_info, name, strlen(name));
	OUTBOARD_ASSERT(info && !(info->flags & ZEND_ACC_STATIC));
	return info->offset;
}

/* Before the first request, when the runtime's classes exist. */
void outboard_serve_startup(void)
{
	request_class = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("outboard\\request"));
	response_class = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("outboard\\response"));
	send_other = zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("outboard\\engine\\send"));
	OUTBOARD_ASSERT(request_class && response_class && send_other);
	number_offset = offset_of(request_class, "number");
	body_offset = offset_of(response_class, "body");
	status_offset = offset_of(response_class, "status");
	headers_offset = offset_of(response_class, "headers");
	memset(&cache, 0, sizeof(cache));
}

/* Whether sapi_header_op in SAPI.c treats the name as nothing special. */
static bool is_plain_name(const zend_string *name)
{
	static const char *const special[] = {
		"content-type", "content-length", "location", "www-authenticate",
	};
	for (size_t i = 0; i < ZSTR_LEN(name); i++) {
		unsigned char c = (unsigned char) ZSTR_VAL(name)[i];
		if (c <= ' ' || c == ':' || c == '/' || c >= 0x7f) {
			return false;
		}
	}
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		if (strcasecmp(ZSTR_VAL(name), special[i]) == 0) {
			return false;
		}
	}
	return ZSTR_LEN(name) > 0;
}

static bool is_plain_value(const zend_string *value)
{
	for (size_t i = 0; i < ZSTR_LEN(value); i++) {
		char c = ZSTR_VAL(value)[i];
		if (c == '\n' || c == '\r' || c == '\0') {
			return false;
		}
	}
	return ZSTR_LEN(value) > 0 && ZSTR_VAL(value)[ZSTR_LEN(value) - 1] > ' ';
}

/* A Content-Type that sapi_header_op does not modify. */
static bool is_plain_type(const zend_string *name, const zend_string *value)
{
	return zend_string_equals_literal_ci(name, "content-type")
		&& is_plain_value(value)
		&& strncmp(ZSTR_VAL(value), "image/", 6) != 0
		&& (strncmp(ZSTR_VAL(value), "text/", 5) != 0 || strstr(ZSTR_VAL(value), "charset="));
}

static bool is_set(const zend_string *name)
{
	zend_llist_position position;
	sapi_header_struct *line = zend_llist_get_first_ex(&SG(sapi_headers).headers, &position);
	for (; line; line = zend_llist_get_next_ex(&SG(sapi_headers).headers, &position)) {
		if (line->header_len > ZSTR_LEN(name) && line->header[ZSTR_LEN(name)] == ':'
			&& strncasecmp(line->header, ZSTR_VAL(name), ZSTR_LEN(name)) == 0) {
			return true;
		}
	}
	return false;
}

static char *join_header(const zend_string *name, const zend_string *value, size_t *len)
{
	*len = ZSTR_LEN(name) + 2 + ZSTR_LEN(value);
	char *line = emalloc(*len + 1);
	memcpy(line, ZSTR_VAL(name), ZSTR_LEN(name));
	memcpy(line + ZSTR_LEN(name), ": ", 2);
	memcpy(line + ZSTR_LEN(name) + 2, ZSTR_VAL(value), ZSTR_LEN(value) + 1);
	return line;
}

static void set_header(const zend_string *name, const zend_string *value, bool replaces)
{
	size_t len;
	bool is_type = is_plain_type(name, value);
	if ((is_type || (is_plain_name(name) && is_plain_value(value)))
		&& !(replaces && is_set(name))) {
		sapi_header_struct header = {.header = join_header(name, value, &len)};
		header.header_len = len;
		zend_llist_add_element(&SG(sapi_headers).headers, &header);
		if (is_type) {
			SG(sapi_headers).send_default_content_type = 0;
			if (!SG(sapi_headers).mimetype) {
				SG(sapi_headers).mimetype = estrndup(ZSTR_VAL(value), ZSTR_LEN(value));
			}
		}
		return;
	}
	sapi_header_line line = {.line = join_header(name, value, &len)};
	line.line_len = len;
	sapi_header_op(replaces ? SAPI_HEADER_REPLACE : SAPI_HEADER_ADD, &line);
	efree((char *) line.line);
}

static bool set_value(zend_string *name, zval *value, bool replaces)
{
	zend_string *held;
	zend_string *text = zval_try_get_tmp_string(value, &held);
	if (!text) {
		return false;
	}
	set_header(name, text, replaces);
	zend_tmp_string_release(held);
	return !EG(exception);
}

static bool set_values(zend_string *name, zval *values)
{
	bool replaces = true;
	zval *value;
	ZVAL_DEREF(values);
	if (Z_TYPE_P(values) != IS_ARRAY) {
		return set_value(name, values, true);
	}
	ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(values), value) {
		if (!set_value(name, value, replaces)) {
			return false;
		}
		replaces = false;
	} ZEND_HASH_FOREACH_END();
	return true;
}

/* Engine\send handles numeric names. */
static bool has_names(const zval *headers)
{
	zend_string *name;
	ZEND_HASH_FOREACH_STR_KEY(Z_ARRVAL_P(headers), name) {
		if (!name) {
			return false;
		}
	} ZEND_HASH_FOREACH_END();
	return true;
}

static bool is_plain_response(const zend_object *response)
{
	return response->ce == response_class
		&& Z_TYPE_P(OBJ_PROP(response, body_offset)) == IS_STRING
		&& Z_TYPE_P(OBJ_PROP(response, status_offset)) == IS_LONG
		&& Z_TYPE_P(OBJ_PROP(response, headers_offset)) == IS_ARRAY
		&& has_names(OBJ_PROP(response, headers_offset))
		&& !SG(headers_sent) && !SG(sapi_headers).http_status_line;
}

static void write_text(const zval *text)
{
	if (Z_STRLEN_P(text) > 0) {
		php_output_write(Z_STRVAL_P(text), Z_STRLEN_P(text));
	}
}

static void send_response(zend_object *response)
{
	zend_string *name;
	zval *values;
	zend_long status = Z_LVAL_P(OBJ_PROP(response, status_offset));
	if (status) {
		SG(sapi_headers).http_response_code = (int) status;
	}
	ZEND_HASH_FOREACH_STR_KEY_VAL(Z_ARRVAL_P(OBJ_PROP(response, headers_offset)), name, values) {
		if (!set_values(name, values)) {
			return;
		}
	} ZEND_HASH_FOREACH_END();
	write_text(OBJ_PROP(response, body_offset));
}

static void send_result(zval *result)
{
	if (Z_TYPE_P(result) == IS_OBJECT && is_plain_response(Z_OBJ_P(result))) {
		send_response(Z_OBJ_P(result));
	} else if (Z_TYPE_P(result) == IS_STRING) {
		write_text(result);
	} else if (Z_TYPE_P(result) > IS_NULL) {
		zend_call_known_function(send_other, NULL, NULL, NULL, 1, result, NULL);
	}
}

/* Caches the handler's function, except for __call, whose function is created for each call. */
static bool init_call(zval *handler, zend_fcall_info *info)
{
	bool is_known = cache.function_handler
		&& !(cache.function_handler->common.fn_flags & ZEND_ACC_CALL_VIA_TRAMPOLINE);
	if (!is_known) {
		return zend_fcall_info_init(handler, 0, info, &cache, NULL, NULL) == SUCCESS;
	}
	info->size = sizeof(*info);
	ZVAL_COPY_VALUE(&info->function_name, handler);
	info->object = cache.object;
	info->named_params = NULL;
	return true;
}

typedef struct {
	zval *handler;
	zend_long number;
} handler_call;

static void call_handler(void *arg)
{
	const handler_call *one = arg;
	zend_fcall_info info;
	zval request;
	zval result;
	ZVAL_UNDEF(&result);
	if (!init_call(one->handler, &info)) {
		return;
	}
	object_init_ex(&request, request_class);
	zval *number = OBJ_PROP(Z_OBJ(request), number_offset);
	ZVAL_LONG(number, one->number);
	Z_PROP_FLAG_P(number) = 0;
	info.params = &request;
	info.param_count = 1;
	info.retval = &result;
	zend_call_function(&info, &cache);
	zval_ptr_dtor(&request);
	if (!EG(exception)) {
		send_result(&result);
	}
	zval_ptr_dtor(&result);
}

void outboard_serve(zval *handler, outboard_request_state *state)
{
	OUTBOARD_ASSERT(state == outboard_now.state && request_class);
	handler_call one = {handler, (zend_long) state->id};
	outboard_protected_call(call_handler, &one, state);
}
