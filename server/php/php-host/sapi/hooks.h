/*
 * What the subjects of the shim (connections, snapshots, resets, programs, …) do at the stations of a process and of a
 * request. The code that reaches a station (request/, state/, coroutine/, waiting/, worker/) does not know who waits there.
 *
 * The lists are constant and stand in one place (engine/subjects.c), each in the order in which it runs, with the reasons.
 * A subject that has nothing to do at a station is not in its list. Invariant: the lists are set before the engine starts.
 */
#ifndef OUTBOARD_HOOKS_H
#define OUTBOARD_HOOKS_H

#include "host.h"

/* How a worker script is started. */
typedef struct {
	const char *path;
	const char *state_report; /* file for the state doctor's report, or NULL */
	const outboard_request *boot_request; /* what a script of classic mode sees while it boots, else NULL */
} outboard_start;

typedef void (*outboard_hook)(void);

/* All lists end with NULL. */
typedef struct {
	/* The process. */
	const outboard_hook *engine_module; /* while the engine's modules start: functions, classes, handlers */
	const outboard_hook *engine_started; /* in the zygote, before all forks */
	void (*const *fault)(const char *address); /* in the signal handler of SIGSEGV */

	/* A worker script. */
	void (*const *script_prepare)(const outboard_start *start); /* the engine runs, PHP's request does not */
	void (*const *script_start)(const outboard_start *start); /* PHP's request has started, no code of the script has run */
	const outboard_hook *runtime_loaded; /* the PHP part of the API is there; the script's first line is next */
	const outboard_hook *script_ended; /* it has returned from its last line */
	const outboard_hook *boot_failed; /* the script has ended without a call for a request */
	const outboard_hook *script_over; /* after these two: a child of the script ends here */
	const outboard_hook *boot_ended; /* the first call for a request: what is here now, all requests have */
	const outboard_hook *forked; /* in a fork that handles one request, or is rewound */
	const outboard_hook *fork_ended; /* the code of such a fork's request is over, what it has opened is not */
	const outboard_hook *fork_done; /* its response is complete; a rewind does not return */

	const outboard_hook *rewind_due; /* the process is about to be put back: what outlives the request is handed over */

	/* A request. */
	const outboard_hook *classic_started; /* in classic mode, before the script */
	bool (*const *answer)(const outboard_request *request); /* instead of the script; the first true ends the list */
	const outboard_hook *request_due; /* in worker mode, before the request's state */
	void (*const *request_began)(const outboard_request *request); /* its state is active, nothing was read */
	const outboard_hook *request_read; /* the engine has read it, its session has not started */
	bool (*const *handler_due)(struct outboard_request_state *state); /* in a fork; false: the handler is not called */
	const outboard_hook *request_ended; /* in all modes: no code of the request runs any more */
	void (*const *state_ended)(struct outboard_request_state *state); /* in worker mode, after that */
	/* A call of a variable of the request by another way than a superglobal; NULL: of all. */
	void (*const *variable_read)(const char *name);

	/* Requests that have no state of their own (OUTBOARD_SERVE_RAW), and what belongs to none. */
	void (*const *raw_request)(zval *handler, const outboard_event *event);
	void (*const *raw_cancel)(void *exchange);
	const outboard_hook *stream_event;

	/* Children that a script forks. */
	const outboard_hook *child_due; /* in the parent, just before */
	const outboard_hook *child_loop; /* in the child, which gets an event loop: what its parent has begun is forgotten */
	const outboard_hook *code_ended; /* PHP code has returned to the host; a child may end here */

	/* Descriptors. */
	bool (*const *connects)(int fd, const void *caller); /* in connect(2); true: it is connected already */
	void (*const *severed_used)(int fd); /* only while outboard_host.severed is not 0 */
} outboard_hooks;

/* hooks.c */
extern const outboard_hooks *outboard_stations;

#define OUTBOARD_RUN_HOOKS(station, ...) \
	do { \
		__auto_type hook_ = outboard_stations->station; \
		for (; *hook_; hook_++) { \
			(*hook_)(__VA_ARGS__); \
		} \
	} while (0)

/* Whether one of them has returned true; those behind it are not called. */
#define OUTBOARD_ANY_HOOK(station, ...) __extension__ ({ \
	bool done_ = false; \
	for (__auto_type hook_ = outboard_stations->station; *hook_ && !done_; hook_++) { \
		done_ = (*hook_)(__VA_ARGS__); \
	} \
	done_; \
})

#endif
