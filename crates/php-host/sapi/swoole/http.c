/*
 * Requests of a Swoole\Http\Server. The handler gets objects of runtime/swoole/Http.php; they name the
 * exchange by a number, and what they ask for is read here from the request as the gateway sent it.
 *
 * There is no visit: as under Swoole the superglobals, the output buffers and the settings are the
 * program's, and what is printed goes to the log. A response may be ended by any coroutine, before or
 * after its handler has returned.
 *
 * Invariants: an exchange is over when its response has ended and its handler has returned, and its
 * memory is not touched after that; a response that nobody can end any more is ended with 500.
 */
#include "swoole/swoole.h"
#include "rfc1867.h"
#include "zend_smart_str.h"
#include "ext/standard/url.h"

typedef struct {
	zend_long id;
	void *exchange;
	const outboard_request *request;
	zend_string *body;
	HashTable *uploads; /* paths of temporary files */
	coroutine *handler; /* while it runs */
	bool has_head;
	bool is_ended;
	bool is_detached;
	bool is_gone; /* nobody hears the rest */
} conversation;

static HashTable conversations;
static zend_long ids;
static zend_long first_id;
static zend_class_entry *request_class;
static zend_class_entry *response_class;
static zend_function *materialise;
static zend_object_handlers response_handlers;

/* The first declared properties of both classes (Http.php). */
enum { ID = 0, FD = 1, FIRST_LAZY = 2, LAZY_COUNT = 7 };

static conversation *conversation_of(zend_long id)
{
	return zend_hash_index_find_ptr(&conversations, (zend_ulong) id);
}

static void remove_uploads(conversation *one)
{
	zend_string *path;
	if (!one->uploads) {
		return;
	}
	ZEND_HASH_FOREACH_STR_KEY(one->uploads, path) {
		if (path && SG(rfc1867_uploaded_files)
			&& zend_hash_del(SG(rfc1867_uploaded_files), path) == SUCCESS) {
			VCWD_UNLINK(ZSTR_VAL(path));
		}
	} ZEND_HASH_FOREACH_END();
	zend_hash_destroy(one->uploads);
	FREE_HASHTABLE(one->uploads);
}

static void end_if_over(conversation *one)
{
	if (one->handler || !one->is_ended) {
		return;
	}
	const outboard_result result = {.outcome = OUTBOARD_FINISHED};
	void *exchange = one->exchange;
	remove_uploads(one);
	if (one->body) {
		zend_string_release(one->body);
	}
	zend_hash_index_del(&conversations, (zend_ulong) one->id);
	efree(one);
	outboard_request_done(exchange, &result);
}

static void finish(conversation *one)
{
	one->is_ended = true;
	/* With its handler the whole exchange ends, which says it all in one frame. */
	if (one->handler && !one->is_gone && !outboard_rs_finish(one->exchange)) {
		one->is_gone = true;
	}
	end_if_over(one);
}

static void send_head(conversation *one, int status, const char *reason, size_t reason_len)
{
	one->has_head = true;
	outboard_rs_head(one->exchange, status, reason, reason_len);
}

/* Nobody can end it any more. */
static void abandon(conversation *one)
{
	static const char type[] = "Content-Type: text/html";
	if (one->is_ended || one->is_detached) {
		return;
	}
	if (!one->has_head) {
		send_head(one, 500, "", 0);
		outboard_rs_head_line(one->exchange, type, sizeof(type) - 1);
	}
	finish(one);
}

static void free_response(zend_object *object)
{
	const zval *id = OBJ_PROP_NUM(object, ID);
	conversation *one = Z_TYPE_P(id) == IS_LONG ? conversation_of(Z_LVAL_P(id)) : NULL;
	if (one) {
		abandon(one);
	}
	zend_object_std_dtor(object);
}

static void set_number(zval *object, int at, zend_long number)
{
	zval *property = OBJ_PROP_NUM(Z_OBJ_P(object), at);
	ZVAL_LONG(property, number);
}

