/*
 * Settings of extensions that only functions can read and write: mbstring, libxml, the time zone,
 * assertions. Called by reset.c. Invariant: a missing extension is skipped.
 */
#include "reset/reset.h"

static zval baseline_time_zone;
static zval baseline_assertion;
/* The boot's libxml_set_streams_context(); libxml has no function to read it. */
static zval baseline_libxml_context;
static bool has_booted;

/*
 * `result` is undefined if there is no such function. Calls of wrapped functions made here are not
 * changes.
 */
void outboard_call_if_exists(const char *function, zval *argument, zval *result)
{
	zval name;
	ZVAL_UNDEF(result);
	if (zend_hash_str_exists(CG(function_table), function, strlen(function))) {
		const uint32_t change = outboard_changes;
		ZVAL_STRING(&name, function);
		call_user_function(NULL, NULL, &name, result, argument ? 1 : 0, argument);
		zval_ptr_dtor(&name);
		outboard_changes = change;
	}
}

/* Functions that return a setting when called without arguments, and else change it. */
static const struct {
	const char *name;
	uint32_t change;
} settings[] = {
	{"mb_internal_encoding", OUTBOARD_MBSTRING},
	{"mb_http_output", OUTBOARD_MBSTRING},
	{"mb_language", OUTBOARD_MBSTRING},
	{"mb_substitute_character", OUTBOARD_MBSTRING},
	{"mb_detect_order", OUTBOARD_MBSTRING},
	{"mb_regex_encoding", OUTBOARD_MBSTRING},
	{"mb_regex_set_options", OUTBOARD_MBSTRING},
	{"libxml_use_internal_errors", OUTBOARD_LIBXML},
};
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static zval baseline_settings[SETTINGS];

static void save_values(void)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		outboard_call_if_exists(settings[i].name, NULL, &baseline_settings[i]);
	}
}

static void reset_values(uint32_t changes)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		if ((changes & settings[i].change) && !Z_ISUNDEF(baseline_settings[i])) {
			zval result;
			outboard_call_if_exists(settings[i].name, &baseline_settings[i], &result);
			zval_ptr_dtor(&result);
		}
	}
}

static void reset_libxml(void)
{
	zval none;
	zval result;
	ZVAL_NULL(&none);
	outboard_call_if_exists("libxml_clear_errors", NULL, &result);
	zval_ptr_dtor(&result);
	outboard_call_if_exists("libxml_set_external_entity_loader", &none, &result);
	zval_ptr_dtor(&result);
}

void outboard_track_libxml_context(const zval *context)
{
	outboard_changes |= OUTBOARD_LIBXML_CONTEXT;
	if (!has_booted && context) {
		zval_ptr_dtor(&baseline_libxml_context);
		ZVAL_COPY(&baseline_libxml_context, (zval *) context);
	}
}

/* Without its own context libxml uses the default one. */
static void reset_libxml_context(void)
{
	zval context;
	zval result;
	if (Z_ISUNDEF(baseline_libxml_context)) {
		outboard_call_if_exists("stream_context_get_default", NULL, &context);
	} else {
		ZVAL_COPY(&context, &baseline_libxml_context);
	}
	outboard_call_if_exists("libxml_set_streams_context", &context, &result);
	zval_ptr_dtor(&result);
	zval_ptr_dtor(&context);
}

/* ASSERT_CALLBACK is the only option that is not an ini value. */
#define ASSERT_CALLBACK 2

static void call_assert_options(zval *callback, zval *result)
{
	zval name;
	zval arguments[2];
	ZVAL_UNDEF(result);
	zend_function *function =
		zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("assert_options"));
	if (!function) {
		return;
	}
	ZVAL_STRING(&name, "assert_options");
	ZVAL_LONG(&arguments[0], ASSERT_CALLBACK);
	if (callback) {
		ZVAL_COPY_VALUE(&arguments[1], callback);
	}
	/* Deprecated since 8.3: the call would log a deprecation of the application. */
	const uint32_t flags = function->common.fn_flags;
	function->common.fn_flags &= ~ZEND_ACC_DEPRECATED;
	call_user_function(NULL, NULL, &name, result, callback ? 2 : 1, arguments);
	function->common.fn_flags = flags;
	zval_ptr_dtor(&name);
}

void outboard_save_settings(void)
{
	has_booted = true;
	outboard_call_if_exists("date_default_timezone_get", NULL, &baseline_time_zone);
	save_values();
	call_assert_options(NULL, &baseline_assertion);
}

void outboard_reset_settings(uint32_t changes)
{
	zval result;
	OUTBOARD_ASSERT(has_booted);
	reset_values(changes);
	if (changes & OUTBOARD_LIBXML) {
		reset_libxml();
	}
	if (changes & OUTBOARD_LIBXML_CONTEXT) {
		reset_libxml_context();
	}
	if (changes & OUTBOARD_TIME_ZONE) {
		outboard_call_if_exists("date_default_timezone_set", &baseline_time_zone, &result);
		zval_ptr_dtor(&result);
	}
	if (changes & OUTBOARD_ASSERTION) {
		call_assert_options(&baseline_assertion, &result);
		zval_ptr_dtor(&result);
	}
}
