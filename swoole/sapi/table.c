/*
 * Swoole\Table: the class; rows.c has its rows.
 *
 * Invariant: what may call PHP code happens before or after a row is locked, and never in between.
 */
#include "swoole/sapi/rows.h"
#include "zend_interfaces.h"

typedef struct {
	outboard_rows rows;
	outboard_row *copy;     /* of the row that is being read */
	outboard_row *iterated; /* of the iteration's */
	uint32_t position;      /* of the iteration */
	bool is_copied;         /* what the position refers to */
	double proportion;
	zend_object object;
} table;

static zend_class_entry *table_class;
static zend_object_handlers handlers;

static table *table_of(zend_object *object)
{
	return (table *) ((char *) object - offsetof(table, object));
}

static zend_object *create_object(zend_class_entry *class)
{
	table *one = zend_object_alloc(sizeof(*one), class);
	memset(one, 0, offsetof(table, object));
	zend_object_std_init(&one->object, class);
	object_properties_init(&one->object, class);
	one->object.handlers = &handlers;
	return &one->object;
}

static void destroy(table *one)
{
	OUTBOARD_ASSERT(one->rows.memory && one->copy && one->iterated);
	outboard_rows_unmap(&one->rows);
	pefree(one->copy, 1);
	pefree(one->iterated, 1);
}

static void free_object(zend_object *object)
{
	table *one = table_of(object);
	for (uint32_t i = 0; i < one->rows.column_count; i++) {
		zend_string_release(one->rows.columns[i].name);
	}
	if (one->rows.memory) {
		destroy(one);
	}
	zend_object_std_dtor(object);
}

/* NULL, with an exception, before create(). */
static table *created(zval *this)
{
	table *one = table_of(Z_OBJ_P(this));
	if (!one->rows.memory) {
		zend_throw_error(NULL, "the table is not created or has been destroyed");
		return NULL;
	}
	return one;
}

static outboard_rows *rows_of(zval *this)
{
	table *one = created(this);
	return one ? &one->rows : NULL;
}

PHP_METHOD(Swoole_Table, __construct)
{
	zend_long size;
	double proportion = 0.2;
	ZEND_PARSE_PARAMETERS_START(1, 2)
		Z_PARAM_LONG(size)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE(proportion)
	ZEND_PARSE_PARAMETERS_END();
	table *one = table_of(Z_OBJ_P(ZEND_THIS));
	if (size < 1 || size > 1 << 28) {
		zend_argument_value_error(1, "must be between 1 and 268,435,456");
		return;
	}
	outboard_rows_set_size(&one->rows, (uint32_t) size);
	one->proportion = proportion > 1 ? 1 : proportion < 0.2 ? 0.2 : proportion;
}

PHP_METHOD(Swoole_Table, column)
{
	zend_string *name;
	zend_long type;
	zend_long size = 0;
	ZEND_PARSE_PARAMETERS_START(2, 3)
		Z_PARAM_STR(name)
		Z_PARAM_LONG(type)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(size)
	ZEND_PARSE_PARAMETERS_END();
	table *one = table_of(Z_OBJ_P(ZEND_THIS));
	const bool is_valid = ZSTR_LEN(name) > 0 && type >= COLUMN_INT && type <= COLUMN_STRING
		&& (type != COLUMN_STRING || (size >= 1 && size <= 1 << 24));
	if (!is_valid || !outboard_rows_add_column(
			&one->rows, name, (enum outboard_column_type) type, (uint32_t) size)) {
		zend_error(E_WARNING, "Swoole\\Table::column(): the column \"%s\" cannot be added",
			ZSTR_VAL(name));
		RETURN_FALSE;
	}
	RETURN_TRUE;
}

PHP_METHOD(Swoole_Table, create)
{
	ZEND_PARSE_PARAMETERS_NONE();
	table *one = table_of(Z_OBJ_P(ZEND_THIS));
	if (one->rows.memory || one->rows.column_count == 0) {
		RETURN_FALSE;
	}
	if (!outboard_rows_create(&one->rows, one->proportion)) {
		zend_error(E_WARNING, "Swoole\\Table::create(): there is no memory for %zu bytes",
			one->rows.memory_bytes);
		RETURN_FALSE;
	}
	/* As the table itself, they are not part of what memory_limit counts. */
	one->copy = pemalloc(one->rows.copy_bytes, 1);
	one->iterated = pemalloc(one->rows.copy_bytes, 1);
	zend_update_property_long(table_class, &one->object, ZEND_STRL("size"), one->rows.size);
	zend_update_property_long(table_class, &one->object, ZEND_STRL("memorySize"),
		(zend_long) one->rows.memory_bytes);
	RETURN_TRUE;
}

