/*
 * The boundary to Rust for raw connections: src/callbacks/streams.rs is the other half.
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

/* What a worker does with a connection. */
typedef struct {
	int verb;
	uint64_t item;
	uint64_t session;
	uint64_t value;
	const char *bytes;
	size_t len;
} outboard_stream_call;

bool outboard_rs_stream_take(void *events, outboard_stream_event *event);
bool outboard_rs_stream_call(void *events, const outboard_stream_call *call, bool publish);
bool outboard_rs_stream_query(void *events, const outboard_stream_call *call, outboard_str *result);

#endif
