/*
 * Swoole\Table: rows of fixed columns under keys, in memory that all processes share.
 *
 *   head | buckets: a lock and the first row of a chain each | rows: next, bucket, key, columns
 *
 * Invariants: a row is read and changed under the lock of its bucket alone, and copied out of it before
 * anything is allocated; the free rows have a lock of their own, which is taken last.
 */
#include "swoole.h"
#include "ext/spl/spl_exceptions.h"
#include "zend_interfaces.h"

#define KEY_BYTES 63
#define COLUMNS_MAX 64
#define NO_ROW UINT32_MAX

enum type { INT = 1, FLOAT = 2, STRING = 3 };

typedef struct {
	zend_string *name;
	enum type type;
	uint32_t size; /* of a string */
	uint32_t offset;
} column;

typedef struct {
	uint32_t lock;
	uint32_t first;
} bucket;

typedef struct {
	uint32_t next;
	uint32_t bucket;
	uint8_t is_used;
	uint8_t key_len;
	char key[KEY_BYTES];
	char values[] __attribute__((aligned(8)));
} row;

typedef struct {
	uint32_t lock;      /* of its making, then of the free rows */
	uint32_t is_made;
	uint64_t layout;
	uint32_t free;      /* chain of rows that were given back */
	uint32_t untouched; /* rows from here on were never used */
	int64_t count;
	uint64_t inserts;
	uint64_t updates;
	uint64_t deletes;
	uint64_t conflicts;
} head;

typedef struct {
	head *memory; /* NULL before create() */
	size_t memory_bytes;
	bucket *buckets;
	char *rows;
	char *copy;     /* of the row that is being read */
	char *iterated; /* of the iteration's */
	uint32_t size;
	uint32_t bucket_count;
	uint32_t row_count;
	uint32_t row_bytes;
	uint32_t value_bytes;
	column columns[COLUMNS_MAX];
	uint32_t column_count;
	uint32_t position; /* of the iteration */
	bool is_copied;    /* what the position refers to */
	double proportion;
	zend_object object;
} table;

static zend_class_entry *table_class;
static zend_object_handlers handlers;

static table *table_of(zend_object *object)
{
	return (table *) ((char *) object - XtOffsetOf(table, object));
}

static zend_object *create_object(zend_class_entry *class)
{
	table *one = zend_object_alloc(sizeof(*one), class);
	memset(one, 0, XtOffsetOf(table, object));
	zend_object_std_init(&one->object, class);
	object_properties_init(&one->object, class);
	one->object.handlers = &handlers;
	return &one->object;
}

static void free_object(zend_object *object)
{
	table *one = table_of(object);
	for (uint32_t i = 0; i < one->column_count; i++) {
		zend_string_release(one->columns[i].name);
	}
	if (one->memory) {
		outboard_swoole_unshare(one->memory, one->memory_bytes);
		efree(one->copy);
		efree(one->iterated);
	}
	zend_object_std_dtor(object);
}

static row *row_at(const table *one, uint32_t at)
{
	return (row *) (one->rows + (size_t) at * one->row_bytes);
}

/* NULL, with an exception, before create(). */
static table *made(zval *this)
{
	table *one = table_of(Z_OBJ_P(this));
	if (!one->memory) {
		zend_throw_error(NULL, "the table is not created or has been destroyed");
		return NULL;
	}
	return one;
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
	uint32_t rounded = 64;
	if (size < 1 || size > 1 << 28) {
		zend_argument_value_error(1, "must be between 1 and 268,435,456");
		return;
	}
	while (rounded < (uint32_t) size) {
		rounded *= 2;
	}
	one->size = rounded;
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
	if (one->memory || one->column_count == COLUMNS_MAX || ZSTR_LEN(name) == 0
		|| type < INT || type > STRING || (type == STRING && (size < 1 || size > 1 << 24))) {
		zend_error(E_WARNING, "Swoole\\Table::column(): the column \"%s\" cannot be added",
			ZSTR_VAL(name));
		RETURN_FALSE;
	}
	column *added = &one->columns[one->column_count++];
	added->name = zend_string_copy(name);
	added->type = (enum type) type;
	added->size = type == STRING ? (uint32_t) size : 8;
	added->offset = one->value_bytes;
	one->value_bytes += type == STRING ? ((uint32_t) size + sizeof(uint32_t) + 7) & ~7u : 8;
	RETURN_TRUE;
}

