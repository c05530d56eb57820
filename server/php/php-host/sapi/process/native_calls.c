/*
 * Whether a request has called native code through FFI, which may change the process by system calls of its own:
 * a rewind then compares everything (rewind/attributes.rs).
 *
 * Started with the engine; asked by the rewind. FFI has no hook, so the handlers of its objects are replaced:
 * every call of a function passes get_method, and every call of a pointer get_closure. Invariant: the variable is
 * put back by the rewind with all other memory.
 */
#include "process/process.h"

static bool is_called;
static bool is_allowed;

static zend_function *(*next_method)(zend_object **object, zend_string *name, const zval *key);
static zend_result (*next_closure)(
	zend_object *object, zend_class_entry **scope, zend_function **function, zend_object **self, bool check_only);

bool outboard_native_is_possible(void)
{
	return is_allowed;
}

bool outboard_native_was_called(void)
{
	return is_called;
}

static zend_function *get_method(zend_object **object, zend_string *name, const zval *key)
{
	is_called = true;
	return next_method(object, name, key);
}

static zend_result get_closure(
	zend_object *object, zend_class_entry **scope, zend_function **function, zend_object **self, bool check_only)
{
	is_called = true;
	return next_closure(object, scope, function, self, check_only);
}

/* The handlers are FFI's own variables; an object without a request refers to them. */
static zend_object_handlers *handlers_of(const char *class)
{
	zend_class_entry *entry = zend_hash_str_find_ptr(CG(class_table), class, strlen(class));
	if (!entry || !entry->create_object) {
		return NULL;
	}
	const zend_objects_store before = EG(objects_store);
	zend_object *object = entry->create_object(entry);
	zend_object_handlers *handlers = (zend_object_handlers *) object->handlers;
	zend_object_release(object);
	/* The script's next object has the number that it has in other modes. */
	EG(objects_store).top = before.top;
	EG(objects_store).free_list_head = before.free_list_head;
	return handlers;
}

static bool is_configured(void)
{
	const char *enable = zend_ini_string("ffi.enable", sizeof("ffi.enable") - 1, 0);
	const char *preload = zend_ini_string("opcache.preload", sizeof("opcache.preload") - 1, 0);
	if (!enable || !*enable || strcmp(enable, "0") == 0) {
		return false;
	}
	return strcasecmp(enable, "preload") != 0 || (preload && *preload);
}

/* At the mark, in a request: objects can be created. */
void outboard_native_watch(void)
{
	zend_object_handlers *functions = handlers_of("ffi");
	zend_object_handlers *data = handlers_of("ffi\\cdata");
	if (!functions || !data || !is_configured()) {
		return;
	}
	/* Twice, the next handler would be this one. */
	OUTBOARD_ASSERT(!is_allowed && functions->get_method != get_method);
	is_allowed = true;
	next_method = functions->get_method;
	functions->get_method = get_method;
	next_closure = data->get_closure;
	data->get_closure = get_closure;
}