PHP_METHOD(Swoole_Table, destroy)
{
	ZEND_PARSE_PARAMETERS_NONE();
	table *one = created(ZEND_THIS);
	if (one) {
		destroy(one);
		RETURN_TRUE;
	}
}

static const outboard_column *column_of(const outboard_rows *rows, const zend_string *name)
{
	for (uint32_t i = 0; i < rows->column_count; i++) {
		if (zend_string_equals(rows->columns[i].name, name)) {
			return &rows->columns[i];
		}
	}
	return NULL;
}

/* With the types of the columns; undefined where nothing is given. What may call PHP happens here. */
static bool convert(const outboard_rows *rows, HashTable *given, zval *values)
{
	bool fits = true;
	for (uint32_t i = 0; i < rows->column_count; i++) {
		const outboard_column *of = &rows->columns[i];
		zval *value = zend_symtable_find(given, of->name);
		ZVAL_UNDEF(&values[i]);
		if (!value) {
			continue;
		}
		if (of->type == COLUMN_INT) {
			ZVAL_LONG(&values[i], zval_get_long(value));
		} else if (of->type == COLUMN_FLOAT) {
			ZVAL_DOUBLE(&values[i], zval_get_double(value));
		} else {
			ZVAL_STR(&values[i], zval_get_string(value));
			if (Z_STRLEN(values[i]) > of->size) {
				zend_error(E_WARNING, "Swoole\\Table::set(): the value of \"%s\" has %zu bytes, "
					"and there is room for %u: it is cut off", ZSTR_VAL(of->name),
					Z_STRLEN(values[i]), of->size);
			}
		}
		fits = fits && !EG(exception);
	}
	return fits;
}

PHP_METHOD(Swoole_Table, set)
{
	zend_string *key;
	HashTable *given;
	zval values[OUTBOARD_COLUMNS_MAX];
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_STR(key)
		Z_PARAM_ARRAY_HT(given)
	ZEND_PARSE_PARAMETERS_END();
	outboard_rows *rows = rows_of(ZEND_THIS);
	if (!rows) {
		return;
	}
	/* PHP code that it has called may have destroyed the table. */
	const bool is_converted = convert(rows, given, values) && rows->memory;
	const bool is_stored = is_converted && outboard_rows_set(rows, key, values);
	if (is_converted && !is_stored) {
		zend_error(E_WARNING, "Swoole\\Table::set(): no row is left for the key \"%s\"",
			ZSTR_VAL(key));
	}
	for (uint32_t i = 0; i < rows->column_count; i++) {
		zval_ptr_dtor(&values[i]);
	}
	RETURN_BOOL(is_stored);
}

static void return_row(const outboard_rows *rows, const outboard_row *copy, zval *target)
{
	array_init_size(target, rows->column_count);
	zend_hash_real_init_mixed(Z_ARRVAL_P(target));
	for (uint32_t i = 0; i < rows->column_count; i++) {
		zval value;
		outboard_row_value(copy, &rows->columns[i], &value);
		zend_symtable_update(Z_ARRVAL_P(target), rows->columns[i].name, &value);
	}
}

PHP_METHOD(Swoole_Table, get)
{
	zend_string *key;
	zend_string *field = NULL;
	ZEND_PARSE_PARAMETERS_START(1, 2)
		Z_PARAM_STR(key)
		Z_PARAM_OPTIONAL
		Z_PARAM_STR_OR_NULL(field)
	ZEND_PARSE_PARAMETERS_END();
	const table *one = created(ZEND_THIS);
	if (!one || !outboard_rows_copy(&one->rows, key, one->copy)) {
		RETURN_FALSE;
	}
	if (!field) {
		return_row(&one->rows, one->copy, return_value);
		return;
	}
	const outboard_column *of = column_of(&one->rows, field);
	if (!of) {
		RETURN_FALSE;
	}
	outboard_row_value(one->copy, of, return_value);
}