/* Tells tables apart that a changed program makes in the same place. */
static uint64_t layout_of(const table *one)
{
	uint64_t layout = one->size;
	for (uint32_t i = 0; i < one->column_count; i++) {
		layout = layout * 31 + zend_string_hash_val(one->columns[i].name);
		layout = layout * 31 + one->columns[i].type;
		layout = layout * 31 + one->columns[i].size;
	}
	return layout;
}

/* Another process may have made it. */
static void make(table *one)
{
	head *memory = one->memory;
	const uint64_t layout = layout_of(one);
	outboard_swoole_lock(&memory->lock);
	if (!memory->is_made || memory->layout != layout) {
		for (uint32_t i = 0; i < one->bucket_count; i++) {
			one->buckets[i] = (bucket) {0, NO_ROW};
		}
		memory->layout = layout;
		memory->free = NO_ROW;
		memory->untouched = 0;
		memory->count = 0;
		memory->inserts = memory->updates = memory->deletes = memory->conflicts = 0;
		memory->is_made = 1;
	}
	outboard_swoole_unlock(&memory->lock);
}

PHP_METHOD(Swoole_Table, create)
{
	ZEND_PARSE_PARAMETERS_NONE();
	table *one = table_of(Z_OBJ_P(ZEND_THIS));
	if (one->memory || one->column_count == 0) {
		RETURN_FALSE;
	}
	one->bucket_count = one->size;
	one->row_count = one->size + (uint32_t) (one->size * one->proportion);
	one->row_bytes = (uint32_t) (sizeof(row) + one->value_bytes);
	const size_t bytes = sizeof(head) + (size_t) one->bucket_count * sizeof(bucket)
		+ (size_t) one->row_count * one->row_bytes;
	one->memory = outboard_swoole_share(bytes);
	if (!one->memory) {
		zend_error(E_WARNING, "Swoole\\Table::create(): there is no memory for %zu bytes", bytes);
		RETURN_FALSE;
	}
	one->memory_bytes = bytes;
	one->buckets = (bucket *) (one->memory + 1);
	one->rows = (char *) (one->buckets + one->bucket_count);
	one->copy = emalloc(one->row_bytes);
	one->iterated = emalloc(one->row_bytes);
	make(one);
	zend_update_property_long(table_class, Z_OBJ_P(ZEND_THIS), ZEND_STRL("size"), one->size);
	zend_update_property_long(
		table_class, Z_OBJ_P(ZEND_THIS), ZEND_STRL("memorySize"), (zend_long) bytes);
	RETURN_TRUE;
}

PHP_METHOD(Swoole_Table, destroy)
{
	ZEND_PARSE_PARAMETERS_NONE();
	table *one = made(ZEND_THIS);
	if (one) {
		outboard_swoole_unshare(one->memory, one->memory_bytes);
		efree(one->copy);
		efree(one->iterated);
		one->memory = NULL;
		RETURN_TRUE;
	}
}

static size_t length_of(const zend_string *key)
{
	return ZSTR_LEN(key) > KEY_BYTES ? KEY_BYTES : ZSTR_LEN(key);
}

static bucket *bucket_of(const table *one, zend_string *key, uint32_t *at)
{
	/* What is cut off does not tell keys apart. */
	const zend_ulong hash = ZSTR_LEN(key) > KEY_BYTES
		? zend_inline_hash_func(ZSTR_VAL(key), KEY_BYTES) : zend_string_hash_val(key);
	*at = (uint32_t) (hash ^ hash >> 32) & (one->bucket_count - 1);
	return &one->buckets[*at];
}

/* Under the bucket's lock; `link` is what refers to the row. */
static row *find(const table *one, bucket *chain, const zend_string *key, uint32_t **link)
{
	const size_t len = length_of(key);
	for (uint32_t *at = &chain->first; *at != NO_ROW;) {
		row *candidate = row_at(one, *at);
		if (candidate->key_len == len && memcmp(candidate->key, ZSTR_VAL(key), len) == 0) {
			if (link) {
				*link = at;
			}
			return candidate;
		}
		at = &candidate->next;
	}
	return NULL;
}

static uint32_t take_free(const table *one)
{
	head *memory = one->memory;
	uint32_t at = NO_ROW;
	outboard_swoole_lock(&memory->lock);
	if (memory->free != NO_ROW) {
		at = memory->free;
		memory->free = row_at(one, at)->next;
	} else if (memory->untouched < one->row_count) {
		at = memory->untouched++;
	}
	outboard_swoole_unlock(&memory->lock);
	return at;
}

