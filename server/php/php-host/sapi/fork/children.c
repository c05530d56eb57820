/*
 * Child processes that a script forks with pcntl_fork(). Such a child is not a worker: it runs the
 * script without a gateway. Called at the engine's start-up, by fork(2), and at the end of a child.
 *
 * A child's output is discarded and its errors are logged; it runs PHP's shutdown without closing
 * what its parent opened, and exits. That of a program prints, and has an event loop.
 * Invariants: no child of a worker outlives its parent; the number of its descendants is bounded; a child that has
 * exited is collected by the script that has started it, or at the end of its request.
 */
#include "fork/fork.h"
#include "waiting/waiting.h"
#include <ext/standard/proc_open.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Children at a time. A child may have a quarter as many, so a worker has at most 800 descendants.
 */
#define MAX_CHILDREN 32
/* Including zombies. */
#define CAPACITY 256
/* Of process ids that are read at a time. */
#define LIST_BYTES 4096
/* After this number of requests a worker looks for children of which fork(3) does not know. */
#define LOOK_INTERVAL 64

/* In a worker, and in a child of it, which counts its own. */
static struct {
	bool is_watching; /* forks are a script's, and not those that create workers */
	/* Noted before a fork, for the child. */
	pid_t parent;
	void *events_of_parent;

	uint32_t most; /* at a time; a quarter of its parent's */
	pid_t list[CAPACITY]; /* those that pcntl_fork() has started, until they are collected */
	uint32_t count;

	bool has_forked; /* there may be others */
	uint32_t since_look; /* requests since they were looked for */
} children = {.most = MAX_CHILDREN};

static zif_handler fork_next;

static void before_fork(void)
{
	children.parent = getpid();
	children.events_of_parent = outboard_host.events;
}

static void after_fork(void)
{
	children.has_forked = true;
}

/* Also runs between fork and exec of proc_open(): nothing here allocates or waits. */
static void in_child(void)
{
	if (!children.is_watching) {
		return;
	}
	OUTBOARD_ASSERT(children.parent != getpid());
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != children.parent) {
		_exit(1);
	}
	/* The handler writes to the ring, which a child does not have. */
	signal(SIGUSR2, SIG_DFL);
	outboard_host.is_child = true;
	outboard_host.events = NULL;
	outboard_now.result = NULL;
	SG(server_context) = NULL;
	SG(request_info).no_headers = 1;
	SG(rfc1867_uploaded_files) = NULL;
	if (!outboard_host.is_program) {
		OG(flags) |= PHP_OUTPUT_DISABLED;
	}
	outboard_one_shot_begin();
	outboard_one_shot_pin_resources();
	children.most /= 4;
	children.count = 0;
}

/* Whether forks are a script's; those that create workers are not. */
void outboard_children_watch(bool watch)
{
	children.is_watching = watch;
}

static void end(void)
{
	OUTBOARD_ASSERT(outboard_host.is_child);
	int status = EG(exit_status);
	outboard_one_shot_end();
	_exit(status);
}

/* At the end of the script. */
void outboard_child_end(void)
{
	if (outboard_host.is_child) {
		end();
	}
}

/* When a call of PHP has returned. With an event loop, a child has coroutines of its own: its main script ends it. */
void outboard_child_code_ended(void)
{
	const bool is_root = outboard_running == outboard_root && outboard_root != &outboard_main_script;
	if (outboard_host.is_child && (!outboard_host.events || is_root)) {
		end();
	}
}

