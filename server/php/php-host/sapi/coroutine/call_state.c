/*
 * The engine's globals of a call in progress that calls PHP in turn: the comparison of a sort, the
 * objects of an unserialize(). PHP restores them in the order of a stack when such a call ends; a
 * coroutine that waits within one ends it in another order.
 *
 * Called by coroutine.c around each wait. Invariant: the engine has the running coroutine's
 * globals.
 */
#include "coroutine/coroutine.h"
#include "ext/standard/basic_functions.h"
#include "ext/standard/file.h"

static bool is_empty(void)
{
	return BG(user_compare_fci).size == 0 && !BG(serialize_lock) && !BG(serialize).level
		&& !BG(serialize).data && !BG(unserialize).level && !BG(unserialize).data
		&& !FG(user_stream_current_filename) && EG(error_handling) == EH_NORMAL;
}

/* Clears the globals as well: another coroutine has no call in progress. */
/*
 * The output buffers of a program's coroutine are its own: it may render a page and wait in the middle of
 * that. (Those of a request's visit belong to its state, request_state.c.)
 */
static void save_output(outboard_call_state *state)
{
	state->has_output = outboard_host.is_program && OG(active);
	if (state->has_output) {
		state->handlers = OG(handlers);
		state->active_handler = OG(active);
		state->running_handler = OG(running);
		zend_stack_init(&OG(handlers), sizeof(php_output_handler *));
		OG(active) = NULL;
		OG(running) = NULL;
	}
}

static void restore_output(const outboard_call_state *state)
{
	if (state->has_output) {
		zend_stack_destroy(&OG(handlers));
		OG(handlers) = state->handlers;
		OG(active) = state->active_handler;
		OG(running) = state->running_handler;
	}
}

void outboard_call_state_save(outboard_call_state *state)
{
	save_output(state);
	state->open_span = outboard_now.span;
	outboard_now.span = 0;
	/* As most are: then nothing is copied, because each coroutine leaves them clear. */
	state->is_empty = is_empty();
	if (state->is_empty) {
		return;
	}
	state->compare = BG(user_compare_fci);
	state->compare_cache = BG(user_compare_fci_cache);
	state->serialize_lock = BG(serialize_lock);
	state->serialize_data = BG(serialize).data;
	state->serialize_level = BG(serialize).level;
	state->unserialize_data = BG(unserialize).data;
	state->unserialize_level = BG(unserialize).level;
	state->opening = FG(user_stream_current_filename);
	/* Errors are exceptions in a constructor such as PDO's, which waits for its connection. */
	state->error_handling = EG(error_handling);
	state->exception_class = EG(exception_class);
	EG(error_handling) = EH_NORMAL;
	EG(exception_class) = NULL;
	memset(&BG(user_compare_fci), 0, sizeof(BG(user_compare_fci)));
	memset(&BG(user_compare_fci_cache), 0, sizeof(BG(user_compare_fci_cache)));
	BG(serialize_lock) = 0;
	BG(serialize).data = NULL;
	BG(serialize).level = 0;
	BG(unserialize).data = NULL;
	BG(unserialize).level = 0;
	FG(user_stream_current_filename) = NULL;
}

void outboard_call_state_restore(const outboard_call_state *state)
{
	/* What another one has in progress, it has taken along. */
	OUTBOARD_ASSERT_SLOWLY(outboard_host.is_broken || is_empty());
	restore_output(state);
	outboard_now.span = state->open_span;
	if (state->is_empty) {
		return;
	}
	BG(user_compare_fci) = state->compare;
	BG(user_compare_fci_cache) = state->compare_cache;
	BG(serialize_lock) = state->serialize_lock;
	BG(serialize).data = state->serialize_data;
	BG(serialize).level = state->serialize_level;
	BG(unserialize).data = state->unserialize_data;
	BG(unserialize).level = state->unserialize_level;
	FG(user_stream_current_filename) = state->opening;
	EG(error_handling) = state->error_handling;
	EG(exception_class) = state->exception_class;
}
