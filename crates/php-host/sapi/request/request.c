/*
 * The request cycle: php_request_startup, the script, php_request_shutdown, once per request.
 * Called by the worker's loop. Invariant: no longjmp leaves this file.
 */
#include "shim.h"

const outboard_request *outboard_current;
outboard_result *outboard_current_result;

void outboard_describe_request(const outboard_request *request)
{
	SG(request_info).request_method = request->method.ptr;
	SG(request_info).query_string = (char *) request->query.ptr;
	/* As php-fpm: SCRIPT_NAME, from which PHP_SELF is built. */
	SG(request_info).request_uri = (char *) request->script_name.ptr;
	SG(request_info).path_translated = (char *) request->script_filename.ptr;
	SG(request_info).content_type = request->content_type.ptr;
	SG(request_info).content_length = request->content_length < 0 ? 0 : request->content_length;
	/* As php-fpm: HTTP/1.0 for all clients. With 1001 a redirect after POST would have status 303 instead
	 * of 302 (sapi_header_op in SAPI.c). */
	SG(request_info).proto_num = 1000;
	SG(sapi_headers).http_response_code = 200;
	const outboard_str *authorization = outboard_header("authorization", 13);
	php_handle_auth_data(authorization ? authorization->ptr : NULL);
}

static int serve(const outboard_request *request)
{
	outboard_describe_request(request);
	outboard_time_limit_prepare();
	if (php_request_startup() == FAILURE) {
		outboard_current_result->leaving = true;
		return OUTBOARD_REFUSED;
	}
	outboard_kv_hook();
	return outboard_script_run(request);
}

void outboard_request_run(const outboard_request *request, void *exchange, outboard_result *result)
{
	result->outcome = OUTBOARD_FAILED;
	result->leaving = false;
	result->takes_snapshot = false;
	result->handled = false;
	result->spoiled = false;
	result->peak_memory_bytes = 0;
	outboard_current = request;
	outboard_current_result = result;
	outboard_open_span = 0;
	zend_first_try {
		SG(server_context) = exchange;
		result->outcome = serve(request);
		if (outboard_is_child) {
			outboard_child_end();
		}
		php_request_shutdown(NULL);
	} zend_catch {
		/* php_execute_script and php_request_shutdown catch the bailouts of a script; this one left the
		 * engine half shut down. */
		result->outcome = OUTBOARD_FAILED;
		result->leaving = true;
	} zend_end_try();
	result->handled = result->outcome == OUTBOARD_FINISHED && outboard_is_handled();
	outboard_time_limit_end();
	outboard_children_reap();
	outboard_process_changes_revert();
	result->leaving |= outboard_process_is_tainted;
	SG(server_context) = NULL;
	SG(request_info).path_translated = NULL;
	outboard_current = NULL;
	outboard_current_result = NULL;
}
