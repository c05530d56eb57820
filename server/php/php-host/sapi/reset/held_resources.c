/*
 * Resources of a request that block others: connections with an open transaction, locked files.
 * Called by reset.c, and by reset/transactions.c when a transaction begins.
 */
#include "reset/reset.h"
#include "ext/standard/file.h"
#include <sys/file.h>

/* Most have no reference here, which would keep them open for longer than the script does. */
typedef struct {
	outboard_request_state *state;
	const void *address;
	uint32_t handle;
	bool autocommit; /* was changed */
	bool is_retained;       /* has a reference until the request's end */
} held_resource;

static held_resource *held;
static uint32_t held_count;
static uint32_t held_capacity;

static held_resource *track_resource(const void *address, uint32_t handle)
{
	OUTBOARD_ASSERT(held_count <= held_capacity && address);
	for (uint32_t i = 0; i < held_count; i++) {
		if (held[i].address == address && held[i].state == outboard_now.state) {
			return &held[i];
		}
	}
	if (held_count == held_capacity) {
		held_capacity = held_capacity ? held_capacity * 2 : 8;
		held = perealloc(held, held_capacity * sizeof(*held), 1);
	}
	held[held_count] = (held_resource) {.state = outboard_now.state, .address = address, .handle = handle};
	return &held[held_count++];
}

void outboard_hold_transaction(zend_object *connection, bool autocommit, bool retain)
{
	/* A call that ends a transaction may look like one that begins it. */
	if (outboard_now.state && outboard_now.state->is_releasing) {
		return;
	}
	held_resource *one = track_resource(connection, connection->handle);
	outboard_changes |= OUTBOARD_TRANSACTION;
	one->autocommit |= autocommit;
	if (retain && !one->is_retained) {
		one->is_retained = true;
		GC_ADDREF(connection);
	}
}

void outboard_track_lock(zval *file)
{
	if (file && Z_TYPE_P(file) == IS_RESOURCE) {
		outboard_changes |= OUTBOARD_LOCK;
		track_resource(Z_RES_P(file), (uint32_t) Z_RES_HANDLE_P(file));
	}
}

static bool is_live_object(const held_resource *one)
{
	return one->handle < EG(objects_store).top
		&& IS_OBJ_VALID(EG(objects_store).object_buckets[one->handle])
		&& EG(objects_store).object_buckets[one->handle] == one->address;
}

static void unlock(zend_resource *file)
{
	php_stream *stream = zend_fetch_resource2(file, NULL, php_file_le_stream(), php_file_le_pstream());
	if (stream) {
		php_stream_lock(stream, LOCK_UN);
	}
}

static void release_resource(const held_resource *one)
{
	zval *resource = zend_hash_index_find(&EG(regular_list), one->handle);
	if (is_live_object(one)) {
		zend_object *connection = (zend_object *) one->address;
		GC_ADDREF(connection);
		outboard_roll_back(connection, one->autocommit);
		OBJ_RELEASE(connection);
		if (one->is_retained) {
			OBJ_RELEASE(connection);
		}
	} else if (resource && Z_RES_P(resource) == one->address) {
		unlock(Z_RES_P(resource));
	}
}

/* Releases those of this request; returns whether other requests have any. */
bool outboard_release_held(outboard_request_state *state)
{
	uint32_t i = 0;
	state->is_releasing = true;
	while (i < held_count) {
		if (held[i].state == state) {
			held_resource one = held[i];
			held[i] = held[--held_count];
			release_resource(&one);
			/* Releasing may have waited, and other requests have changed the list. */
			i = 0;
		} else {
			i++;
		}
	}
	return held_count > 0;
}

/* What the boot holds belongs to the script. */
void outboard_clear_held(void)
{
	held_count = 0;
}
