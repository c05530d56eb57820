/*
 * Numbers of the boundary to Rust for raw connections: src/callbacks/streams.rs is the other half.
 */
#ifndef OUTBOARD_STREAM_H
#define OUTBOARD_STREAM_H

#include "outboard.h"

/* Numbers of ring's Verb. */
enum outboard_stream_verb {
	OUTBOARD_STREAM_JOIN = 1,
	OUTBOARD_STREAM_ACKNOWLEDGE = 3,
	OUTBOARD_STREAM_LEAVE = 12,
};

#endif
