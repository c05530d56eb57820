/*
 * The opcode cache of a running app: `outboard opcache status`, and a limit on resets by the
 * application. Called by hooks: the engine's start, and requests for the status.
 *
 * All workers share one cache. After a reset each request compiles its scripts again, on all
 * processors at once. Plugins call opcache_reset() several times in a row after an update, so one
 * call a minute takes effect.
 *
 * A worker script uses its cached code until its worker exits. opcache would wait for all workers,
 * with new ones uncached meanwhile, and then kill them (force_restart_timeout). So worker mode has
 * no reset: a reload starts a new generation with a new cache.
 */
#include "opcache/opcache.h"
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#define RESET_PAUSE_S 60

/* Not the path of a request: those begin with a slash. */
#define REQUEST_PATH "outboard:opcache"

static zif_handler reset_next;
/* Time of the last reset, in seconds of the monotonic clock; shared with all forks. */
static _Atomic int64_t *reset_s;

static void limited_reset(INTERNAL_FUNCTION_PARAMETERS)
{
	if (outboard_host.is_program) {
		/* As in the command line, where there is no cache; a reload of the server has a new one. */
		RETURN_FALSE;
	}
	if (outboard_host.events) {
		php_error_docref(NULL, E_WARNING,
			"cannot reset the cache of worker scripts; use `outboard reload` instead");
		RETURN_FALSE;
	}
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t now_s = (int64_t) now.tv_sec + RESET_PAUSE_S;
	OUTBOARD_ASSERT(reset_s && reset_next);
	int64_t last_s = atomic_load(reset_s);
	if (last_s + RESET_PAUSE_S > now_s || !atomic_compare_exchange_strong(reset_s, &last_s, now_s)) {
		php_error_docref(NULL, E_NOTICE, "was called less than %d seconds ago", RESET_PAUSE_S);
		RETURN_FALSE;
	}
	reset_next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

void outboard_opcache_hook(void)
{
	zend_internal_function *reset =
		zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("opcache_reset"));
	if (!reset) {
		return;
	}
	outboard_opcache_users_startup();
	void *shared = mmap(NULL, sizeof(*reset_s), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared != MAP_FAILED) {
		reset_s = shared;
		reset_next = reset->handler;
		reset->handler = limited_reset;
	}
}

static bool is_about_opcache(const outboard_request *request)
{
	const outboard_str *name = &request->script_filename;
	return name->len == strlen(REQUEST_PATH) && memcmp(name->ptr, REQUEST_PATH, name->len) == 0;
}

/* Responds with opcache_get_status() as JSON, or `null` without opcache; false: it is another request. */
bool outboard_opcache_answer(const outboard_request *request)
{
	static const char code[] =
		"header('Content-Type: application/json');"
		"echo json_encode(function_exists('opcache_get_status') ? @opcache_get_status(false) : null);";
	if (!is_about_opcache(request)) {
		return false;
	}
	zend_try {
		zend_eval_stringl((char *) code, sizeof(code) - 1, NULL, "outboard opcache status");
	} zend_end_try();
	return true;
}
