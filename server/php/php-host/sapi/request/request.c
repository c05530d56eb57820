/*
 * The request cycle: php_request_startup, the script, php_request_shutdown, once per request.
 * Called by the worker's loop. Invariant: no longjmp leaves this file.
 */
#include "request/request.h"

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
		outboard_now.result->leaving = true;
		return OUTBOARD_REFUSED;
	}
	OUTBOARD_RUN_HOOKS(classic_started);
	return outboard_script_run(request);
}

void outboard_request_run(const outboard_request *request, void *exchange, outboard_result *result)
{
	OUTBOARD_ASSERT(!outboard_now.request && !outboard_host.events && exchange);
	result->outcome = OUTBOARD_FAILED;
	result->leaving = false;
	result->takes_snapshot = false;
	result->handled = false;
	result->spoiled = false;
	result->peak_memory_bytes = 0;
	outboard_now.request = request;
	outboard_now.result = result;
	outboard_now.span = 0;
	zend_first_try {
		SG(server_context) = exchange;
		result->outcome = serve(request);
		if (outboard_host.is_child) {
			OUTBOARD_RUN_HOOKS(code_ended);
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
	OUTBOARD_RUN_HOOKS(request_ended);
	result->leaving |= outboard_host.is_tainted;
	SG(server_context) = NULL;
	SG(request_info).path_translated = NULL;
	outboard_now.request = NULL;
	outboard_now.result = NULL;
}