static void make_objects(conversation *one, zval objects[2])
{
	object_init_ex(&objects[0], request_class);
	set_number(&objects[0], ID, one->id);
	set_number(&objects[0], FD, one->id);
	/* Unset, so that __get() reads them when they are used. */
	for (int i = FIRST_LAZY; i < FIRST_LAZY + LAZY_COUNT; i++) {
		zval *property = OBJ_PROP_NUM(Z_OBJ(objects[0]), i);
		zval_ptr_dtor(property);
		ZVAL_UNDEF(property);
		Z_PROP_FLAG_P(property) = 0;
	}
	object_init_ex(&objects[1], response_class);
	Z_OBJ(objects[1])->handlers = &response_handlers;
	set_number(&objects[1], ID, one->id);
	set_number(&objects[1], FD, one->id);
}

typedef struct {
	zval *handler;
	zval *objects;
} call;

static void call_handler(void *arg)
{
	const call *one = arg;
	zval result;
	ZVAL_UNDEF(&result);
	call_user_function(NULL, NULL, one->handler, &result, 2, one->objects);
	zval_ptr_dtor(&result);
}

static void read_everything(void *arg)
{
	zval *request = arg;
	zend_call_known_instance_method(materialise, Z_OBJ_P(request), NULL, 0, NULL);
}

void outboard_swoole_answer(zval *handler, const outboard_event *event)
{
	zval objects[2];
	call under_way = {handler, objects};
	conversation *one = ecalloc(1, sizeof(*one));
	one->id = ++ids;
	one->exchange = event->exchange;
	one->request = event->request;
	one->handler = outboard_running;
	zend_hash_index_add_new_ptr(&conversations, (zend_ulong) one->id, one);
	make_objects(one, objects);
	outboard_backtrace_begin(event->slot, event->generation);
	outboard_swoole_coroutine_enter();
	outboard_protected_call(call_handler, &under_way, NULL);
	outboard_swoole_coroutine_leave();
	outboard_backtrace_end();
	outboard_running->cancelled = false;
	if (GC_REFCOUNT(Z_OBJ(objects[0])) > 1 && !outboard_broken) {
		outboard_protected_call(read_everything, &objects[0], NULL);
	}
	zval_ptr_dtor(&objects[0]);
	one->handler = NULL;
	const zend_long id = one->id;
	/* Its last reference, often: what has not ended does so. */
	zval_ptr_dtor(&objects[1]);
	one = conversation_of(id);
	if (one && outboard_broken) {
		abandon(one);
	} else if (one) {
		end_if_over(one);
	}
}

