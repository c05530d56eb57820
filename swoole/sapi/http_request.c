/*
 * What an object of Swoole\Http\Request asks for: the request as the gateway sent it.
 *
 * Called by swoole/runtime/Http.php, at the first use of each property. Invariant: the request of a conversation that
 * is over is empty.
 */
#include "swoole/sapi/http.h"
#include "rfc1867.h"
#include "zend_smart_str.h"
#include "ext/standard/url.h"

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

/* By name in lower case; lines of one name become one value (RFC 9110 5.3). */
PHP_FUNCTION(outboard_swoole_http_headers)
{
	conversation *one = outboard_swoole_http_named(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	array_init(return_value);
	if (!one) {
		return;
	}
	for (size_t i = 0; i < one->request->header_count; i++) {
		const outboard_pair *header = &one->request->headers[i];
		zend_string *name = zend_string_alloc(header->name.len, false);
		zend_str_tolower_copy(ZSTR_VAL(name), header->name.ptr, header->name.len);
		zval *known = zend_symtable_find(Z_ARRVAL_P(return_value), name);
		zval value;
		if (known) {
			const bool is_cookie = zend_string_equals_literal(name, "cookie");
			ZVAL_STR(&value, zend_string_concat3(Z_STRVAL_P(known), Z_STRLEN_P(known),
				is_cookie ? "; " : ", ", 2, header->value.ptr, header->value.len));
		} else {
			ZVAL_STRINGL(&value, header->value.ptr, header->value.len);
		}
		zend_symtable_update(Z_ARRVAL_P(return_value), name, &value);
		zend_string_release(name);
	}
}

static void add_text(zval *target, const char *name, const outboard_str *text)
{
	add_assoc_stringl(target, name, (char *) text->ptr, text->len);
}

PHP_FUNCTION(outboard_swoole_http_server)
{
	conversation *one = outboard_swoole_http_named(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	array_init(return_value);
	if (!one) {
		return;
	}
	const outboard_request *request = one->request;
	outboard_str path = request->uri;
	const char *query = memchr(path.ptr, '?', path.len);
	zval decoded;
	if (query) {
		path.len = (size_t) (query - path.ptr);
	}
	if (request->query.len > 0) {
		add_text(return_value, "query_string", &request->query);
	}
	add_text(return_value, "request_method", &request->method);
	add_text(return_value, "request_uri", &path);
	ZVAL_STRINGL(&decoded, path.ptr, path.len);
	Z_STRLEN(decoded) = php_raw_url_decode(Z_STRVAL(decoded), Z_STRLEN(decoded));
	add_assoc_zval(return_value, "path_info", &decoded);
	add_assoc_long(return_value, "request_time", (zend_long) (request->received_us / 1000000));
	add_assoc_double(return_value, "request_time_float", (double) request->received_us / 1e6);
	add_assoc_long(return_value, "master_time", (zend_long) (request->received_us / 1000000));
	add_text(return_value, "server_protocol", &request->protocol);
	add_assoc_long(return_value, "server_port", request->server_port);
	add_assoc_long(return_value, "remote_port", request->remote_port);
	add_text(return_value, "remote_addr", &request->remote_addr);
}

PHP_FUNCTION(outboard_swoole_http_query)
{
	conversation *one = outboard_swoole_http_named(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (one && one->request->query.len > 0) {
		RETURN_STRINGL(one->request->query.ptr, one->request->query.len);
	}
}

PHP_FUNCTION(outboard_swoole_http_body)
{
	conversation *one = outboard_swoole_http_named(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	smart_str text = {0};
	if (!one) {
		RETURN_FALSE;
	}
	if (!one->body && one->request->content_length != 0) {
		char piece[16384];
		size_t len;
		while ((len = outboard_rs_read_body(one->exchange, piece, sizeof(piece))) > 0) {
			smart_str_appendl(&text, piece, len);
		}
	}
	if (!one->body) {
		one->body = smart_str_extract(&text);
	}
	RETURN_STR_COPY(one->body);
}

/* A temporary file of the request: move_uploaded_file() takes it, else it goes with the request. */
PHP_FUNCTION(outboard_swoole_http_upload)
{
	zend_long id;
	zend_string *path;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(id)
		Z_PARAM_STR(path)
	ZEND_PARSE_PARAMETERS_END();
	conversation *one = outboard_swoole_http_find(id);
	if (!one) {
		VCWD_UNLINK(ZSTR_VAL(path));
		return;
	}
	if (!SG(rfc1867_uploaded_files)) {
		ALLOC_HASHTABLE(SG(rfc1867_uploaded_files));
		zend_hash_init(SG(rfc1867_uploaded_files), 8, NULL, NULL, false);
	}
	if (!one->uploads) {
		ALLOC_HASHTABLE(one->uploads);
		zend_hash_init(one->uploads, 8, NULL, NULL, false);
	}
	zend_hash_add_ptr(SG(rfc1867_uploaded_files), path, path);
	zend_hash_add_empty_element(one->uploads, path);
}

const zend_function_entry outboard_swoole_http_request_functions[] = {
	HTTP_FUNCTION(headers)
	HTTP_FUNCTION(server)
	HTTP_FUNCTION(query)
	HTTP_FUNCTION(body)
	HTTP_FUNCTION(upload)
	PHP_FE_END
};
