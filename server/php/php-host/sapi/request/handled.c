/*
 * Whether the script has handled a request: it was called with a complete request, and neither an uncaught
 * exception, nor a fatal error, nor an exit with a status has ended it. The page cache stores no other response.
 *
 * The engine calls the hooks, request.c, loop.c and the functions that complete a response ask. Invariant: what
 * is not known to be handled is not.
 */
#include "request/request.h"
#include "zend_observer.h"

static void (*throw_next)(zend_object *thrown);

static void spoil(void)
{
	if (outboard_now.result) {
		outboard_now.result->spoiled = true;
	}
}

/* An error while the request is read means that the script gets a part of it. */
static void on_error(int type, zend_string *file, uint32_t line, zend_string *message)
{
	const int fatal = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR;
	(void) file;
	(void) line;
	(void) message;
	if (PG(during_request_startup) || (type & fatal)) {
		spoil();
		OUTBOARD_ASSERT(!outboard_is_handled());
	}
}

/* Whether a clause of this `try` is for the exception. */
static bool is_for(const zend_op *clause, const zend_object *thrown)
{
	while (clause->opcode == ZEND_CATCH) {
		zval *name = RT_CONSTANT(clause, clause->op1);
		const zend_class_entry *class = zend_lookup_class_ex(Z_STR_P(name), Z_STR_P(name + 1),
			ZEND_FETCH_CLASS_NO_AUTOLOAD);
		if (class && instanceof_function(thrown->ce, class)) {
			return true;
		}
		if (clause->extended_value & ZEND_LAST_CATCH) {
			return false;
		}
		clause = OP_JMP_ADDR(clause, clause->op2);
	}
	return false;
}

static bool frame_catches(const zend_execute_data *frame, const zend_object *thrown)
{
	const zend_op_array *code = &frame->func->op_array;
	const ptrdiff_t at = frame->opline - code->opcodes;
	for (int i = 0; i < code->last_try_catch; i++) {
		const zend_try_catch_element *one = &code->try_catch_array[i];
		const bool covers = one->catch_op && at >= (ptrdiff_t) one->try_op && at < (ptrdiff_t) one->catch_op;
		if (covers && is_for(code->opcodes + one->catch_op, thrown)) {
			return true;
		}
	}
	return false;
}

/* One that a `catch` throws again comes here again. */
static void on_throw(zend_object *thrown)
{
	const zend_execute_data *frame = EG(current_execute_data);
	const zend_object *exception = thrown ? thrown : EG(exception);
	while (exception && frame
		&& !(frame->func && ZEND_USER_CODE(frame->func->type) && frame_catches(frame, exception))) {
		frame = frame->prev_execute_data;
	}
	if (!frame) {
		spoil();
	}
	if (throw_next) {
		throw_next(thrown);
	}
}

void outboard_handled_hook(void)
{
	throw_next = zend_throw_exception_hook;
	zend_throw_exception_hook = on_throw;
	zend_observer_error_register(on_error);
}

/* Of the request whose script runs or has ended. */
bool outboard_is_handled(void)
{
	return outboard_now.result && !outboard_now.result->spoiled && EG(exit_status) == 0;
}
