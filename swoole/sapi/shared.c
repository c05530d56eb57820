/*
 * Objects whose state is a page of memory that all processes share: Swoole\Atomic, Swoole\Atomic\Long
 * and Swoole\Lock.
 *
 * Invariants: the page is mapped when the object is used first and unmapped with it; a wait for what
 * another process changes suspends its coroutine and not the worker.
 */
#include "swoole/sapi/swoole.h"
#include "waiting/waiting.h"
#include <time.h>

typedef struct {
	void *memory;
	zend_object object;
} holder;

static zend_object_handlers handlers;

static holder *holder_of(zend_object *object)
{
	return (holder *) ((char *) object - offsetof(holder, object));
}

static zend_object *create_object(zend_class_entry *class)
{
	holder *one = zend_object_alloc(sizeof(*one), class);
	one->memory = NULL;
	zend_object_std_init(&one->object, class);
	object_properties_init(&one->object, class);
	one->object.handlers = &handlers;
	return &one->object;
}

static void free_object(zend_object *object)
{
	holder *one = holder_of(object);
	OUTBOARD_ASSERT(object->handlers == &handlers);
	if (one->memory) {
		outboard_swoole_unshare(one->memory, OUTBOARD_SWOOLE_SHARED_BYTES);
	}
	zend_object_std_dtor(object);
}

/* Its OUTBOARD_SWOOLE_SHARED_BYTES, zeroed at first; NULL, with an exception, when there are none. */
void *outboard_swoole_shared_of(zval *this)
{
	holder *one = holder_of(Z_OBJ_P(this));
	if (!one->memory) {
		one->memory = outboard_swoole_share(OUTBOARD_SWOOLE_SHARED_BYTES);
		if (!one->memory) {
			zend_throw_error(NULL, "there is no shared memory left");
		}
	}
	return one->memory;
}

/* Registers a class of such objects. */
zend_class_entry *outboard_swoole_declare_shared(zend_class_entry *class)
{
	zend_class_entry *declared = zend_register_internal_class_ex(class, NULL);
	declared->create_object = create_object;
	declared->ce_flags |= ZEND_ACC_NOT_SERIALIZABLE;
	memcpy(&handlers, &std_object_handlers, sizeof(handlers));
	handlers.offset = offsetof(holder, object);
	handlers.free_obj = free_object;
	handlers.clone_obj = NULL;
	return declared;
}

/* Repeats the step until it succeeds or the time is over, and has other coroutines run in between. */
bool outboard_swoole_try_for(bool (*step)(void *arg), void *arg, double seconds)
{
	const int64_t until_us = outboard_now_us() + (int64_t) (seconds * 1e6);
	long pause_us = 20;
	while (!step(arg)) {
		if (seconds >= 0 && outboard_now_us() >= until_us) {
			return false;
		}
		const struct timespec pause = {0, pause_us * 1000};
		nanosleep(&pause, NULL);
		if (EG(exception)) {
			return false;
		}
		pause_us = pause_us < 2000 ? pause_us * 2 : 2000;
	}
	return true;
}
