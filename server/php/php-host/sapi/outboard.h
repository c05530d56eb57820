/*
 * The boundary between the C shim and Rust. `outboard_` is C called from Rust, `outboard_rs_` is Rust called from C.
 * Prototypes and structures are in boundary.h, which build.rs writes from the Rust sources (src/engine/, src/callbacks/);
 * the numbers of both sides are here.
 *
 * `exchange` is the pointer that outboard_request_run received, or that came with an event; `events` the one that
 * outboard_worker_script_run received. Invariants: a longjmp (zend_bailout) never crosses a Rust frame: code that can
 * raise one runs inside zend_try here, and outboard_rs_ functions never call into Zend. No panic enters C.
 */
#ifndef OUTBOARD_H
#define OUTBOARD_H

#include "boundary.h"

/* Asserted to be equal to ring's Outcome on the Rust side. */
enum outboard_outcome {
	OUTBOARD_FINISHED = 0,
	OUTBOARD_FAILED = 1,
	OUTBOARD_REFUSED = 2,
};

/* The next event of a worker script; Rust's Event. */
enum outboard_event_kind {
	OUTBOARD_NOTHING = 0,
	OUTBOARD_REQUEST = 1, /* handle it */
	OUTBOARD_WAKE = 2,    /* the wait of `id` is over */
	OUTBOARD_TIMER = 3,   /* `id` is due */
	OUTBOARD_CANCEL = 4,  /* the deadline of the request with `exchange` has passed */
	OUTBOARD_STOP = 5,    /* the worker is to exit */
	OUTBOARD_STREAM = 6,  /* something has come on a raw connection */
};

/* control.rs: Xdebug. */
enum outboard_xdebug {
	OUTBOARD_XDEBUG_NEVER = 0,
	OUTBOARD_XDEBUG_AS_CONFIGURED = 1,
	OUTBOARD_XDEBUG_ALWAYS = 2,
};

/* Paths of calls that failed with EACCES (denied_files.c). */
typedef enum {
	OUTBOARD_DENIED_READ = 1,
	OUTBOARD_DENIED_WRITE = 2,
	OUTBOARD_DENIED_CHANGE = 3,
} outboard_denied_use;

/* What the start of a script reads (boot_files.c). */
typedef enum {
	OUTBOARD_BOOT_READS = 1,
	OUTBOARD_BOOT_WRITES = 2,
	OUTBOARD_BOOT_LISTS = 3,
	OUTBOARD_BOOT_MISSES = 4,
	OUTBOARD_BOOT_INCLUDES = 5,
	OUTBOARD_BOOT_FOLLOWS = 6,
} outboard_boot_use;

#endif
