/*
 * Outboard\on_resume(): functions that run at the beginning of each request, with its superglobals, before the code
 * below the snapshot. For what the boot cannot do for all requests, such as opening a connection of a client
 * that does not connect again by itself (connections.c).
 *
 * Called by snapshot_call.c, and before a handler (handler_due in hooks.h). Invariant: if one of them fails, the request's code does not run.
 */
#include "snapshot/snapshot.h"
#include "connections/connections.h"

/* In the order of registration; an array of callables. */
static zval callbacks;
static bool is_resumed;

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_on_resume, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, callback, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

/* Without a snapshot, what was opened stays open, so that there is nothing to do. */
PHP_FUNCTION(outboard_on_resume)
{
	zend_fcall_info info;
	zend_fcall_info_cache cache;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_FUNC(info, cache)
	ZEND_PARSE_PARAMETERS_END();
	if (!outboard_connections_in_boot()) {
		return;
	}
	if (Z_ISUNDEF(callbacks)) {
		array_init(&callbacks);
	}
	Z_TRY_ADDREF(info.function_name);
	add_next_index_zval(&callbacks, &info.function_name);
}

/* Calls them one after the other, until one throws. */
void outboard_resume(void)
{
	zval *callback;
	if (Z_ISUNDEF(callbacks)) {
		return;
	}
	OUTBOARD_ASSERT(Z_TYPE(callbacks) == IS_ARRAY && outboard_host.is_fork);
	ZEND_HASH_FOREACH_VAL(Z_ARRVAL(callbacks), callback) {
		zval result;
		ZVAL_UNDEF(&result);
		call_user_function(NULL, NULL, callback, &result, 0, NULL);
		zval_ptr_dtor(&result);
		if (EG(exception)) {
			return;
		}
	} ZEND_HASH_FOREACH_END();
}

static void run(outboard_request_state *state)
{
	(void) state;
	outboard_resume();
	is_resumed = !EG(exception);
}

/* For a script with a handler, which is not called after an exception. */
bool outboard_resume_before_handler(outboard_request_state *state)
{
	if (Z_ISUNDEF(callbacks)) {
		return true;
	}
	OUTBOARD_ASSERT(state == outboard_now.state && !state->is_called);
	is_resumed = false;
	outboard_protected_step(run, state);
	return is_resumed;
}

const zend_function_entry outboard_resume_functions[] = {
	ZEND_NS_FENTRY("Outboard", on_resume, ZEND_FN(outboard_on_resume), arginfo_on_resume, 0)
	PHP_FE_END
};
