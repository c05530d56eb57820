/*
 * Runs the script of a request, or fails with php-fpm's messages if it cannot be opened. Called by
 * request.c.
 */
#include "request/request.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static zend_result (*open_next)(zend_file_handle *file);
static int refused_errno;

/* An errno if the file cannot be run, else 0. */
static int open_error(const char *path)
{
	struct stat status;
	if (stat(path, &status) != 0 || access(path, R_OK) != 0) {
		return errno;
	}
	return S_ISREG(status.st_mode) ? 0 : ENOENT;
}

/*
 * php-fpm opens the script before it runs it. Here opcache may run it without opening a file, so a
 * missing one is noticed only when the engine opens it, which would fail with another page.
 */
static zend_result open_script(zend_file_handle *file)
{
	if (file->primary_script && outboard_now.request) {
		refused_errno = open_error(ZSTR_VAL(file->filename));
		if (refused_errno) {
			zend_bailout();
		}
	}
	return open_next(file);
}

/* The working directory, and when it was entered; empty if a script may have changed it. */
static char entered[PATH_MAX];
static size_t entered_len;
static int64_t entered_s;
static zif_handler chdir_next;

static void chdir_and_invalidate(INTERNAL_FUNCTION_PARAMETERS)
{
	entered_len = 0;
	chdir_next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void enter(const char *directory, size_t len, int64_t now_s)
{
	if (len == entered_len && now_s == entered_s && memcmp(directory, entered, len) == 0) {
		return;
	}
	OUTBOARD_ASSERT(len < sizeof(entered));
	memcpy(entered, directory, len);
	entered[len] = '\0';
	entered_len = chdir(entered) == 0 ? len : 0;
	entered_s = now_s;
}

/*
 * Applications open files relative to their script. The directory is entered again each second (0.7
 * us), because a deployment may have replaced a symlink in its path.
 */
void outboard_script_enter(const outboard_request *request)
{
	const outboard_str *script = &request->script_filename;
	const char *slash = memrchr(script->ptr, '/', script->len);
	size_t len = slash ? (size_t) (slash - script->ptr) : 0;
	int64_t now_s = (int64_t) (request->received_us / 1000000);
	if (len > 0 && len < sizeof(entered)) {
		enter(script->ptr, len, now_s);
	} else if (slash) {
		enter("/", 1, now_s);
	}
}

void outboard_script_hook(void)
{
	open_next = zend_stream_open_function;
	zend_stream_open_function = open_script;
	chdir_next = outboard_wrap("chdir", chdir_and_invalidate);
}

static void send_refusal(const outboard_request *request)
{
	bool denied = refused_errno == EACCES;
	char text[512];
	int len = denied
		? snprintf(text, sizeof(text), "Unable to open primary script: %s (%s)",
			request->script_filename.ptr, strerror(refused_errno))
		: snprintf(text, sizeof(text), "Primary script unknown");
	size_t text_len = (size_t) len < sizeof(text) ? (size_t) len : sizeof(text) - 1;
	outboard_rs_log(SG(server_context), 3, text, text_len);
	zend_try {
		SG(sapi_headers).http_response_code = denied ? 403 : 404;
		PUTS(denied ? "Access denied.\n" : "File not found.\n");
	} zend_end_try();
}

int outboard_script_run(const outboard_request *request)
{
	zend_file_handle file;
	refused_errno = 0;
	EG(exit_status) = 0;
	if (OUTBOARD_ANY_HOOK(answer, request)) {
		return OUTBOARD_FINISHED;
	}
	outboard_script_enter(request);
	zend_stream_init_filename(&file, request->script_filename.ptr);
	file.primary_script = 1;
	outboard_time_limit_begin();
	php_execute_script(&file);
	zend_destroy_file_handle(&file);
	if (refused_errno) {
		send_refusal(request);
		return OUTBOARD_REFUSED;
	}
	return OUTBOARD_FINISHED;
}