PHP_METHOD(Swoole_Table, exists)
{
	zend_string *key;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(key)
	ZEND_PARSE_PARAMETERS_END();
	const outboard_rows *rows = rows_of(ZEND_THIS);
	if (rows) {
		RETURN_BOOL(outboard_rows_exist(rows, key));
	}
}

PHP_METHOD(Swoole_Table, del)
{
	zend_string *key;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(key)
	ZEND_PARSE_PARAMETERS_END();
	outboard_rows *rows = rows_of(ZEND_THIS);
	if (rows) {
		RETURN_BOOL(outboard_rows_delete(rows, key));
	}
}

static void add(INTERNAL_FUNCTION_PARAMETERS, int sign)
{
	zend_string *key;
	zend_string *name;
	zval *by = NULL;
	zval sum;
	ZEND_PARSE_PARAMETERS_START(2, 3)
		Z_PARAM_STR(key)
		Z_PARAM_STR(name)
		Z_PARAM_OPTIONAL
		Z_PARAM_NUMBER(by)
	ZEND_PARSE_PARAMETERS_END();
	outboard_rows *rows = rows_of(ZEND_THIS);
	if (!rows) {
		return;
	}
	const outboard_column *of = column_of(rows, name);
	if (!of || of->type == COLUMN_STRING) {
		zend_error(E_WARNING, "Swoole\\Table: the column \"%s\" holds no number", ZSTR_VAL(name));
		RETURN_FALSE;
	}
	const zend_ulong whole = (zend_ulong) (by ? zval_get_long(by) : 1) * (zend_ulong) sign;
	const double real = (by ? zval_get_double(by) : 1) * sign;
	if (!outboard_rows_add(rows, key, of, (zend_long) whole, real, &sum)) {
		RETURN_FALSE;
	}
	RETURN_COPY_VALUE(&sum);
}

PHP_METHOD(Swoole_Table, incr)
{
	add(INTERNAL_FUNCTION_PARAM_PASSTHRU, 1);
}

PHP_METHOD(Swoole_Table, decr)
{
	add(INTERNAL_FUNCTION_PARAM_PASSTHRU, -1);
}

PHP_METHOD(Swoole_Table, count)
{
	zend_long mode = 0;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(mode)
	ZEND_PARSE_PARAMETERS_END();
	(void) mode;
	const outboard_rows *rows = rows_of(ZEND_THIS);
	if (rows) {
		RETURN_LONG((zend_long) outboard_rows_count(rows).count);
	}
}

PHP_METHOD(Swoole_Table, getSize)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_LONG(table_of(Z_OBJ_P(ZEND_THIS))->rows.size);
}

PHP_METHOD(Swoole_Table, getMemorySize)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_LONG((zend_long) table_of(Z_OBJ_P(ZEND_THIS))->rows.memory_bytes);
}

PHP_METHOD(Swoole_Table, stats)
{
	ZEND_PARSE_PARAMETERS_NONE();
	const outboard_rows *rows = rows_of(ZEND_THIS);
	if (!rows) {
		return;
	}
	const outboard_rows_stats stats = outboard_rows_count(rows);
	array_init(return_value);
	add_assoc_long(return_value, "num", (zend_long) stats.count);
	add_assoc_long(return_value, "conflict_count", (zend_long) stats.conflicts);
	add_assoc_long(return_value, "conflict_max_level", 0);
	add_assoc_long(return_value, "insert_count", (zend_long) stats.inserts);
	add_assoc_long(return_value, "update_count", (zend_long) stats.updates);
	add_assoc_long(return_value, "delete_count", (zend_long) stats.deletes);
	add_assoc_long(return_value, "available_slice_num",
		(zend_long) rows->row_count - (zend_long) stats.count);
	add_assoc_long(return_value, "total_slice_num", rows->row_count);
}

static void seek(table *one)
{
	one->is_copied = outboard_rows_copy_next(&one->rows, &one->position, one->iterated);
}

PHP_METHOD(Swoole_Table, rewind)
{
	ZEND_PARSE_PARAMETERS_NONE();
	table *one = created(ZEND_THIS);
	if (one) {
		one->position = 0;
		seek(one);
	}
}

PHP_METHOD(Swoole_Table, next)
{
	ZEND_PARSE_PARAMETERS_NONE();
	table *one = created(ZEND_THIS);
	if (one) {
		seek(one);
	}
}

