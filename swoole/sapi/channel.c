/*
 * Swoole\Coroutine\Channel: values that coroutines of one process hand to each other. A coroutine that
 * is woken by a push or a pop runs at once, before the one that has woken it.
 *
 * Invariant: a waiter is on its coroutine's stack, and in a list while that coroutine waits.
 */
#include "swoole/sapi/coroutines.h"

enum { OK = 0, TIMEOUT = -1, CLOSED = -2, CANCELLED = -3 };

typedef struct waiter {
	coroutine *waits;
	struct waiter *next;
	struct waiter *previous;
} waiter;

typedef struct {
	waiter *first;
	waiter *last;
	uint32_t count;
} waiters;

typedef struct {
	zval *values; /* a ring that grows up to the capacity */
	uint32_t room;
	uint32_t first;
	uint32_t count;
	uint32_t capacity;
	bool is_closed;
	waiters consumers;
	waiters producers;
	zend_object object;
} channel;

/* The declared properties. */
enum { CAPACITY = 0, ERROR_CODE = 1 };

static zend_object_handlers handlers;

static channel *channel_of(zend_object *object)
{
	return (channel *) ((char *) object - offsetof(channel, object));
}

static zend_object *create_object(zend_class_entry *class)
{
	channel *one = zend_object_alloc(sizeof(*one), class);
	memset(one, 0, offsetof(channel, object));
	one->capacity = 1;
	zend_object_std_init(&one->object, class);
	object_properties_init(&one->object, class);
	one->object.handlers = &handlers;
	return &one->object;
}

static zval *value_at(const channel *one, uint32_t index)
{
	OUTBOARD_ASSERT(index < one->count && one->count <= one->room && one->first < one->room);
	const uint32_t at = one->first + index;
	return &one->values[at >= one->room ? at - one->room : at];
}

static void free_object(zend_object *object)
{
	channel *one = channel_of(object);
	for (uint32_t i = 0; i < one->count; i++) {
		zval_ptr_dtor(value_at(one, i));
	}
	if (one->values) {
		efree(one->values);
	}
	zend_object_std_dtor(object);
}

/* For the garbage collector: the values in it, and the properties of a class that extends it. */
static HashTable *reachable(zend_object *object, zval **table, int *count)
{
	const channel *one = channel_of(object);
	zend_get_gc_buffer *buffer = zend_get_gc_buffer_create();
	for (uint32_t i = 0; i < one->count; i++) {
		zend_get_gc_buffer_add_zval(buffer, value_at(one, i));
	}
	for (int i = 0; !object->properties && i < object->ce->default_properties_count; i++) {
		zend_get_gc_buffer_add_zval(buffer, OBJ_PROP_NUM(object, i));
	}
	zend_get_gc_buffer_use(buffer, table, count);
	return object->properties;
}

static void enqueue(channel *one, zval *value)
{
	if (one->count == one->room) {
		const uint32_t room = one->room == 0 ? 1 : one->room * 2;
		zval *values = safe_emalloc(room, sizeof(zval), 0);
		for (uint32_t i = 0; i < one->count; i++) {
			ZVAL_COPY_VALUE(&values[i], value_at(one, i));
		}
		if (one->values) {
			efree(one->values);
		}
		one->values = values;
		one->room = room;
		one->first = 0;
	}
	one->count++;
	ZVAL_COPY(value_at(one, one->count - 1), value);
}

static void dequeue(channel *one, zval *target)
{
	ZVAL_COPY_VALUE(target, value_at(one, 0));
	one->first = one->first + 1 == one->room ? 0 : one->first + 1;
	one->count--;
}

static void leave(waiters *list, waiter *one)
{
	OUTBOARD_ASSERT(list->count > 0 && list->first && list->last);
	*(one->previous ? &one->previous->next : &list->first) = one->next;
	*(one->next ? &one->next->previous : &list->last) = one->previous;
	list->count--;
}

/* Those whose time is over, and that have not run since, are passed over. */
static bool wake_first(waiters *list)
{
	waiter *first;
	while ((first = list->first)) {
		leave(list, first);
		first->next = first;
		if (outboard_swoole_continue(first->waits, OUTBOARD_SWOOLE_RESUMED)) {
			return true;
		}
	}
	return false;
}

static void set_error(channel *one, zend_long code)
{
	zval *property = OBJ_PROP_NUM(&one->object, ERROR_CODE);
	if (EXPECTED(Z_TYPE_P(property) == IS_LONG)) {
		Z_LVAL_P(property) = code;
	} else {
		zend_update_property_long(one->object.ce, &one->object, ZEND_STRL("errCode"), code);
	}
}

/* False when the time is over, or the wait was cancelled. */
static bool wait_in(channel *one, waiters *list, double seconds)
{
	waiter self = {.waits = outboard_running, .previous = list->last};
	if (!outboard_swoole_may_wait()) {
		return false;
	}
	*(list->last ? &list->last->next : &list->first) = &self;
	list->last = &self;
	list->count++;
	const enum outboard_swoole_reason reason =
		outboard_swoole_wait(seconds > 0 ? outboard_swoole_timeout_us(seconds) : -1);
	OUTBOARD_ASSERT(self.next == &self || list->count > 0);
	if (self.next != &self) {
		leave(list, &self);
	}
	if (reason == OUTBOARD_SWOOLE_RESUMED && !EG(exception)) {
		return true;
	}
	set_error(one, reason == OUTBOARD_SWOOLE_OVER ? TIMEOUT : CANCELLED);
	return false;
}

