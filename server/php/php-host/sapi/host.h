/*
 * What this process is, and what it does now: the facts that all subjects share, so that a fork, a rewind and a reader
 * find them in one place. All of it is ordinary memory, which a rewind puts back.
 *
 * Written by the subject that each member names; read by all. Invariant: nothing in here points to another subject's
 * functions (see hooks.h).
 */
#ifndef OUTBOARD_HOST_H
#define OUTBOARD_HOST_H

#include "compat.h"
#include "outboard.h"

struct outboard_request_state;

/* What this process is. */
typedef struct {
	/* worker/worker_script.c: the worker's queue of events; NULL in classic mode, and in a child without a loop. */
	void *events;
	uint32_t concurrency;
	bool has_frankenphp; /* the script sees functions under FrankenPHP's names */
	/* The script is a program that forks processes, waits and prints as it likes, with an end of its own, instead of
	 * code that is called for requests. */
	bool is_program;
	bool is_fork; /* handles one request and exits, or is rewound */
	const zend_file_handle *script; /* while it runs */
	bool exit_ends_script; /* exit() in a request ends the script as well */
	bool has_exited; /* state/request_state.c: so it has */
	/* snapshot/boot_request.c: the script was written for classic mode, and takes a snapshot. */
	bool boots_classic;
	/* snapshot/boot_request_reads.c: what the script reads of the request is recorded. */
	bool records_reads;
	/* fork/children.c: a script has forked this process. */
	bool is_child;
	/* rewind/rewind.c: this process, or its forks, are rewound after each request. */
	bool is_rewinding;
	/* state/protected_call.c: after a bailout the engine can only finish what has begun. */
	bool is_broken;
	/* process/changes.c: a request has changed what cannot be put back; so has a debugger, and the end of the script's objects. */
	bool is_tainted;
	/* connections/connections.c: how many descriptors of the boot are severed, and were not used since in this request. */
	uint32_t severed;
	/* debugger/debugger.c: the connection to a debugger; -1: there is none. */
	int debugger;
} outboard_host_facts;

extern outboard_host_facts outboard_host;

/* What it does now; switched with the running coroutine. */
typedef struct {
	const outboard_request *request; /* NULL between requests */
	outboard_result *result;
	struct outboard_request_state *state; /* the one that the engine has, in worker mode */
	uint32_t span; /* that of the running code; 0: none */
} outboard_work;

extern outboard_work outboard_now;

#endif
