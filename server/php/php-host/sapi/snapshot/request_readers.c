/*
 * Functions of extensions that read copies of the request which are in no array of PHP: they record what they read while a
 * script boots.
 *
 * Called at the start of the module. Invariant: code that is preloaded, and compiled by the JIT, calls these as well.
 */
#include "snapshot/snapshot.h"

static void input_of(const zend_execute_data *execute_data)
{
	static const char *const arrays[] = {"_POST", "_GET", "_COOKIE", NULL, "_ENV", "_SERVER"};
	const zval *source = ZEND_NUM_ARGS() > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
	const zval *name = ZEND_NUM_ARGS() > 1 ? ZEND_CALL_ARG(execute_data, 2) : NULL;
	const zend_long at = source && Z_TYPE_P(source) == IS_LONG ? Z_LVAL_P(source) : -1;
	if (at >= 0 && at < 6 && arrays[at]) {
		outboard_request_reads_add_entry(arrays[at], name && Z_TYPE_P(name) == IS_STRING ? Z_STRVAL_P(name) : NULL);
	} else {
		outboard_request_reads_add("_SERVER", NULL);
	}
}

static void encodings_of(const zend_execute_data *execute_data)
{
	(void) execute_data;
	outboard_request_reads_add("_GET", NULL);
	outboard_request_reads_add("_POST", NULL);
	outboard_request_reads_add("_COOKIE", NULL);
}

static void body_of(const zend_execute_data *execute_data)
{
	(void) execute_data;
	outboard_request_reads_add("_POST", NULL);
	outboard_request_reads_add("_SERVER", "CONTENT_TYPE");
	outboard_request_reads_add("_SERVER", "REQUEST_METHOD");
}

static struct {
	const char *name;
	void (*note)(const zend_execute_data *execute_data);
	zif_handler next;
} readers[] = {
	{"filter_input", input_of, NULL}, {"filter_has_var", input_of, NULL}, {"filter_input_array", input_of, NULL},
	{"mb_http_input", encodings_of, NULL}, {"request_parse_body", body_of, NULL},
};
#define READERS (sizeof(readers) / sizeof(*readers))

static void call_reader(INTERNAL_FUNCTION_PARAMETERS)
{
	const zend_string *name = execute_data->func->common.function_name;
	for (size_t i = 0; i < READERS; i++) {
		if (zend_string_equals_cstr(name, readers[i].name, strlen(readers[i].name))) {
			OUTBOARD_ASSERT(readers[i].next);
			if (outboard_host.records_reads) {
				readers[i].note(execute_data);
			}
			readers[i].next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
			return;
		}
	}
}

/* Before code is preloaded, which the JIT may compile with the handlers that functions have then. */
void outboard_request_readers_startup(void)
{
	for (size_t i = 0; i < READERS; i++) {
		readers[i].next = outboard_wrap(readers[i].name, call_reader);
	}
}
