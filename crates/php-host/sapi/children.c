/*
 * Processes that a script forks off with pcntl_fork(). Such a child is no worker: it has the script
 * and nothing of the gateway's. Called by the engine's start-up, by fork(2) itself, and at the end
 * of what a child runs.
 *
 * A child prints to nobody (its errors are logged), goes through PHP's end of a script without closing
 * what its parent has opened, and exits. Invariants: no child outlives its parent; the children of a
 * worker, theirs included, are bounded.
 */
#include "coroutine.h"
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Children at a time. A child may have a quarter as many, so that a worker has 800 below it at most. */
#define MOST_CHILDREN 32
/* With those that have ended and were not waited for. */
#define ROOM 256

bool outboard_is_child;

static bool is_watching;
static pid_t parent;
static uint32_t most_children = MOST_CHILDREN;
static pid_t children[ROOM];
static uint32_t count;
static zif_handler fork_next;

static void before_fork(void)
{
	parent = getpid();
}

/* Of proc_open() as well, between fork and exec: nothing here allocates or waits. */
static void in_child(void)
{
	if (!is_watching) {
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) {
		_exit(1);
	}
	/* Its handler writes to the ring, which a child does not have. */
	signal(SIGUSR2, SIG_DFL);
	outboard_is_child = true;
	outboard_events = NULL;
	outboard_current_result = NULL;
	SG(server_context) = NULL;
	SG(request_info).no_headers = 1;
	SG(rfc1867_uploaded_files) = NULL;
	OG(flags) |= PHP_OUTPUT_DISABLED;
	outboard_one_shot_begin();
	outboard_one_shot_pin_resources();
	most_children /= 4;
	count = 0;
}

/* Whether forks are a script's; those that make workers are not. */
void outboard_children_watch(bool watch)
{
	is_watching = watch;
}

/* What a child runs has come to its end. */
void outboard_child_end(void)
{
	int status = EG(exit_status);
	outboard_one_shot_end();
	_exit(status);
}

/* How many still run; those that the script has waited for are forgotten. */
static uint32_t running(void)
{
	uint32_t alive = 0;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < count; i++) {
		siginfo_t info = {0};
		if (waitid(P_PID, (id_t) children[i], &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
			alive += info.si_pid == 0;
			children[kept++] = children[i];
		}
	}
	count = kept;
	return alive;
}

/* At a request's end: children that have ended without being waited for. */
void outboard_children_reap(void)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (waitpid(children[i], NULL, WNOHANG) == 0) {
			children[kept++] = children[i];
		}
	}
	count = kept;
}

static void fork_within_limit(INTERNAL_FUNCTION_PARAMETERS)
{
	if (running() >= most_children || count == ROOM) {
		php_error_docref(NULL, E_WARNING, "No more than %u children at a time", most_children);
		RETURN_LONG(-1);
	}
	fork_next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(return_value) == IS_LONG && Z_LVAL_P(return_value) > 0) {
		children[count++] = (pid_t) Z_LVAL_P(return_value);
	}
}

/* After start-up, in the process that forks the workers. */
void outboard_children_startup(void)
{
	zend_function *function =
		zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("pcntl_fork"));
	if (function && function->type == ZEND_INTERNAL_FUNCTION) {
		fork_next = function->internal_function.handler;
		function->internal_function.handler = fork_within_limit;
	}
	is_watching = pthread_atfork(before_fork, NULL, in_child) == 0;
}