PHP_METHOD(Swoole_Coroutine_Channel, __construct)
{
	zend_long capacity = 1;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(capacity)
	ZEND_PARSE_PARAMETERS_END();
	channel *one = channel_of(Z_OBJ_P(ZEND_THIS));
	one->capacity = capacity < 1 ? 1 : capacity > INT32_MAX ? INT32_MAX : (uint32_t) capacity;
	zend_update_property_long(
		one->object.ce, &one->object, ZEND_STRL("capacity"), (zend_long) one->capacity);
}

PHP_METHOD(Swoole_Coroutine_Channel, push)
{
	zval *value;
	double seconds = -1;
	ZEND_PARSE_PARAMETERS_START(1, 2)
		Z_PARAM_ZVAL(value)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	channel *one = channel_of(Z_OBJ_P(ZEND_THIS));
	while (!one->is_closed && one->count >= one->capacity) {
		if (!wait_in(one, &one->producers, seconds)) {
			RETURN_FALSE;
		}
	}
	if (one->is_closed) {
		set_error(one, CLOSED);
		RETURN_FALSE;
	}
	set_error(one, OK);
	enqueue(one, value);
	wake_first(&one->consumers);
	RETURN_TRUE;
}

PHP_METHOD(Swoole_Coroutine_Channel, pop)
{
	double seconds = -1;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	channel *one = channel_of(Z_OBJ_P(ZEND_THIS));
	while (one->count == 0) {
		if (one->is_closed) {
			set_error(one, CLOSED);
			RETURN_FALSE;
		}
		if (!wait_in(one, &one->consumers, seconds)) {
			RETURN_FALSE;
		}
	}
	set_error(one, OK);
	dequeue(one, return_value);
	wake_first(&one->producers);
}

PHP_METHOD(Swoole_Coroutine_Channel, isEmpty)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(channel_of(Z_OBJ_P(ZEND_THIS))->count == 0);
}

PHP_METHOD(Swoole_Coroutine_Channel, isFull)
{
	ZEND_PARSE_PARAMETERS_NONE();
	const channel *one = channel_of(Z_OBJ_P(ZEND_THIS));
	RETURN_BOOL(one->count >= one->capacity);
}

PHP_METHOD(Swoole_Coroutine_Channel, length)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_LONG(channel_of(Z_OBJ_P(ZEND_THIS))->count);
}

PHP_METHOD(Swoole_Coroutine_Channel, stats)
{
	ZEND_PARSE_PARAMETERS_NONE();
	const channel *one = channel_of(Z_OBJ_P(ZEND_THIS));
	array_init_size(return_value, 3);
	add_assoc_long(return_value, "consumer_num", one->consumers.count);
	add_assoc_long(return_value, "producer_num", one->producers.count);
	add_assoc_long(return_value, "queue_num", one->count);
}

/* Values that are in it can still be popped. */
PHP_METHOD(Swoole_Coroutine_Channel, close)
{
	ZEND_PARSE_PARAMETERS_NONE();
	channel *one = channel_of(Z_OBJ_P(ZEND_THIS));
	if (one->is_closed) {
		RETURN_FALSE;
	}
	one->is_closed = true;
	while (wake_first(&one->producers) || wake_first(&one->consumers)) {
	}
	RETURN_TRUE;
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_construct, 0, 0, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, size, IS_LONG, 0, "1")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_push, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, data, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, timeout, IS_DOUBLE, 0, "-1")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_pop, 0, 0, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, timeout, IS_DOUBLE, 0, "-1")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_bool, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_long, 0, 0, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_array, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

#define METHOD(name, info) PHP_ME(Swoole_Coroutine_Channel, name, info, ZEND_ACC_PUBLIC)

static const zend_function_entry methods[] = {
	METHOD(__construct, arginfo_construct)
	METHOD(push, arginfo_push)
	METHOD(pop, arginfo_pop)
	METHOD(isEmpty, arginfo_bool)
	METHOD(isFull, arginfo_bool)
	METHOD(length, arginfo_long)
	METHOD(stats, arginfo_array)
	METHOD(close, arginfo_bool)
	PHP_FE_END
};

void outboard_swoole_channel_startup(bool has_short_names)
{
	zend_class_entry class;
	INIT_NS_CLASS_ENTRY(class, "Swoole\\Coroutine", "Channel", methods);
	zend_class_entry *declared = zend_register_internal_class_ex(&class, NULL);
	declared->ce_flags |= ZEND_ACC_NOT_SERIALIZABLE;
	declared->create_object = create_object;
	zend_declare_property_long(declared, ZEND_STRL("capacity"), 1, ZEND_ACC_PUBLIC);
	zend_declare_property_long(declared, ZEND_STRL("errCode"), 0, ZEND_ACC_PUBLIC);
	if (has_short_names) {
		zend_register_class_alias("Chan", declared);
		zend_register_class_alias("Co\\Channel", declared);
	}
	zend_register_class_alias("swoole_channel", declared);
	memcpy(&handlers, &std_object_handlers, sizeof(handlers));
	handlers.offset = offsetof(channel, object);
	handlers.free_obj = free_object;
	handlers.get_gc = reachable;
	handlers.clone_obj = NULL;
}
