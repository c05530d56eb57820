/*
 * Output and log lines, from PHP to the exchange. Before the first request there is none, and
 * what PHP prints goes to the process's own streams, which the zygote captures at start-up.
 */
#include "shim.h"

size_t outboard_ub_write(const char *bytes, size_t len)
{
	if (!SG(server_context)) {
		return fwrite(bytes, 1, len, stdout);
	}
	size_t taken = outboard_rs_write(SG(server_context), bytes, len);
	if (taken < len) {
		/* May bail out; Rust has returned. */
		php_handle_aborted_connection();
	}
	return taken;
}

void outboard_flush(void *exchange)
{
	if (!exchange) {
		fflush(stdout);
		return;
	}
	sapi_send_headers();
	if (!outboard_rs_flush(exchange)) {
		php_handle_aborted_connection();
	}
}

void outboard_log_message(const char *message, int severity)
{
	if (!SG(server_context)) {
		fprintf(stderr, "%s\n", message);
		return;
	}
	outboard_rs_log(SG(server_context), severity, message, strlen(message));
}