PHP_METHOD(Swoole_Table, valid)
{
	ZEND_PARSE_PARAMETERS_NONE();
	const table *one = created(ZEND_THIS);
	RETURN_BOOL(one && one->is_copied);
}

PHP_METHOD(Swoole_Table, key)
{
	ZEND_PARSE_PARAMETERS_NONE();
	const table *one = created(ZEND_THIS);
	if (one && one->is_copied) {
		outboard_row_key(one->iterated, return_value);
	}
}

PHP_METHOD(Swoole_Table, current)
{
	ZEND_PARSE_PARAMETERS_NONE();
	const table *one = created(ZEND_THIS);
	if (one && one->is_copied) {
		return_row(&one->rows, one->iterated, return_value);
	}
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_construct, 0, 0, 1)
	ZEND_ARG_TYPE_INFO(0, table_size, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, conflict_proportion, IS_DOUBLE, 0, "0.2")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_column, 0, 2, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, type, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, size, IS_LONG, 0, "0")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_bool, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_set, 0, 2, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, value, IS_ARRAY, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_INFO_EX(arginfo_get, 0, 0, 1)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, field, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_key, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_INFO_EX(arginfo_add, 0, 0, 2)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, column, IS_STRING, 0)
	ZEND_ARG_TYPE_MASK(0, incrby, MAY_BE_LONG | MAY_BE_DOUBLE, "1")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_count, 0, 0, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, mode, IS_LONG, 0, "0")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_long, 0, 0, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_array, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_void, 0, 0, IS_VOID, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_mixed, 0, 0, IS_MIXED, 0)
ZEND_END_ARG_INFO()

#define METHOD(name, info) PHP_ME(Swoole_Table, name, info, ZEND_ACC_PUBLIC)
#define ALIAS(name, of, info) ZEND_MALIAS(Swoole_Table, name, of, info, ZEND_ACC_PUBLIC)

static const zend_function_entry methods[] = {
	METHOD(__construct, arginfo_construct)
	METHOD(column, arginfo_column)
	METHOD(create, arginfo_bool)
	METHOD(destroy, arginfo_bool)
	METHOD(set, arginfo_set)
	METHOD(get, arginfo_get)
	METHOD(exists, arginfo_key)
	ALIAS(exist, exists, arginfo_key)
	METHOD(del, arginfo_key)
	ALIAS(delete, del, arginfo_key)
	METHOD(incr, arginfo_add)
	METHOD(decr, arginfo_add)
	METHOD(count, arginfo_count)
	METHOD(getSize, arginfo_long)
	METHOD(getMemorySize, arginfo_long)
	METHOD(stats, arginfo_array)
	METHOD(rewind, arginfo_void)
	METHOD(valid, arginfo_bool)
	METHOD(next, arginfo_void)
	METHOD(current, arginfo_mixed)
	METHOD(key, arginfo_mixed)
	PHP_FE_END
};

void outboard_swoole_table_startup(void)
{
	zend_class_entry class;
	INIT_NS_CLASS_ENTRY(class, "Swoole", "Table", methods);
	table_class = zend_register_internal_class_ex(&class, NULL);
	table_class->ce_flags |= ZEND_ACC_NOT_SERIALIZABLE;
	table_class->create_object = create_object;
	zend_class_implements(table_class, 2, zend_ce_iterator, zend_ce_countable);
	zend_declare_class_constant_long(table_class, ZEND_STRL("TYPE_INT"), COLUMN_INT);
	zend_declare_class_constant_long(table_class, ZEND_STRL("TYPE_FLOAT"), COLUMN_FLOAT);
	zend_declare_class_constant_long(table_class, ZEND_STRL("TYPE_STRING"), COLUMN_STRING);
	zend_declare_property_null(table_class, ZEND_STRL("size"), ZEND_ACC_PUBLIC);
	zend_declare_property_null(table_class, ZEND_STRL("memorySize"), ZEND_ACC_PUBLIC);
	zend_register_class_alias("swoole_table", table_class);
	memcpy(&handlers, &std_object_handlers, sizeof(handlers));
	handlers.offset = offsetof(table, object);
	handlers.free_obj = free_object;
	handlers.clone_obj = NULL;
}
