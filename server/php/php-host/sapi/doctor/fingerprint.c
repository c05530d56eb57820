/*
 * A 64-bit fingerprint of a value, down to a certain depth: if requests find different fingerprints
 * in one place, they share state. Called by doctor/report.c.
 */
#include "doctor/doctor.h"
#include "zend_closures.h"
#include "zend_enum.h"
#include "zend_generators.h"
#include "zend_fibers.h"

/* Limits of a fingerprint. */
#define FINGERPRINT_DEPTH 12
#define MOST_VALUES 5000

/* Values of the fingerprint in progress. */
static HashTable seen;
static uint32_t looked_at;

typedef uint64_t fingerprint;

/* FNV-1a. */
static fingerprint mix(fingerprint so_far, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		so_far = (so_far ^ ((const unsigned char *) bytes)[i]) * 0x100000001b3;
	}
	return so_far;
}

#define EMPTY_FINGERPRINT 0xcbf29ce484222325

static fingerprint mix_string(fingerprint so_far, const zend_string *text)
{
	return mix(mix(so_far, ZSTR_VAL(text), ZSTR_LEN(text)), "", 1);
}

static void each_of_table(HashTable *table, bool are_properties, outboard_element_callback callback, void *arg)
{
	zend_ulong index;
	zend_string *key;
	zval *value;
	ZEND_HASH_FOREACH_KEY_VAL_IND(table, index, key, value) {
		callback(key, index, are_properties, value, arg);
	} ZEND_HASH_FOREACH_END();
}

static void each_of_closure(zval *object, outboard_element_callback callback, void *arg)
{
	const zend_function *function = zend_get_closure_method_def(Z_OBJ_P(object));
	HashTable *variables = function->type == ZEND_USER_FUNCTION
		? ZEND_MAP_PTR_GET(function->op_array.static_variables_ptr) : NULL;
	if (variables) {
		each_of_table(variables, true, callback, arg);
	}
}

static void each_of_object(zval *value, outboard_element_callback callback, void *arg)
{
	zend_object *object = Z_OBJ_P(value);
	if (object->ce == zend_ce_closure) {
		each_of_closure(value, callback, arg);
	} else if (object->properties) {
		each_of_table(object->properties, true, callback, arg);
	} else {
		for (int i = 0; i < object->ce->default_properties_count; i++) {
			zend_property_info *property = object->ce->properties_info_table[i];
			if (property && !Z_ISUNDEF(object->properties_table[i])) {
				callback(property->name, 0, true, &object->properties_table[i], arg);
			}
		}
	}
	/* Objects of the engine hold values besides properties, which get_gc returns. */
	if (object->handlers->get_gc != zend_std_get_gc && object->ce != zend_ce_closure
		&& object->ce != zend_ce_generator && object->ce != zend_ce_fiber) {
		zval *held;
		int count;
		object->handlers->get_gc(object, &held, &count);
		for (int i = 0; i < count; i++) {
			callback(NULL, (zend_ulong) i, false, &held[i], arg);
		}
	}
}

void outboard_each_element(zval *value, outboard_element_callback callback, void *arg)
{
	if (Z_TYPE_P(value) == IS_ARRAY) {
		each_of_table(Z_ARR_P(value), false, callback, arg);
	} else if (Z_TYPE_P(value) == IS_OBJECT && !(Z_OBJCE_P(value)->ce_flags & ZEND_ACC_ENUM)) {
		each_of_object(value, callback, arg);
	}
}

typedef struct {
	fingerprint so_far;
	int depth;
} taking;

static fingerprint fingerprint_of(zval *value, int depth);

static void take_child(zend_string *key, zend_ulong index, bool is_property, zval *value, void *arg)
{
	taking *one = arg;
	(void) is_property;
	if (Z_ISUNDEF_P(value)) {
		return;
	}
	one->so_far = key ? mix_string(one->so_far, key) : mix(one->so_far, &index, sizeof(index));
	fingerprint child = fingerprint_of(value, one->depth + 1);
	one->so_far = mix(one->so_far, &child, sizeof(child));
}

static bool is_seen(const zend_object *object)
{
	return !zend_hash_index_add_empty_element(&seen, object->handle);
}

static fingerprint fingerprint_of(zval *value, int depth)
{
	taking one = {EMPTY_FINGERPRINT, depth};
	ZVAL_DEREF(value);
	unsigned char type = Z_TYPE_P(value);
	one.so_far = mix(one.so_far, &type, 1);
	if (++looked_at > MOST_VALUES) {
		return one.so_far;
	}
	switch (type) {
	case IS_LONG:
	case IS_DOUBLE:
		return mix(one.so_far, &Z_LVAL_P(value), sizeof(zend_long));
	case IS_STRING:
		return mix_string(one.so_far, Z_STR_P(value));
	case IS_RESOURCE:
		return mix(one.so_far, &Z_RES_P(value)->handle, sizeof(Z_RES_P(value)->handle));
	case IS_OBJECT:
		one.so_far = mix_string(one.so_far, Z_OBJCE_P(value)->name);
		if (Z_OBJCE_P(value)->ce_flags & ZEND_ACC_ENUM) {
			return mix_string(one.so_far, Z_STR_P(zend_enum_fetch_case_name(Z_OBJ_P(value))));
		}
		if (is_seen(Z_OBJ_P(value))) {
			return one.so_far;
		}
		break;
	case IS_ARRAY:
		break;
	default:
		return one.so_far;
	}
	if (depth < FINGERPRINT_DEPTH) {
		outboard_each_element(value, take_child, &one);
	}
	return one.so_far;
}

uint64_t outboard_fingerprint(zval *value)
{
	fingerprint whole;
	looked_at = 0;
	zend_hash_init(&seen, 64, NULL, NULL, false);
	whole = fingerprint_of(value, 0);
	zend_hash_destroy(&seen);
	return whole;
}
