/*
 * The reset after a request in worker mode: state of the process outside of the request's own.
 * Called by the hooks boot_ended and state_ended; the parts are the files beside it.
 *
 * Functions that change such state are wrapped, so a request that calls none of them costs nothing.
 * Invariant: after a request everything below is as it was when the script first called for a
 * request.
 */
#include "reset/reset.h"
#include "ext/random/php_random.h"
#include "ext/standard/basic_functions.h"
#include "ext/standard/php_filestat.h"
#include "zend_smart_str.h"

/* Functions that change state, and which state. */
static const struct {
	const char *name;
	uint32_t change;
} tracked[] = {
	{"putenv", OUTBOARD_ENVIRONMENT},
	{"chdir", OUTBOARD_DIRECTORY},
	{"chroot", OUTBOARD_DIRECTORY},
	{"umask", OUTBOARD_UMASK},
	{"setlocale", OUTBOARD_LOCALE},
	{"date_default_timezone_set", OUTBOARD_TIME_ZONE},
	{"mb_internal_encoding", OUTBOARD_MBSTRING},
	{"mb_http_output", OUTBOARD_MBSTRING},
	{"mb_http_input", OUTBOARD_MBSTRING},
	{"mb_language", OUTBOARD_MBSTRING},
	{"mb_substitute_character", OUTBOARD_MBSTRING},
	{"mb_detect_order", OUTBOARD_MBSTRING},
	{"mb_regex_encoding", OUTBOARD_MBSTRING},
	{"libxml_use_internal_errors", OUTBOARD_LIBXML},
	{"mb_regex_set_options", OUTBOARD_MBSTRING},
	{"libxml_set_external_entity_loader", OUTBOARD_LIBXML},
	{"libxml_set_streams_context", OUTBOARD_LIBXML_CONTEXT},
	{"assert_options", OUTBOARD_ASSERTION},
	{"stream_wrapper_register", OUTBOARD_WRAPPERS},
	{"stream_register_wrapper", OUTBOARD_WRAPPERS},
	{"stream_wrapper_unregister", OUTBOARD_WRAPPERS},
	{"stream_wrapper_restore", OUTBOARD_WRAPPERS},
	{"stream_filter_register", OUTBOARD_FILTERS},
	{"stream_context_set_default", OUTBOARD_CONTEXT},
	{"stream_context_get_default", OUTBOARD_CONTEXT},
	{"stream_context_set_option", OUTBOARD_CONTEXT},
	{"stream_context_set_options", OUTBOARD_CONTEXT},
	{"stream_context_set_params", OUTBOARD_CONTEXT},
	{"output_add_rewrite_var", OUTBOARD_REWRITING},
	{"mt_srand", OUTBOARD_SEED},
	{"srand", OUTBOARD_SEED},
	{"register_tick_function", OUTBOARD_TICKS},
	{"unregister_tick_function", OUTBOARD_TICKS},
	{"flock", OUTBOARD_LOCK},
	{"mysqli_begin_transaction", OUTBOARD_TRANSACTION},
	{"mysqli_autocommit", OUTBOARD_TRANSACTION},
	{"mysqli_query", OUTBOARD_TRANSACTION},
	{"mysqli_real_query", OUTBOARD_TRANSACTION},
	{"mysqli_multi_query", OUTBOARD_TRANSACTION},
	{"mysqli_execute_query", OUTBOARD_TRANSACTION},
	{"pg_query", OUTBOARD_TRANSACTION},
	{"pg_exec", OUTBOARD_TRANSACTION},
	{"pg_query_params", OUTBOARD_TRANSACTION},
	{"pg_send_query", OUTBOARD_TRANSACTION},
};
#define TRACKED (sizeof(tracked) / sizeof(tracked[0]))

static zif_handler wrapped[TRACKED];

static void call_tracked(INTERNAL_FUNCTION_PARAMETERS)
{
	const zend_string *name = execute_data->func->common.function_name;
	size_t at = 0;
	while (at + 1 < TRACKED && !zend_string_equals_cstr(name, tracked[at].name, strlen(tracked[at].name))) {
		at++;
	}
	zval *first = ZEND_NUM_ARGS() > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
	OUTBOARD_ASSERT(wrapped[at]);
	switch (tracked[at].change) {
	case OUTBOARD_TRANSACTION:
		outboard_track_transaction(execute_data, false);
		break;
	case OUTBOARD_LOCK:
		outboard_track_lock(first);
		break;
	case OUTBOARD_LIBXML_CONTEXT:
		outboard_track_libxml_context(first);
		break;
	default:
		outboard_changes |= tracked[at].change;
	}
	wrapped[at](INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

void outboard_reset_startup(const outboard_start *start)
{
	(void) start;
	for (size_t i = 0; i < TRACKED; i++) {
		wrapped[i] = outboard_wrap(tracked[i].name, call_tracked);
	}
	outboard_transactions_startup();
}

/* The number that the boot has registered. */
static size_t tick_functions;

/* Functions of requests follow those in the list. */
static void reset_ticks(void)
{
	while (BG(user_tick_functions)
		&& zend_llist_count(BG(user_tick_functions)) > tick_functions) {
		zend_llist_remove_tail(BG(user_tick_functions));
	}
}

/* Saves the state that requests begin with, when the script has booted. */
void outboard_reset_baseline(void)
{
	outboard_save_ini();
	outboard_save_process();
	outboard_save_settings();
	outboard_save_libraries();
	outboard_save_streams();
	tick_functions = BG(user_tick_functions) ? zend_llist_count(BG(user_tick_functions)) : 0;
	outboard_clear_held();
	outboard_changes = 0;
}

/*
 * Reseeds: forks of one snapshot must not draw equal numbers, nor requests after one that seeded.
 */
void outboard_reset_random(void)
{
	RANDOM_G(mt19937_seeded) = false;
	RANDOM_G(combined_lcg_seeded) = false;
}

/* As php_url_scanner_ex_deactivate in url_scanner_ex.re, which is not exported. */
static void reset_rewriting(void)
{
	url_adapt_state_ex_t *scanner = &BG(url_adapt_output_ex);
	zval result;
	outboard_call_if_exists("output_reset_rewrite_vars", NULL, &result);
	zval_ptr_dtor(&result);
	smart_str_free(&scanner->result);
	smart_str_free(&scanner->buf);
	scanner->active = 0;
}

void outboard_reset_after(outboard_request_state *state)
{
	uint32_t changes = outboard_changes;
	OUTBOARD_ASSERT(state == outboard_now.state && state->completed);
	outboard_reset_ini();
	outboard_reset_libraries();
	/* Other processes may have changed the file of the last stat() meanwhile. */
	php_clear_stat_cache(0, NULL, 0);
	if (!changes) {
		return;
	}
	outboard_changes = 0;
	if ((changes & (OUTBOARD_TRANSACTION | OUTBOARD_LOCK)) && outboard_release_held(state)) {
		outboard_changes |= OUTBOARD_TRANSACTION;
	}
	outboard_reset_process(changes);
	outboard_reset_settings(changes);
	outboard_reset_streams(changes);
	if (changes & OUTBOARD_REWRITING) {
		reset_rewriting();
	}
	if (changes & OUTBOARD_TICKS) {
		reset_ticks();
	}
	if (changes & OUTBOARD_SEED) {
		outboard_reset_random();
	}
}
