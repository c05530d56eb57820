/*
 * Runs the script of a request, and says in php-fpm's words when it cannot be opened.
 * Called by request.c.
 */
#include "shim.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static zend_result (*open_next)(zend_file_handle *file);
static int refused_errno;

/* 0, or why the file cannot be run. */
static int obstacle(const char *path)
{
	struct stat status;
	if (stat(path, &status) != 0 || access(path, R_OK) != 0) {
		return errno;
	}
	return S_ISREG(status.st_mode) ? 0 : ENOENT;
}

/*
 * php-fpm opens the script before it runs it. Here opcache may know it, and then no file is
 * opened at all; so a missing one shows only when the engine opens it. Left to itself it would
 * be a fatal error with a page of its own.
 */
static zend_result open_script(zend_file_handle *file)
{
	if (file->primary_script && outboard_current) {
		refused_errno = obstacle(ZSTR_VAL(file->filename));
		if (refused_errno) {
			zend_bailout();
		}
	}
	return open_next(file);
}

void outboard_script_hook(void)
{
	open_next = zend_stream_open_function;
	zend_stream_open_function = open_script;
}

/*
 * Applications include and write files relative to their script. Done for each request: the
 * last one may have called chdir(), and a deployment may have replaced a symlink in the path.
 */
static void enter_directory_of(const outboard_str *script)
{
	char directory[PATH_MAX];
	const char *slash = memrchr(script->ptr, '/', script->len);
	size_t len = slash ? (size_t) (slash - script->ptr) : 0;
	if (len > 0 && len < sizeof(directory)) {
		memcpy(directory, script->ptr, len);
		directory[len] = '\0';
		(void) !chdir(directory);
	} else if (slash) {
		(void) !chdir("/");
	}
}

static void say_refused(const outboard_request *request)
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
	enter_directory_of(&request->script_filename);
	zend_stream_init_filename(&file, request->script_filename.ptr);
	file.primary_script = 1;
	php_execute_script(&file);
	zend_destroy_file_handle(&file);
	if (refused_errno) {
		say_refused(request);
		return OUTBOARD_REFUSED;
	}
	return OUTBOARD_FINISHED;
}
