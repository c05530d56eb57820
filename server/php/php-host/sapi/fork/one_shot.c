/*
 * The end of a fork that handles one request: the steps of php_request_shutdown in main.c, in its
 * order, except for freeing memory. Called at the end of the script (fork_ended in hooks.h); with
 * Outboard\snapshot() the response is completed here.
 *
 * Destructors of the boot's objects run in each fork, as if the script had booted for this request
 * alone. All forks share what the boot has opened, so no fork closes it. Invariant: no bailout
 * passes these functions.
 */
#include "fork/fork.h"
#include "zend_closures.h"
#include "zend_observer.h"

/* The first object and resource that the boot has not created. */
static uint32_t first_object;
static zend_long first_resource;

/* Those of the boot's objects that own more than properties, by handle. */
static uint32_t *with_storage;
static uint32_t with_storage_count;
static uint32_t prepared_top;

/* Whether it owns more than properties: a connection, a file, an archive. */
static bool has_storage(const zend_object *object)
{
	return object->handlers->free_obj != zend_object_std_dtor && object->ce != zend_ce_closure;
}

static bool has_destructor(const zend_object *object)
{
	return object->handlers->dtor_obj != zend_objects_destroy_object || object->ce->destructor;
}

/*
 * Before the snapshot: does for all requests what the end of each one would do with the boot's objects.
 * zend_objects_store_call_destructors marks every object as destructed, which would write to most pages of a
 * framework; the mark of one without a destructor has no effect.
 */
void outboard_one_shot_prepare(void)
{
	if (!outboard_rs_is_forking(outboard_host.events)) {
		return;
	}
	prepared_top = EG(objects_store).top;
	with_storage = malloc(sizeof(*with_storage) * (prepared_top + 1));
	with_storage_count = 0;
	for (uint32_t i = 1; i < prepared_top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		if (!IS_OBJ_VALID(object)) {
			continue;
		}
		if (!has_destructor(object)) {
			GC_ADD_FLAGS(object, IS_OBJ_DESTRUCTOR_CALLED);
		}
		if (with_storage && has_storage(object)) {
			OUTBOARD_ASSERT(with_storage_count < prepared_top);
			with_storage[with_storage_count++] = i;
		}
	}
}

/* In the fork: new objects do not reuse the handles of the boot's. */
void outboard_one_shot_begin(void)
{
	OUTBOARD_ASSERT(outboard_host.is_fork || outboard_host.is_child);
	first_object = EG(objects_store).top;
	first_resource = EG(regular_list).nNextFreeElement;
	EG(objects_store).free_list_head = -1;
}

/* Adds a reference to everything of the boot, so that nothing closes it. */
void outboard_one_shot_pin_resources(void)
{
	zend_resource *resource;
	ZEND_HASH_FOREACH_PTR(&EG(regular_list), resource) {
		if (resource->handle < first_resource) {
			GC_ADDREF(resource);
		}
	} ZEND_HASH_FOREACH_END();
	bool is_prepared = with_storage && prepared_top == first_object;
	uint32_t count = is_prepared ? with_storage_count : first_object;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t handle = is_prepared ? with_storage[i] : i;
		zend_object *object = handle ? EG(objects_store).object_buckets[handle] : NULL;
		if (object && IS_OBJ_VALID(object) && has_storage(object)) {
			GC_ADDREF(object);
		}
	}
}

/*
 * Adds a reference to the boot's objects in global variables, so that zend_call_destructors does not free
 * them with all that they refer to: their memory is dropped with the request. Their destructors run with
 * those of all other objects, in the order in which these were created.
 */
static void pin_globals(void)
{
	zval *value;
	ZEND_HASH_FOREACH_VAL(&EG(symbol_table), value) {
		ZVAL_DEINDIRECT(value);
		if (Z_TYPE_P(value) == IS_OBJECT && Z_OBJ_HANDLE_P(value) < first_object) {
			GC_ADDREF(Z_OBJ_P(value));
		}
	} ZEND_HASH_FOREACH_END();
}

/* As zend_close_rsrc_list in zend_list.c: files, pipes, processes, in reverse order. */
static void close_resources(void)
{
	OUTBOARD_ASSERT(first_resource >= 0 && first_resource <= EG(regular_list).nNextFreeElement);
	for (zend_long i = EG(regular_list).nNextFreeElement - 1; i >= first_resource; i--) {
		zval *resource = zend_hash_index_find(&EG(regular_list), (zend_ulong) i);
		if (resource && Z_RES_P(resource)->type >= 0) {
			zend_list_close(Z_RES_P(resource));
		}
	}
}

/* As zend_objects_store_free_object_storage: writes archives, closes connections. */
static void free_storage(void)
{
	OUTBOARD_ASSERT(first_object <= EG(objects_store).top && !EG(active));
	for (uint32_t i = EG(objects_store).top; i-- > first_object;) {
		zend_object *object = EG(objects_store).object_buckets[i];
		if (IS_OBJ_VALID(object) && !(OBJ_FLAGS(object) & IS_OBJ_FREE_CALLED)
			&& has_storage(object)) {
			GC_ADD_FLAGS(object, IS_OBJ_FREE_CALLED);
			GC_ADDREF(object);
			object->handlers->free_obj(object);
		}
	}
}

static void deactivate_extension(void *arg)
{
	const zend_extension *extension = arg;
	if (extension->deactivate) {
		extension->deactivate();
	}
}

static void deactivate_extensions(void)
{
	zend_llist_apply(&zend_extensions, deactivate_extension);
	zend_post_deactivate_modules();
}

static void run_step(void (*step)(void))
{
	zend_try {
		step();
	} zend_end_try();
}

/*
 * Each step has its own catch, as in php_request_shutdown: after a fatal error or an exit the next
 * one follows.
 */
void outboard_one_shot_end(void)
{
	EG(flags) |= EG_FLAGS_IN_SHUTDOWN;
	EG(current_execute_data) = NULL;
	/* Shutdown functions run even after the request has exhausted its memory. */
	OUTBOARD_FORGET_OOM();
	zend_llist_clean(&PG(tick_functions));
	if (ZEND_OBSERVER_ENABLED) {
		run_step(zend_observer_fcall_end_all);
	}
	php_call_shutdown_functions();
	outboard_one_shot_pin_resources();
	pin_globals();
	zend_call_destructors();
	run_step(php_output_end_all);
	outboard_time_limit_end();
	run_step(zend_unset_timeout);
	zend_deactivate_modules();
	run_step(php_output_deactivate);
	php_free_shutdown_functions();
	EG(flags) |= EG_FLAGS_IN_RESOURCE_SHUTDOWN;
	run_step(close_resources);
	/* No PHP code runs from here on (zend_shutdown_executor_values). */
	EG(active) = 0;
	run_step(free_storage);
	run_step(deactivate_extensions);
	/* Removes uploaded files that the script has not moved. */
	run_step(sapi_deactivate);
}
