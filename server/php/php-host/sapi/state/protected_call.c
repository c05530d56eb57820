/*
 * Calls of PHP that always return: an exception, an exit, a fatal error or exhausted memory ends
 * within them. Called by loop.c, and at the end of a request.
 *
 * Invariant: no bailout passes these functions.
 */
#include "state/state.h"

/* An uncaught exception goes to the script's handler, or is reported as PHP does. */
static void report_exception(outboard_request_state *state)
{
	if (zend_is_unwind_exit(EG(exception)) || zend_is_graceful_exit(EG(exception))) {
		if (state) {
			state->exited |= zend_is_unwind_exit(EG(exception));
		}
		zend_clear_exception();
		return;
	}
	if (state) {
		state->result.spoiled = true;
	}
	if (Z_TYPE(EG(user_exception_handler)) != IS_UNDEF) {
		zend_user_exception_handler();
	}
	if (EG(exception)) {
		if (zend_is_unwind_exit(EG(exception))) {
			zend_clear_exception();
			return;
		}
		zend_exception_error(EG(exception), E_ERROR);
		EG(exception) = NULL;
		if (state) {
			state->result.outcome = OUTBOARD_FAILED;
		}
	}
}

/*
 * After a bailout (exhausted memory, a fatal error) the engine can only finish what has begun, and
 * the worker takes no further request. The memory of the failed request stays allocated, so the
 * limit is raised for the others.
 */
static void recover(zend_execute_data *frame, outboard_request_state *state)
{
	/* Some bailouts end within zend_call_function, and are visible only here. */
	if (!CG(unclean_shutdown) && !OUTBOARD_HAS_OOM()) {
		return;
	}
	outboard_host.is_broken = true;
	CG(unclean_shutdown) = false;
	OUTBOARD_FORGET_OOM();
	EG(current_execute_data) = frame;
	if (EG(exception)) {
		zend_clear_exception();
	}
	if (state) {
		state->result.outcome = OUTBOARD_FAILED;
	}
	if (PG(memory_limit) > 0) {
		zend_set_memory_limit(zend_memory_usage(true) + (size_t) PG(memory_limit));
	}
}

typedef struct {
	zval *callback;
	zval result;
} invocation;

static void invoke(void *arg)
{
	invocation *one = arg;
	zend_fcall_info info;
	zend_fcall_info_cache cache;
	if (zend_fcall_info_init(one->callback, 0, &info, &cache, NULL, NULL) == SUCCESS) {
		info.retval = &one->result;
		zend_call_function(&info, &cache);
	}
}

/* Calls `step` with a catch for everything. */
void outboard_protected_call(void (*step)(void *arg), void *arg, outboard_request_state *state)
{
	zend_execute_data *const frame = EG(current_execute_data);
	zend_try {
		step(arg);
		if (EG(exception)) {
			report_exception(state);
		}
	} zend_catch {
		CG(unclean_shutdown) = true;
	} zend_end_try();
	recover(frame, state);
	OUTBOARD_ASSERT(!EG(exception) && EG(current_execute_data) == frame);
	if (UNEXPECTED(outboard_host.is_child)) {
		OUTBOARD_RUN_HOOKS(code_ended);
	}
}

void outboard_call_php(zval *callback, outboard_request_state *state)
{
	invocation one = {.callback = callback};
	ZVAL_UNDEF(&one.result);
	outboard_protected_call(invoke, &one, state);
	zval_ptr_dtor(&one.result);
}

typedef struct {
	void (*step)(outboard_request_state *state);
	outboard_request_state *state;
} step_call;

static void run_step(void *arg)
{
	const step_call *one = arg;
	one->step(one->state);
}

/* Runs a step of a request's end that may call PHP. */
void outboard_protected_step(void (*step)(outboard_request_state *state), outboard_request_state *state)
{
	step_call one = {step, state};
	OUTBOARD_ASSERT(step && state);
	outboard_protected_call(run_step, &one, state);
}
