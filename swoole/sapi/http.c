/*
 * Conversations of a Swoole\Http\Server: a request and its response. The handler gets objects of
 * swoole/runtime/Http.php, which name the conversation by a number.
 *
 * There is no visit: as under Swoole the superglobals, the output buffers and the settings are the
 * program's, and what is printed goes to the log. A response may be ended by any coroutine, before or
 * after its handler has returned.
 *
 * Invariants: an exchange is over when its response has ended and its handler has returned, and its
 * memory is not touched after that; a response that nobody can end any more is ended with 500.
 */
#include "swoole/sapi/http.h"
#include "rfc1867.h"

static HashTable conversations;
static zend_long ids;
static zend_long first_id;
static zend_class_entry *request_class;
static zend_class_entry *response_class;
static zend_function *materialise;
static zend_object_handlers response_handlers;

/* The first declared properties of both classes (Http.php). */
enum { ID = 0, FD = 1, FIRST_LAZY = 2, LAZY_COUNT = 7 };

conversation *outboard_swoole_http_find(zend_long id)
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
	const outboard_result result = {.outcome = OUTBOARD_FINISHED, .handled = !one->is_abandoned};
	void *exchange = one->exchange;
	remove_uploads(one);
	if (one->body) {
		zend_string_release(one->body);
	}
	zend_hash_index_del(&conversations, (zend_ulong) one->id);
	efree(one);
	outboard_request_done(exchange, &result);
}

void outboard_swoole_http_finish(conversation *one)
{
	OUTBOARD_ASSERT(!one->is_ended && outboard_swoole_http_find(one->id) == one);
	one->is_ended = true;
	/* With its handler the whole exchange ends, which says it all in one frame. */
	if (one->handler && !one->is_gone && !outboard_rs_finish(one->exchange, !one->is_abandoned)) {
		one->is_gone = true;
	}
	end_if_over(one);
}

void outboard_swoole_http_send_head(conversation *one, int status, const char *reason, size_t reason_len)
{
	OUTBOARD_ASSERT(!one->has_head && !one->is_ended);
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
		outboard_swoole_http_send_head(one, 500, "", 0);
		outboard_rs_head_line(one->exchange, type, sizeof(type) - 1);
	}
	one->is_abandoned = true;
	outboard_swoole_http_finish(one);
}

static void free_response(zend_object *object)
{
	const zval *id = OBJ_PROP_NUM(object, ID);
	conversation *one = Z_TYPE_P(id) == IS_LONG ? outboard_swoole_http_find(Z_LVAL_P(id)) : NULL;
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

void outboard_swoole_http_make_response(const conversation *one, zval *response)
{
	object_init_ex(response, response_class);
	Z_OBJ_P(response)->handlers = &response_handlers;
	set_number(response, ID, one->id);
	set_number(response, FD, one->id);
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
	outboard_swoole_http_make_response(one, &objects[1]);
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

void outboard_program_answer(zval *handler, const outboard_event *event)
{
	zval objects[2];
	call under_way = {handler, objects};
	conversation *one = ecalloc(1, sizeof(*one));
	OUTBOARD_ASSERT(!outboard_running->state && event->exchange);
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
	if (GC_REFCOUNT(Z_OBJ(objects[0])) > 1 && !outboard_host.is_broken) {
		outboard_protected_call(read_everything, &objects[0], NULL);
	}
	zval_ptr_dtor(&objects[0]);
	one->handler = NULL;
	const zend_long id = one->id;
	/* Its last reference, often: what has not ended does so. */
	zval_ptr_dtor(&objects[1]);
	one = outboard_swoole_http_find(id);
	if (one && outboard_host.is_broken) {
		abandon(one);
	} else if (one) {
		end_if_over(one);
	}
}

/* The time of the request is over: its handler ends, and nobody hears the response. */
void outboard_program_cancel(void *exchange)
{
	conversation *one;
	if (!outboard_host.is_program) {
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

/* NULL when it is over. */
conversation *outboard_swoole_http_named(INTERNAL_FUNCTION_PARAMETERS)
{
	zend_long id;
	(void) return_value;
	if (zend_parse_parameters(ZEND_NUM_ARGS() > 0 ? 1 : 0, "l", &id) == FAILURE) {
		return NULL;
	}
	return outboard_swoole_http_find(id);
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

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

const zend_function_entry outboard_swoole_http_functions[] = {
	HTTP_FUNCTION(count)
	HTTP_FUNCTION(number_after)
	PHP_FE_END
};

/* Before the program's first line; the classes are those of Http.php. */
void outboard_program_requests_startup(void)
{
	if (!outboard_host.is_program) {
		return;
	}
	zend_hash_init(&conversations, 64, NULL, NULL, false);
	request_class = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("swoole\\http\\request"));
	response_class = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("swoole\\http\\response"));
	materialise = zend_hash_str_find_ptr(&request_class->function_table, ZEND_STRL("materialise"));
	memcpy(&response_handlers, &std_object_handlers, sizeof(response_handlers));
	response_handlers.free_obj = free_response;
	response_handlers.clone_obj = NULL;
}
