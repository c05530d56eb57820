/*
 * Output and log lines from PHP to the exchange. Outside of requests PHP prints to the process's
 * own streams, which the zygote captures at start-up.
 */
#include "worker/worker.h"

/*
 * php_handle_aborted_connection would bail out and break the engine for other requests, so in
 * worker mode the handler ends as by exit() and its `finally` blocks run.
 */
static void client_has_gone(void)
{
	const outboard_request_state *state = outboard_host.events ? outboard_running_state() : NULL;
	if (!state) {
		php_handle_aborted_connection();
		return;
	}
	PG(connection_status) = PHP_CONNECTION_ABORTED;
	php_output_set_status(PHP_OUTPUT_DISABLED);
	if (!PG(ignore_user_abort) && !state->completed && !EG(exception)) {
		zend_throw_graceful_exit();
	}
}

/* A slow client blocks only its own request, not the worker. */
static void wait_for_client(void *exchange)
{
	while (outboard_host.events && outboard_rs_is_paused(exchange) && outboard_may_suspend()
		&& !outboard_is_cancelled()) {
		outboard_rs_await_client(exchange, outboard_waiter());
		outboard_suspend();
	}
	outboard_throw_if_cancelled();
}

size_t outboard_ub_write(const char *bytes, size_t len)
{
	if (!SG(server_context)) {
		/* At once, as in the command line: a process that is killed leaves nothing, and a fork has no copy of it. */
		const size_t written = fwrite(bytes, 1, len, stdout);
		fflush(stdout);
		return written;
	}
	size_t taken = outboard_rs_write(SG(server_context), bytes, len);
	OUTBOARD_ASSERT(taken <= len);
	if (taken < len) {
		/* May bail out; Rust has returned. */
		client_has_gone();
	} else {
		wait_for_client(SG(server_context));
	}
	return taken;
}

void outboard_flush(void *exchange)
{
	if (!exchange) {
		fflush(stdout);
		return;
	}
	bool is_worker = outboard_host.events && !outboard_host.boots_classic;
	if (!SG(headers_sent) && !is_worker && !OUTBOARD_FLUSH_SENDS_HEADERS) {
		return;
	}
	sapi_send_headers();
	if (!outboard_rs_flush(exchange, outboard_is_handled())) {
		client_has_gone();
	} else {
		wait_for_client(exchange);
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

/* What the boot has printed is printed once, not by each fork. */
void outboard_output_end(void)
{
	php_output_end_all();
	fflush(stdout);
}
