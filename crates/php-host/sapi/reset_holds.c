/*
 * What a request holds of what others want: connections that it has begun a transaction on, files
 * that it has locked. Called by reset.c, and by reset_transactions.c when one begins.
 */
#include "reset.h"
#include "ext/standard/file.h"
#include <sys/file.h>

/* Most are not kept alive: they would be open for longer than the script wants. */
typedef struct {
	outboard_visit *visit;
	const void *what;
	uint32_t handle;
	bool autocommit; /* was switched */
	bool kept;       /* alive until the request's end */
} hold;

static hold *holds;
static uint32_t hold_count;
static uint32_t hold_room;

static hold *note_hold(const void *what, uint32_t handle)
{
	for (uint32_t i = 0; i < hold_count; i++) {
		if (holds[i].what == what && holds[i].visit == outboard_active_visit) {
			return &holds[i];
		}
	}
	if (hold_count == hold_room) {
		hold_room = hold_room ? hold_room * 2 : 8;
		holds = perealloc(holds, hold_room * sizeof(*holds), 1);
	}
	holds[hold_count] = (hold) {.visit = outboard_active_visit, .what = what, .handle = handle};
	return &holds[hold_count++];
}

void outboard_hold_transaction(zend_object *connection, bool autocommit, bool keep)
{
	/* Calls that end a transaction may look like such that begin one. */
	if (outboard_active_visit && outboard_active_visit->is_letting_go) {
		return;
	}
	hold *one = note_hold(connection, connection->handle);
	outboard_dirt |= OUTBOARD_TRANSACTION;
	one->autocommit |= autocommit;
	if (keep && !one->kept) {
		one->kept = true;
		GC_ADDREF(connection);
	}
}

void outboard_note_lock(zval *file)
{
	if (file && Z_TYPE_P(file) == IS_RESOURCE) {
		outboard_dirt |= OUTBOARD_LOCK;
		note_hold(Z_RES_P(file), (uint32_t) Z_RES_HANDLE_P(file));
	}
}

static bool is_live_object(const hold *one)
{
	return one->handle < EG(objects_store).top
		&& IS_OBJ_VALID(EG(objects_store).object_buckets[one->handle])
		&& EG(objects_store).object_buckets[one->handle] == one->what;
}

static void unlock(zend_resource *file)
{
	php_stream *stream = zend_fetch_resource2(file, NULL, php_file_le_stream(), php_file_le_pstream());
	if (stream) {
		php_stream_lock(stream, LOCK_UN);
	}
}

static void release_hold(const hold *one)
{
	zval *resource = zend_hash_index_find(&EG(regular_list), one->handle);
	if (is_live_object(one)) {
		zend_object *connection = (zend_object *) one->what;
		GC_ADDREF(connection);
		outboard_roll_back(connection, one->autocommit);
		OBJ_RELEASE(connection);
		if (one->kept) {
			OBJ_RELEASE(connection);
		}
	} else if (resource && Z_RES_P(resource) == one->what) {
		unlock(Z_RES_P(resource));
	}
}

/* Those of this request; whether others in the same worker have some. */
bool outboard_release_holds(outboard_visit *visit)
{
	uint32_t i = 0;
	visit->is_letting_go = true;
	while (i < hold_count) {
		if (holds[i].visit == visit) {
			hold one = holds[i];
			holds[i] = holds[--hold_count];
			release_hold(&one);
			/* A connection may have been waited for, and others moved meanwhile. */
			i = 0;
		} else {
			i++;
		}
	}
	return hold_count > 0;
}

/* What the script's boot holds is its own. */
void outboard_forget_holds(void)
{
	hold_count = 0;
}