/* Under the bucket's lock: the row of this key, which is new with zeros; NULL when all are in use. */
static row *find_or_add(table *one, bucket *chain, uint32_t chain_at, const zend_string *key)
{
	row *found = find(one, chain, key, NULL);
	if (found) {
		__atomic_add_fetch(&one->memory->updates, 1, __ATOMIC_RELAXED);
		return found;
	}
	const uint32_t at = take_free(one);
	if (at == NO_ROW) {
		return NULL;
	}
	found = row_at(one, at);
	memset(found->values, 0, one->value_bytes);
	found->key_len = (uint8_t) length_of(key);
	memcpy(found->key, ZSTR_VAL(key), found->key_len);
	found->bucket = chain_at;
	found->next = chain->first;
	if (chain->first != NO_ROW) {
		__atomic_add_fetch(&one->memory->conflicts, 1, __ATOMIC_RELAXED);
	}
	found->is_used = 1;
	chain->first = at;
	__atomic_add_fetch(&one->memory->count, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&one->memory->inserts, 1, __ATOMIC_RELAXED);
	return found;
}

static void read_value(const column *of, const char *values, zval *target)
{
	const char *at = values + of->offset;
	if (of->type == INT) {
		int64_t number;
		memcpy(&number, at, sizeof(number));
		ZVAL_LONG(target, (zend_long) number);
	} else if (of->type == FLOAT) {
		double number;
		memcpy(&number, at, sizeof(number));
		ZVAL_DOUBLE(target, number);
	} else {
		uint32_t len;
		memcpy(&len, at, sizeof(len));
		ZVAL_STRINGL_FAST(target, at + sizeof(len), len > of->size ? of->size : len);
	}
}

/* `value` has the column's type. */
static void write_value(const column *of, char *values, const zval *value)
{
	char *at = values + of->offset;
	if (of->type == INT) {
		const int64_t number = Z_LVAL_P(value);
		memcpy(at, &number, sizeof(number));
	} else if (of->type == FLOAT) {
		memcpy(at, &Z_DVAL_P(value), sizeof(double));
	} else {
		const uint32_t len = Z_STRLEN_P(value) > of->size ? of->size : (uint32_t) Z_STRLEN_P(value);
		memcpy(at, &len, sizeof(len));
		memcpy(at + sizeof(len), Z_STRVAL_P(value), len);
	}
}

static const column *column_of(const table *one, const zend_string *name)
{
	for (uint32_t i = 0; i < one->column_count; i++) {
		if (zend_string_equals(one->columns[i].name, name)) {
			return &one->columns[i];
		}
	}
	return NULL;
}

