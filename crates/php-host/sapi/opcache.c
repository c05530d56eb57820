/*
 * The opcode cache of a running app: what `outboard opcache status` shows, and how often an
 * application may throw it away. Called by module.c and script.c.
 *
 * All workers share one cache, which a reset empties for all of them: each request then compiles its
 * scripts anew, on every processor at once. Plugins call opcache_reset() whenever something was
 * updated, several times in a row; one in a minute does what they want.
 *
 * A resident script runs what is kept there for as long as its worker lives. opcache would wait for
 * all of them while new workers go without it, and then kill them (force_restart_timeout). So there
 * is no reset in worker mode: a reload begins anew, one generation after the other.
 */
#include "shim.h"
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#define RESET_PAUSE_S 60

/* No path of a request can be it: they begin with a slash. */
#define ASKED "outboard:opcache"

static zif_handler reset_next;
/* When it was reset last, in seconds of the monotonic clock; shared with every fork. */
static _Atomic int64_t *reset_s;

static void reset_now_and_then(INTERNAL_FUNCTION_PARAMETERS)
{
	if (outboard_events) {
		php_error_docref(NULL, E_WARNING,
			"cannot empty what resident scripts run; `outboard reload` begins anew");
		RETURN_FALSE;
	}
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t now_s = (int64_t) now.tv_sec + RESET_PAUSE_S;
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
		reset->handler = reset_now_and_then;
	}
}

bool outboard_is_opcache_request(const outboard_request *request)
{
	const outboard_str *name = &request->script_filename;
	return name->len == strlen(ASKED) && memcmp(name->ptr, ASKED, name->len) == 0;
}

/* Answers with opcache's own words for its state, as JSON; `null` where there is none. */
void outboard_opcache_show(void)
{
	static const char code[] =
		"header('Content-Type: application/json');"
		"echo json_encode(function_exists('opcache_get_status') ? @opcache_get_status(false) : null);";
	zend_try {
		zend_eval_stringl((char *) code, sizeof(code) - 1, NULL, "outboard opcache status");
	} zend_end_try();
}
