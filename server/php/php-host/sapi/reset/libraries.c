/*
 * What libraries keep for the whole process, and PHP's functions set: the text domain, OpenSSL's errors, readline's
 * history, how mysqli reports. Their extensions leave it at the end of a request, because they take it for the end of
 * the process. And what the shutdown of an extension clears after each request, which is not called between
 * requests of a worker: libxml's errors, which contain pieces of documents, and the header of the last response to
 * http://, which contains cookies.
 *
 * Called by reset.c. Invariant: it is put back after each request, whether or not one was seen to change it.
 */
#include "reset/reset.h"
#include <libintl.h>

/* PHP keeps 15 of OpenSSL's errors, OpenSSL itself 15 more. */
#define ERRORS_MAX 32

static char *text_domain;
static zend_function *clear_history;
static zend_function *next_error;
static zend_function *clear_xml_errors;
/* Since PHP 8.4. */
static zend_function *clear_http_headers;
static zend_function *set_report;
static zval report_mode;

static zend_function *find(const char *name)
{
	return zend_hash_str_find_ptr(EG(function_table), name, strlen(name));
}

/* True: it has returned a text. */
static bool call(zend_function *function, uint32_t count, zval *argument)
{
	zval result;
	zend_call_known_function(function, NULL, NULL, &result, count, argument, NULL);
	const bool is_text = Z_TYPE(result) == IS_STRING;
	zval_ptr_dtor(&result);
	return is_text;
}

/*
 * Not where a request has the process, or its memory, to itself: clearing the history has libedit read its settings
 * and the terminal's, 0.3 ms in each request.
 */
void outboard_save_libraries(void)
{
	if (outboard_rs_is_forking(outboard_host.events)) {
		return;
	}
	const char *domain = textdomain(NULL);
	zend_class_entry *driver = outboard_class("mysqli_driver");
	text_domain = domain ? pestrdup(domain, 1) : NULL;
	clear_history = find("readline_clear_history");
	next_error = find("openssl_error_string");
	clear_xml_errors = find("libxml_clear_errors");
	clear_http_headers = find("http_clear_last_response_headers");
	set_report = driver ? find("mysqli_report") : NULL;
	if (set_report) {
		zval object;
		zval value;
		object_init_ex(&object, driver);
		ZVAL_LONG(&report_mode, zval_get_long(zend_read_property(driver, Z_OBJ(object), ZEND_STRL("report_mode"), true, &value)));
		zval_ptr_dtor(&object);
	}
}

void outboard_reset_libraries(void)
{
	/* What was not saved is not reset: another process drops it. */
	OUTBOARD_ASSERT(!outboard_host.is_fork || !next_error);
	const char *domain = textdomain(NULL);
	if (domain && text_domain && strcmp(domain, text_domain) != 0) {
		textdomain(text_domain);
	}
	if (clear_history) {
		call(clear_history, 0, NULL);
	}
	for (int i = 0; next_error && i < ERRORS_MAX && call(next_error, 0, NULL); i++) {
	}
	if (clear_xml_errors) {
		call(clear_xml_errors, 0, NULL);
	}
	if (clear_http_headers) {
		call(clear_http_headers, 0, NULL);
	}
	if (set_report) {
		call(set_report, 1, &report_mode);
	}
}
