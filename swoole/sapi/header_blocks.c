/*
 * Outboard\Engine\Swoole\HeaderBlocks: the header compression of a connection of HTTP/2, which Rust has.
 *
 * Used by swoole/runtime/Http2Client.php. Invariant: an object has its tables from its creation to its end, and Rust's
 * memory is not read after the next call.
 */
#include "swoole/sapi/swoole.h"

typedef struct {
	void *blocks;
	zend_object object;
} holder;

static zend_object_handlers handlers;

static holder *holder_of(zend_object *object)
{
	OUTBOARD_ASSERT(object->handlers == &handlers);
	return (holder *) ((char *) object - offsetof(holder, object));
}

static zend_object *create_object(zend_class_entry *class)
{
	holder *one = zend_object_alloc(sizeof(*one), class);
	zend_object_std_init(&one->object, class);
	object_properties_init(&one->object, class);
	one->object.handlers = &handlers;
	one->blocks = outboard_rs_header_blocks_new();
	return &one->object;
}

static void free_object(zend_object *object)
{
	outboard_rs_header_blocks_free(holder_of(object)->blocks);
	zend_object_std_dtor(object);
}

static outboard_str text_of(zval *value)
{
	return (outboard_str) {Z_STRVAL_P(value), Z_STRLEN_P(value)};
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_encode, 0, 1, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, fields, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

/* The block of a list of pairs of strings. */
static PHP_METHOD(HeaderBlocks, encode)
{
	HashTable *fields;
	zval *field;
	outboard_str block;
	size_t count = 0;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_ARRAY_HT(fields)
	ZEND_PARSE_PARAMETERS_END();
	outboard_pair *pairs = safe_emalloc(zend_hash_num_elements(fields), sizeof(*pairs), 0);
	ZEND_HASH_FOREACH_VAL(fields, field) {
		zval *name = Z_TYPE_P(field) == IS_ARRAY ? zend_hash_index_find(Z_ARRVAL_P(field), 0) : NULL;
		zval *value = name ? zend_hash_index_find(Z_ARRVAL_P(field), 1) : NULL;
		if (!value || Z_TYPE_P(name) != IS_STRING || Z_TYPE_P(value) != IS_STRING) {
			efree(pairs);
			zend_argument_value_error(1, "must be a list of pairs of strings");
			RETURN_THROWS();
		}
		pairs[count++] = (outboard_pair) {text_of(name), text_of(value)};
	} ZEND_HASH_FOREACH_END();
	outboard_rs_header_blocks_encode(holder_of(Z_OBJ_P(ZEND_THIS))->blocks, pairs, count, &block);
	efree(pairs);
	RETURN_STRINGL(block.ptr, block.len);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_decode, 0, 1, IS_ARRAY, 1)
	ZEND_ARG_TYPE_INFO(0, block, IS_STRING, 0)
ZEND_END_ARG_INFO()

/* The pairs of a block; null: it is malformed or too long. */
static PHP_METHOD(HeaderBlocks, decode)
{
	zend_string *block;
	const outboard_pair *fields;
	size_t count;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(block)
	ZEND_PARSE_PARAMETERS_END();
	if (!outboard_rs_header_blocks_decode(
			holder_of(Z_OBJ_P(ZEND_THIS))->blocks, ZSTR_VAL(block), ZSTR_LEN(block), &fields, &count)) {
		RETURN_NULL();
	}
	array_init_size(return_value, (uint32_t) count);
	for (size_t i = 0; i < count; i++) {
		zval pair;
		array_init_size(&pair, 2);
		add_next_index_stringl(&pair, fields[i].name.ptr, fields[i].name.len);
		add_next_index_stringl(&pair, fields[i].value.ptr, fields[i].value.len);
		add_next_index_zval(return_value, &pair);
	}
}

static const zend_function_entry methods[] = {
	PHP_ME(HeaderBlocks, encode, arginfo_encode, ZEND_ACC_PUBLIC)
	PHP_ME(HeaderBlocks, decode, arginfo_decode, ZEND_ACC_PUBLIC)
	PHP_FE_END
};

void outboard_swoole_header_blocks_startup(void)
{
	zend_class_entry class;
	INIT_CLASS_ENTRY(class, "Outboard\\Engine\\Swoole\\HeaderBlocks", methods);
	zend_class_entry *declared = zend_register_internal_class_ex(&class, NULL);
	declared->create_object = create_object;
	declared->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NOT_SERIALIZABLE;
	memcpy(&handlers, &std_object_handlers, sizeof(handlers));
	handlers.offset = offsetof(holder, object);
	handlers.free_obj = free_object;
	handlers.clone_obj = NULL;
}
