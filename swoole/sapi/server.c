/*
 * Connections and datagrams of a Swoole\Server. The gateway holds them; this worker gets what arrives,
 * one item at a time, each in a coroutine, and calls a function of swoole/runtime/Connections.php.
 *
 * Invariants: an item is acknowledged when its coroutine has returned, however it ends; calls reach the
 * gateway in their order (streams.rs).
 */
#include "swoole/sapi/swoole.h"
#include "worker/stream.h"

static zval handler;
static bool has_handler;

typedef struct {
	const outboard_stream_event *event;
} received;

static void call_handler(void *arg)
{
	const outboard_stream_event *event = ((const received *) arg)->event;
	zval arguments[5];
	zval result;
	ZVAL_UNDEF(&result);
	ZVAL_LONG(&arguments[0], event->kind);
	ZVAL_LONG(&arguments[1], event->port);
	ZVAL_LONG(&arguments[2], (zend_long) event->session);
	ZVAL_STRINGL(&arguments[3], event->bytes.ptr, event->bytes.len);
	ZVAL_LONG(&arguments[4], (zend_long) event->item);
	call_user_function(NULL, NULL, &handler, &result, 5, arguments);
	zval_ptr_dtor(&arguments[3]);
	zval_ptr_dtor(&result);
}

/* The next event, in the context that runs. */
void outboard_program_receive(void)
{
	outboard_stream_event event;
	/* What a broken worker leaves is its successor's. */
	if (!outboard_rs_stream_take(outboard_host.events, &event) || !has_handler || outboard_host.is_broken) {
		return;
	}
	received one = {&event};
	OUTBOARD_ASSERT(outboard_program.is_worker && !outboard_running->state);
	const outboard_stream_call acknowledgement = {
		.verb = OUTBOARD_STREAM_ACKNOWLEDGE,
		.item = event.item,
	};
	outboard_swoole_coroutine_enter();
	outboard_protected_call(call_handler, &one, NULL);
	outboard_swoole_coroutine_leave();
	outboard_running->cancelled = false;
	if (acknowledgement.item != 0) {
		outboard_rs_stream_call(outboard_host.events, &acknowledgement, true);
	}
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

/* Processes that the program has forked have no way to the gateway. */
static bool has_gateway(void)
{
	return outboard_program.is_worker && !outboard_host.is_child;
}

/* This worker takes items from now on. */
PHP_FUNCTION(outboard_swoole_server_join)
{
	zend_long number;
	zend_string *settings;
	zval *callable;
	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_LONG(number)
		Z_PARAM_STR(settings)
		Z_PARAM_ZVAL(callable)
	ZEND_PARSE_PARAMETERS_END();
	if (!has_gateway() || has_handler) {
		RETURN_FALSE;
	}
	ZVAL_COPY(&handler, callable);
	has_handler = true;
	const outboard_stream_call join = {
		.verb = OUTBOARD_STREAM_JOIN,
		.value = (uint64_t) number,
		.bytes = ZSTR_VAL(settings),
		.len = ZSTR_LEN(settings),
	};
	RETURN_BOOL(outboard_rs_stream_call(outboard_host.events, &join, true));
}

/* It takes no more, and exits when it has handled what it has. */
PHP_FUNCTION(outboard_swoole_server_leave)
{
	ZEND_PARSE_PARAMETERS_NONE();
	if (has_gateway() && has_handler) {
		const outboard_stream_call leave = {.verb = OUTBOARD_STREAM_LEAVE};
		outboard_rs_stream_call(outboard_host.events, &leave, true);
		outboard_stop_serving();
	}
}

/* A call that has no result: the verb, the item that the caller handles, the connection, a number,
   bytes. */
PHP_FUNCTION(outboard_swoole_server_call)
{
	zend_long verb;
	zend_long item;
	zend_long session;
	zend_long value = 0;
	zend_string *bytes = NULL;
	ZEND_PARSE_PARAMETERS_START(3, 5)
		Z_PARAM_LONG(verb)
		Z_PARAM_LONG(item)
		Z_PARAM_LONG(session)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(value)
		Z_PARAM_STR(bytes)
	ZEND_PARSE_PARAMETERS_END();
	if (!has_gateway()) {
		RETURN_FALSE;
	}
	const outboard_stream_call call = {
		.verb = (int) verb,
		.item = (uint64_t) item,
		.session = (uint64_t) session,
		.value = (uint64_t) value,
		.bytes = bytes ? ZSTR_VAL(bytes) : NULL,
		.len = bytes ? ZSTR_LEN(bytes) : 0,
	};
	/* Outside of a coroutine nothing else publishes it soon. */
	RETURN_BOOL(outboard_rs_stream_call(outboard_host.events, &call, item == 0));
}

/* The result of a query as text; false without a gateway. */
PHP_FUNCTION(outboard_swoole_server_query)
{
	zend_long verb;
	zend_long item;
	zend_long session;
	zend_long value;
	outboard_str result;
	ZEND_PARSE_PARAMETERS_START(4, 4)
		Z_PARAM_LONG(verb)
		Z_PARAM_LONG(item)
		Z_PARAM_LONG(session)
		Z_PARAM_LONG(value)
	ZEND_PARSE_PARAMETERS_END();
	const outboard_stream_call call = {
		.verb = (int) verb,
		.item = (uint64_t) item,
		.session = (uint64_t) session,
		.value = (uint64_t) value,
	};
	if (!has_gateway() || !outboard_rs_stream_query(outboard_host.events, &call, &result)) {
		RETURN_FALSE;
	}
	RETURN_STRINGL(result.ptr, result.len);
}

#define ENGINE(name) ZEND_NS_FENTRY("Outboard\\Engine\\Swoole", server_##name, \
	ZEND_FN(outboard_swoole_server_##name), arginfo_any, 0)

const zend_function_entry outboard_swoole_server_functions[] = {
	ENGINE(join)
	ENGINE(leave)
	ENGINE(call)
	ENGINE(query)
	PHP_FE_END
};