/* With the types of the columns; undefined where nothing is given. What may call PHP happens here. */
static bool convert(const table *one, HashTable *given, zval *values)
{
	bool fits = true;
	for (uint32_t i = 0; i < one->column_count; i++) {
		const column *of = &one->columns[i];
		zval *value = zend_symtable_find(given, of->name);
		ZVAL_UNDEF(&values[i]);
		if (!value) {
			continue;
		}
		if (of->type == INT) {
			ZVAL_LONG(&values[i], zval_get_long(value));
		} else if (of->type == FLOAT) {
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
	zval values[COLUMNS_MAX];
	uint32_t chain_at;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_STR(key)
		Z_PARAM_ARRAY_HT(given)
	ZEND_PARSE_PARAMETERS_END();
	table *one = made(ZEND_THIS);
	if (!one) {
		return;
	}
	row *found = NULL;
	if (convert(one, given, values)) {
		bucket *chain = bucket_of(one, key, &chain_at);
		outboard_swoole_lock(&chain->lock);
		found = find_or_add(one, chain, chain_at, key);
		for (uint32_t i = 0; found && i < one->column_count; i++) {
			if (!Z_ISUNDEF(values[i])) {
				write_value(&one->columns[i], found->values, &values[i]);
			}
		}
		outboard_swoole_unlock(&chain->lock);
		if (!found) {
			zend_error(E_WARNING, "Swoole\\Table::set(): no row is left for the key \"%s\"",
				ZSTR_VAL(key));
		}
	}
	for (uint32_t i = 0; i < one->column_count; i++) {
		zval_ptr_dtor(&values[i]);
	}
	RETURN_BOOL(found != NULL);
}

/* Copies the row of the key; false when there is none. */
static bool copy_row(table *one, zend_string *key)
{
	uint32_t chain_at;
	bucket *chain = bucket_of(one, key, &chain_at);
	outboard_swoole_lock(&chain->lock);
	const row *found = find(one, chain, key, NULL);
	if (found) {
		memcpy(one->copy, found, one->row_bytes);
	}
	outboard_swoole_unlock(&chain->lock);
	return found != NULL;
}

static void give_row(const table *one, const char *of, zval *target)
{
	const row *copy = (const row *) of;
	array_init_size(target, one->column_count);
	zend_hash_real_init_mixed(Z_ARRVAL_P(target));
	for (uint32_t i = 0; i < one->column_count; i++) {
		zval value;
		read_value(&one->columns[i], copy->values, &value);
		zend_symtable_update(Z_ARRVAL_P(target), one->columns[i].name, &value);
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
	table *one = made(ZEND_THIS);
	if (!one || !copy_row(one, key)) {
		RETURN_FALSE;
	}
	if (!field) {
		give_row(one, one->copy, return_value);
		return;
	}
	const column *of = column_of(one, field);
	if (!of) {
		RETURN_FALSE;
	}
	read_value(of, ((const row *) one->copy)->values, return_value);
}

PHP_METHOD(Swoole_Table, exists)
{
	zend_string *key;
	uint32_t chain_at;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(key)
	ZEND_PARSE_PARAMETERS_END();
	table *one = made(ZEND_THIS);
	if (!one) {
		return;
	}
	bucket *chain = bucket_of(one, key, &chain_at);
	outboard_swoole_lock(&chain->lock);
	const bool is_found = find(one, chain, key, NULL) != NULL;
	outboard_swoole_unlock(&chain->lock);
	RETURN_BOOL(is_found);
}

PHP_METHOD(Swoole_Table, del)
{
	zend_string *key;
	uint32_t *link;
	uint32_t chain_at;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(key)
	ZEND_PARSE_PARAMETERS_END();
	table *one = made(ZEND_THIS);
	if (!one) {
		return;
	}
	bucket *chain = bucket_of(one, key, &chain_at);
	outboard_swoole_lock(&chain->lock);
	row *found = find(one, chain, key, &link);
	if (found) {
		const uint32_t at = *link;
		*link = found->next;
		found->is_used = 0;
		outboard_swoole_lock(&one->memory->lock);
		found->next = one->memory->free;
		one->memory->free = at;
		outboard_swoole_unlock(&one->memory->lock);
		__atomic_sub_fetch(&one->memory->count, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&one->memory->deletes, 1, __ATOMIC_RELAXED);
	}
	outboard_swoole_unlock(&chain->lock);
	RETURN_BOOL(found != NULL);
}

static void add(INTERNAL_FUNCTION_PARAMETERS, int sign)
{
	zend_string *key;
	zend_string *name;
	zval *by = NULL;
	uint32_t chain_at;
	ZEND_PARSE_PARAMETERS_START(2, 3)
		Z_PARAM_STR(key)
		Z_PARAM_STR(name)
		Z_PARAM_OPTIONAL
		Z_PARAM_NUMBER(by)
	ZEND_PARSE_PARAMETERS_END();
	table *one = made(ZEND_THIS);
	if (!one) {
		return;
	}
	const column *of = column_of(one, name);
	if (!of || of->type == STRING) {
		zend_error(E_WARNING, "Swoole\\Table: the column \"%s\" holds no number", ZSTR_VAL(name));
		RETURN_FALSE;
	}
	const zend_long whole = by ? zval_get_long(by) : 1;
	const double real = by ? zval_get_double(by) : 1;
	zval value;
	bucket *chain = bucket_of(one, key, &chain_at);
	outboard_swoole_lock(&chain->lock);
	row *found = find_or_add(one, chain, chain_at, key);
	if (found) {
		read_value(of, found->values, &value);
		if (of->type == INT) {
			/* As the processor adds: without an end. */
			ZVAL_LONG(&value, (zend_long) ((zend_ulong) Z_LVAL(value)
				+ (zend_ulong) whole * (zend_ulong) sign));
		} else {
			ZVAL_DOUBLE(&value, Z_DVAL(value) + real * sign);
		}
		write_value(of, found->values, &value);
	}
	outboard_swoole_unlock(&chain->lock);
	if (!found) {
		RETURN_FALSE;
	}
	RETURN_COPY_VALUE(&value);
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
	table *one = made(ZEND_THIS);
	if (one) {
		RETURN_LONG((zend_long) __atomic_load_n(&one->memory->count, __ATOMIC_RELAXED));
	}
}

PHP_METHOD(Swoole_Table, getSize)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_LONG(table_of(Z_OBJ_P(ZEND_THIS))->size);
}

PHP_METHOD(Swoole_Table, getMemorySize)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_LONG((zend_long) table_of(Z_OBJ_P(ZEND_THIS))->memory_bytes);
}

PHP_METHOD(Swoole_Table, stats)
{
	ZEND_PARSE_PARAMETERS_NONE();
	const table *one = made(ZEND_THIS);
	if (!one) {
		return;
	}
	const head *memory = one->memory;
	array_init(return_value);
	add_assoc_long(return_value, "num", (zend_long) memory->count);
	add_assoc_long(return_value, "conflict_count", (zend_long) memory->conflicts);
	add_assoc_long(return_value, "conflict_max_level", 0);
	add_assoc_long(return_value, "insert_count", (zend_long) memory->inserts);
	add_assoc_long(return_value, "update_count", (zend_long) memory->updates);
	add_assoc_long(return_value, "delete_count", (zend_long) memory->deletes);
	add_assoc_long(return_value, "available_slice_num",
		(zend_long) (one->row_count - (uint32_t) memory->count));
	add_assoc_long(return_value, "total_slice_num", one->row_count);
}

/* Copies the next used row from the position on. */
static void seek(table *one)
{
	one->is_copied = false;
	const uint32_t untouched = __atomic_load_n(&one->memory->untouched, __ATOMIC_RELAXED);
	for (; one->position < untouched && !one->is_copied; one->position++) {
		const row *candidate = row_at(one, one->position);
		const uint32_t chain_at = __atomic_load_n(&candidate->bucket, __ATOMIC_RELAXED);
		if (!candidate->is_used || chain_at >= one->bucket_count) {
			continue;
		}
		bucket *chain = &one->buckets[chain_at];
		outboard_swoole_lock(&chain->lock);
		if (candidate->is_used && candidate->bucket == chain_at) {
			memcpy(one->iterated, candidate, one->row_bytes);
			one->is_copied = true;
		}
		outboard_swoole_unlock(&chain->lock);
	}
}

PHP_METHOD(Swoole_Table, rewind)
{
	ZEND_PARSE_PARAMETERS_NONE();
	table *one = made(ZEND_THIS);
	if (one) {
		one->position = 0;
		seek(one);
	}
}

PHP_METHOD(Swoole_Table, next)
{
	ZEND_PARSE_PARAMETERS_NONE();
	table *one = made(ZEND_THIS);
	if (one) {
		seek(one);
	}
}

PHP_METHOD(Swoole_Table, valid)
{
	ZEND_PARSE_PARAMETERS_NONE();
	table *one = made(ZEND_THIS);
	RETURN_BOOL(one && one->is_copied);
}

PHP_METHOD(Swoole_Table, key)
{
	ZEND_PARSE_PARAMETERS_NONE();
	const table *one = made(ZEND_THIS);
	if (one && one->is_copied) {
		const row *copy = (const row *) one->iterated;
		RETURN_STRINGL(copy->key, copy->key_len);
	}
}

PHP_METHOD(Swoole_Table, current)
{
	ZEND_PARSE_PARAMETERS_NONE();
	const table *one = made(ZEND_THIS);
	if (one && one->is_copied) {
		give_row(one, one->iterated, return_value);
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
	zend_declare_class_constant_long(table_class, ZEND_STRL("TYPE_INT"), INT);
	zend_declare_class_constant_long(table_class, ZEND_STRL("TYPE_FLOAT"), FLOAT);
	zend_declare_class_constant_long(table_class, ZEND_STRL("TYPE_STRING"), STRING);
	zend_declare_property_null(table_class, ZEND_STRL("size"), ZEND_ACC_PUBLIC);
	zend_declare_property_null(table_class, ZEND_STRL("memorySize"), ZEND_ACC_PUBLIC);
	zend_register_class_alias("swoole_table", table_class);
	memcpy(&handlers, &std_object_handlers, sizeof(handlers));
	handlers.offset = XtOffsetOf(table, object);
	handlers.free_obj = free_object;
	handlers.clone_obj = NULL;
}