/* The number of running children; drops those that the script has waited for. */
static uint32_t running(void)
{
	uint32_t alive = 0;
	uint32_t remaining = 0;
	OUTBOARD_ASSERT(children.count <= CAPACITY);
	for (uint32_t i = 0; i < children.count; i++) {
		siginfo_t info = {0};
		if (waitid(P_PID, (id_t) children.list[i], &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
			alive += info.si_pid == 0;
			children.list[remaining++] = children.list[i];
		}
	}
	children.count = remaining;
	return alive;
}

/* Whether a resource of proc_open() or popen() waits for this process itself. */
static bool is_opened(pid_t pid)
{
	static int type;
	zend_resource *resource;
	if (outboard_popen_has(pid)) {
		return true;
	}
	type = type ? type : zend_fetch_list_dtor_id("process");
	ZEND_HASH_FOREACH_PTR(&EG(regular_list), resource) {
		if (resource->type == type && resource->ptr && ((php_process_handle *) resource->ptr)->child == pid) {
			return true;
		}
	} ZEND_HASH_FOREACH_END();
	return false;
}

/* The children of this thread, of which a worker has one, at most as many as fit. */
static ssize_t list_children(char *list, size_t size)
{
	const int file = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	const ssize_t length = file == -1 ? -1 : read(file, list, size - 1);
	if (file != -1) {
		close(file);
	}
	list[length > 0 ? length : 0] = '\0';
	return length;
}

static void collect_zombies(void)
{
	char list[LIST_BYTES];
	if (list_children(list, sizeof(list)) <= 0) {
		return;
	}
	for (char *at = list, *end; *at; at = end + 1) {
		const pid_t pid = (pid_t) strtol(at, &end, 10);
		/* The last one may be cut off. */
		if (*end != ' ') {
			break;
		}
		if (!is_opened(pid)) {
			waitpid(pid, NULL, WNOHANG);
		}
	}
}

/*
 * Called at a request's end, for children that the script has not waited for, however they were started. Children of
 * other requests are theirs, and a program waits for its own: there only those are collected that
 * pcntl_fork() has started.
 */
void outboard_children_reap(void)
{
	if (outboard_host.concurrency <= 1 && !outboard_host.is_program) {
		/* Most workers have no children: then this is all. */
		siginfo_t info = {0};
		if (!children.has_forked && ++children.since_look < LOOK_INTERVAL) {
			return;
		}
		children.since_look = 0;
		children.has_forked = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
		if (children.has_forked && info.si_pid != 0) {
			collect_zombies();
		}
	}
	uint32_t remaining = 0;
	for (uint32_t i = 0; i < children.count; i++) {
		if (waitpid(children.list[i], NULL, WNOHANG) == 0) {
			children.list[remaining++] = children.list[i];
		}
	}
	children.count = remaining;
}

/* A child of a program runs coroutines. */
static void begin_loop(void)
{
	OUTBOARD_ASSERT(outboard_host.is_child && !outboard_host.events);
	OUTBOARD_RUN_HOOKS(child_loop);
	if (children.events_of_parent && outboard_rs_renew(children.events_of_parent)) {
		outboard_host.events = children.events_of_parent;
	}
}

static void fork_within_limit(INTERNAL_FUNCTION_PARAMETERS)
{
	/* Pools of processes are what many programs are. */
	const uint32_t most = outboard_host.is_program && children.most == MAX_CHILDREN ? CAPACITY : children.most;
	if (running() >= most || children.count == CAPACITY) {
		php_error_docref(NULL, E_WARNING, "At most %u children may run at a time", most);
		RETURN_LONG(-1);
	}
	OUTBOARD_RUN_HOOKS(child_due);
	fork_next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(return_value) == IS_LONG && Z_LVAL_P(return_value) > 0) {
		OUTBOARD_ASSERT(children.count < CAPACITY);
		children.list[children.count++] = (pid_t) Z_LVAL_P(return_value);
	} else if (Z_TYPE_P(return_value) == IS_LONG && Z_LVAL_P(return_value) == 0 && outboard_host.is_child) {
		/* One that a coroutine has forked may return into what only its parent can end. */
		if (outboard_host.is_program && outboard_running == outboard_root) {
			begin_loop();
		}
	}
}

/* In a child that a coroutine has forked: it ends with that coroutine, which waits for all others. */
void outboard_child_take_root(void)
{
	if (outboard_host.is_child && !outboard_host.events) {
		outboard_root = outboard_running;
		outboard_root->record = NULL;
		outboard_root->cancelled = false;
		begin_loop();
	}
}

/* After start-up, in the zygote. */
void outboard_children_startup(void)
{
	fork_next = outboard_wrap("pcntl_fork", fork_within_limit);
	children.is_watching = pthread_atfork(before_fork, after_fork, in_child) == 0;
}