/* The time of the request is over: its handler ends, and nobody hears the response. */
void outboard_swoole_cancel(void *exchange)
{
	conversation *one;
	if (!outboard_is_swoole) {
		return;
	}
	ZEND_HASH_FOREACH_PTR(&conversations, one) {
		if (one->exchange == exchange) {
			one->is_gone = true;
			one->is_ended = true;
			if (one->handler) {
				outboard_cancel_coroutine(one->handler);
			} else {
				end_if_over(one);
			}
			return;
		}
	} ZEND_HASH_FOREACH_END();
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

/* NULL when it is over. */
static conversation *named(INTERNAL_FUNCTION_PARAMETERS)
{
	zend_long id;
	(void) return_value;
	if (zend_parse_parameters(ZEND_NUM_ARGS() > 0 ? 1 : 0, "l", &id) == FAILURE) {
		return NULL;
	}
	return conversation_of(id);
}

/* By name in lower case; lines of one name become one value (RFC 9110 5.3). */
PHP_FUNCTION(outboard_swoole_http_headers)
{
	conversation *one = named(INTERNAL_FUNCTION_PARAM_PASSTHRU);
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
	conversation *one = named(INTERNAL_FUNCTION_PARAM_PASSTHRU);
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
	conversation *one = named(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (one && one->request->query.len > 0) {
		RETURN_STRINGL(one->request->query.ptr, one->request->query.len);
	}
}

PHP_FUNCTION(outboard_swoole_http_body)
{
	conversation *one = named(INTERNAL_FUNCTION_PARAM_PASSTHRU);
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
	conversation *one = conversation_of(id);
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

/* A client that takes nothing holds up the coroutine that writes to it, and no other. */
static void wait_for_client(conversation *one)
{
	const zend_long id = one->id;
	while ((one = conversation_of(id)) && !one->is_gone && outboard_rs_is_paused(one->exchange)
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
	conversation *one = conversation_of(id);
	if (!one || one->has_head || one->is_ended) {
		RETURN_FALSE;
	}
	bool adds_length = length >= 0 && is_head(&one->request->method);
	const bool is_plain = is_line(ZSTR_VAL(reason), ZSTR_LEN(reason));
	send_head(one, status >= 100 && status <= 999 ? (int) status : 500, ZSTR_VAL(reason),
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
	conversation *one = conversation_of(id);
	if (!one || one->is_ended || !write_bytes(one, bytes)) {
		RETURN_FALSE;
	}
	if (!outboard_rs_flush(one->exchange)) {
		one->is_gone = true;
	} else {
		wait_for_client(one);
		/* Another coroutine may have ended it meanwhile. */
		one = conversation_of(id);
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
	conversation *one = conversation_of(id);
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
	finish(one);
	RETURN_BOOL(is_sent);
}

/* The object may go; another one, made of the number, ends the response. */
PHP_FUNCTION(outboard_swoole_http_detach)
{
	conversation *one = named(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (!one || one->is_ended) {
		RETURN_FALSE;
	}
	one->is_detached = true;
	RETURN_TRUE;
}

/* A Response for the number of one that was detached, or null. */
PHP_FUNCTION(outboard_swoole_http_attach)
{
	conversation *one = named(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (!one || one->is_ended || !one->is_detached) {
		return;
	}
	one->is_detached = false;
	object_init_ex(return_value, response_class);
	Z_OBJ_P(return_value)->handlers = &response_handlers;
	set_number(return_value, ID, one->id);
	set_number(return_value, FD, one->id);
}

PHP_FUNCTION(outboard_swoole_http_is_writable)
{
	const conversation *one = named(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	RETURN_BOOL(one && !one->is_ended && !one->is_gone);
}

/* How many requests this worker has begun. */
PHP_FUNCTION(outboard_swoole_http_count)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_LONG(ids - first_id);
}

/* Numbers of requests follow this one, so that they are not those of raw connections. */
PHP_FUNCTION(outboard_swoole_http_number_after)
{
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(first_id)
	ZEND_PARSE_PARAMETERS_END();
	ids = first_id;
}

#define ENGINE(name) ZEND_NS_FENTRY("Outboard\\Engine\\Swoole", http_##name, \
	ZEND_FN(outboard_swoole_http_##name), arginfo_any, 0)

const zend_function_entry outboard_swoole_http_functions[] = {
	ENGINE(count)
	ENGINE(number_after)
	ENGINE(headers)
	ENGINE(server)
	ENGINE(query)
	ENGINE(body)
	ENGINE(upload)
	ENGINE(head)
	ENGINE(write)
	ENGINE(end)
	ENGINE(detach)
	ENGINE(attach)
	ENGINE(is_writable)
	PHP_FE_END
};

/* Before the program's first line; the classes are those of Http.php. */
void outboard_swoole_http_startup(void)
{
	zend_hash_init(&conversations, 64, NULL, NULL, false);
	request_class = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("swoole\\http\\request"));
	response_class = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("swoole\\http\\response"));
	materialise = zend_hash_str_find_ptr(&request_class->function_table, ZEND_STRL("materialise"));
	memcpy(&response_handlers, &std_object_handlers, sizeof(response_handlers));
	response_handlers.free_obj = free_response;
	response_handlers.clone_obj = NULL;
}
