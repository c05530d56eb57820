/*
 * Rows of fixed columns under keys, in memory that all processes share.
 *
 *   head | buckets: a lock and the first row of a chain each | rows: next, bucket, key, columns twice
 *
 * Invariants: a row is read and changed under the lock of its bucket alone, and copied out of it before
 * anything is allocated; the free rows have a lock of their own, which is taken last. Each change takes
 * effect by one store, so a process that is killed in the middle of one leaves rows whole: columns are
 * written to the half of the row that is not current, and a new row is linked last.
 */
#include "swoole/sapi/rows.h"

#define KEY_BYTES 63
#define NO_ROW UINT32_MAX

struct outboard_bucket {
	uint32_t lock;
	uint32_t first;
};

struct outboard_row {
	uint32_t next;
	uint32_t bucket;
	uint8_t is_used;
	uint8_t current; /* which half of the values */
	uint8_t key_len;
	char key[KEY_BYTES];
	char values[] __attribute__((aligned(8)));
};

struct outboard_rows_head {
	uint32_t lock;      /* of its creation, then of the free rows */
	uint32_t is_created;
	uint64_t layout;
	uint32_t free;      /* chain of rows that were given back */
	uint32_t untouched; /* rows from here on were never used */
	outboard_rows_stats stats;
};

typedef outboard_rows rows;
typedef outboard_row row;
typedef outboard_column column;
typedef outboard_bucket bucket;
typedef outboard_rows_head head;

void outboard_rows_set_size(rows *one, uint32_t size)
{
	one->size = 64;
	while (one->size < size) {
		one->size *= 2;
	}
}

bool outboard_rows_add_column(
	rows *one, zend_string *name, enum outboard_column_type type, uint32_t size)
{
	if (one->memory || one->column_count == OUTBOARD_COLUMNS_MAX) {
		return false;
	}
	column *added = &one->columns[one->column_count++];
	added->name = zend_string_copy(name);
	added->type = type;
	added->size = type == COLUMN_STRING ? size : 8;
	added->offset = one->value_bytes;
	one->value_bytes += type == COLUMN_STRING ? (size + sizeof(uint32_t) + 7) & ~7u : 8;
	return true;
}

static row *row_at(const rows *one, uint32_t at)
{
	OUTBOARD_ASSERT(at < one->row_count);
	return (row *) (one->rows + (size_t) at * one->row_bytes);
}

static char *values_of(const rows *one, row *of)
{
	return of->values + (of->current ? one->value_bytes : 0);
}

/* Tells rows apart that a changed program creates in the same place. */
static uint64_t layout_of(const rows *one)
{
	uint64_t layout = one->size;
	for (uint32_t i = 0; i < one->column_count; i++) {
		layout = layout * 31 + zend_string_hash_val(one->columns[i].name);
		layout = layout * 31 + one->columns[i].type;
		layout = layout * 31 + one->columns[i].size;
	}
	return layout;
}

/* Another process may have created them. */
static void clear_unless_created(rows *one)
{
	head *memory = one->memory;
	const uint64_t layout = layout_of(one);
	outboard_swoole_lock(&memory->lock);
	if (!memory->is_created || memory->layout != layout) {
		for (uint32_t i = 0; i < one->bucket_count; i++) {
			one->buckets[i] = (bucket) {0, NO_ROW};
		}
		memory->layout = layout;
		memory->free = NO_ROW;
		memory->untouched = 0;
		memory->stats = (outboard_rows_stats) {0};
		memory->is_created = 1;
	}
	outboard_swoole_unlock(&memory->lock);
}

bool outboard_rows_create(rows *one, double proportion)
{
	one->bucket_count = one->size;
	one->row_count = one->size + (uint32_t) (one->size * proportion);
	one->copy_bytes = (uint32_t) sizeof(row) + one->value_bytes;
	one->row_bytes = one->copy_bytes + one->value_bytes;
	one->memory_bytes = sizeof(head) + (size_t) one->bucket_count * sizeof(bucket)
		+ (size_t) one->row_count * one->row_bytes;
	one->memory = outboard_swoole_share(one->memory_bytes);
	if (!one->memory) {
		return false;
	}
	one->buckets = (bucket *) (one->memory + 1);
	one->rows = (char *) (one->buckets + one->bucket_count);
	clear_unless_created(one);
	return true;
}

void outboard_rows_unmap(rows *one)
{
	outboard_swoole_unshare(one->memory, one->memory_bytes);
	one->memory = NULL;
}

static size_t length_of(const zend_string *key)
{
	return ZSTR_LEN(key) > KEY_BYTES ? KEY_BYTES : ZSTR_LEN(key);
}

static bucket *bucket_of(const rows *one, zend_string *key, uint32_t *at)
{
	OUTBOARD_ASSERT(one->memory && (one->bucket_count & (one->bucket_count - 1)) == 0);
	/* What is cut off does not tell keys apart. */
	const zend_ulong hash = ZSTR_LEN(key) > KEY_BYTES
		? zend_inline_hash_func(ZSTR_VAL(key), KEY_BYTES) : zend_string_hash_val(key);
	*at = (uint32_t) (hash ^ hash >> 32) & (one->bucket_count - 1);
	return &one->buckets[*at];
}

/* Under the bucket's lock; `link` is what refers to the row. */
static row *find(const rows *one, bucket *chain, const zend_string *key, uint32_t **link)
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

static uint32_t take_free(const rows *one)
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

/* A row for this key, with zeros, that is not linked yet; NULL when all are in use. */
static row *new_row(const rows *one, uint32_t chain_at, const zend_string *key)
{
	const uint32_t at = take_free(one);
	if (at == NO_ROW) {
		return NULL;
	}
	row *added = row_at(one, at);
	memset(added->values, 0, 2 * (size_t) one->value_bytes);
	added->current = 0;
	added->key_len = (uint8_t) length_of(key);
	memcpy(added->key, ZSTR_VAL(key), added->key_len);
	__atomic_store_n(&added->bucket, chain_at, __ATOMIC_RELAXED);
	return added;
}

static void count(uint64_t *counter, int64_t by)
{
	__atomic_add_fetch(counter, (uint64_t) by, __ATOMIC_RELAXED);
}

/* Under the bucket's lock. */
static void link_row(rows *one, bucket *chain, row *added)
{
	outboard_rows_stats *stats = &one->memory->stats;
	const uint32_t at = (uint32_t) ((size_t) ((char *) added - one->rows) / one->row_bytes);
	OUTBOARD_ASSERT(at < one->row_count && added->key_len <= KEY_BYTES);
	if (chain->first != NO_ROW) {
		count(&stats->conflicts, 1);
	}
	added->next = chain->first;
	added->is_used = 1;
	__atomic_store_n(&chain->first, at, __ATOMIC_RELEASE);
	count(&stats->count, 1);
	count(&stats->inserts, 1);
}

static void read_value(const column *of, const char *values, zval *target)
{
	const char *at = values + of->offset;
	if (of->type == COLUMN_INT) {
		int64_t number;
		memcpy(&number, at, sizeof(number));
		ZVAL_LONG(target, (zend_long) number);
	} else if (of->type == COLUMN_FLOAT) {
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
	OUTBOARD_ASSERT(Z_TYPE_P(value) == (of->type == COLUMN_INT ? IS_LONG : of->type == COLUMN_FLOAT ? IS_DOUBLE : IS_STRING));
	if (of->type == COLUMN_INT) {
		const int64_t number = Z_LVAL_P(value);
		memcpy(at, &number, sizeof(number));
	} else if (of->type == COLUMN_FLOAT) {
		memcpy(at, &Z_DVAL_P(value), sizeof(double));
	} else {
		const uint32_t len = Z_STRLEN_P(value) > of->size ? of->size : (uint32_t) Z_STRLEN_P(value);
		memcpy(at, &len, sizeof(len));
		memcpy(at + sizeof(len), Z_STRVAL_P(value), len);
	}
}

static void write_values(const rows *one, char *target, const zval *values)
{
	for (uint32_t i = 0; i < one->column_count; i++) {
		if (!Z_ISUNDEF(values[i])) {
			write_value(&one->columns[i], target, &values[i]);
		}
	}
}

bool outboard_rows_set(rows *one, zend_string *key, const zval *values)
{
	uint32_t chain_at;
	bucket *chain = bucket_of(one, key, &chain_at);
	outboard_swoole_lock(&chain->lock);
	row *found = find(one, chain, key, NULL);
	if (found) {
		const uint8_t next = !found->current;
		char *target = found->values + (next ? one->value_bytes : 0);
		memcpy(target, values_of(one, found), one->value_bytes);
		write_values(one, target, values);
		__atomic_store_n(&found->current, next, __ATOMIC_RELEASE);
		count(&one->memory->stats.updates, 1);
	} else {
		found = new_row(one, chain_at, key);
		if (found) {
			write_values(one, found->values, values);
			link_row(one, chain, found);
		}
	}
	outboard_swoole_unlock(&chain->lock);
	return found != NULL;
}

bool outboard_rows_add(
	rows *one, zend_string *key, const column *of, zend_long whole, double real, zval *result)
{
	uint32_t chain_at;
	bucket *chain = bucket_of(one, key, &chain_at);
	outboard_swoole_lock(&chain->lock);
	row *found = find(one, chain, key, NULL);
	row *added = found ? NULL : new_row(one, chain_at, key);
	if (found || added) {
		char *values = found ? values_of(one, found) : added->values;
		OUTBOARD_ASSERT(of->type != COLUMN_STRING);
		read_value(of, values, result);
		if (of->type == COLUMN_INT) {
			/* As the processor adds: it wraps around. */
			ZVAL_LONG(result, (zend_long) ((zend_ulong) Z_LVAL_P(result) + (zend_ulong) whole));
		} else {
			ZVAL_DOUBLE(result, Z_DVAL_P(result) + real);
		}
		/* A number is one store. */
		write_value(of, values, result);
	}
	if (found) {
		count(&one->memory->stats.updates, 1);
	} else if (added) {
		link_row(one, chain, added);
	}
	outboard_swoole_unlock(&chain->lock);
	return found || added;
}

bool outboard_rows_exist(const rows *one, zend_string *key)
{
	uint32_t chain_at;
	bucket *chain = bucket_of(one, key, &chain_at);
	outboard_swoole_lock(&chain->lock);
	const bool is_found = find(one, chain, key, NULL) != NULL;
	outboard_swoole_unlock(&chain->lock);
	return is_found;
}

bool outboard_rows_delete(rows *one, zend_string *key)
{
	uint32_t *link;
	uint32_t chain_at;
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
		count(&one->memory->stats.count, -1);
		count(&one->memory->stats.deletes, 1);
	}
	outboard_swoole_unlock(&chain->lock);
	return found != NULL;
}

outboard_rows_stats outboard_rows_count(const rows *one)
{
	const outboard_rows_stats *stats = &one->memory->stats;
	return (outboard_rows_stats) {
		.count = __atomic_load_n(&stats->count, __ATOMIC_RELAXED),
		.conflicts = __atomic_load_n(&stats->conflicts, __ATOMIC_RELAXED),
		.inserts = __atomic_load_n(&stats->inserts, __ATOMIC_RELAXED),
		.updates = __atomic_load_n(&stats->updates, __ATOMIC_RELAXED),
		.deletes = __atomic_load_n(&stats->deletes, __ATOMIC_RELAXED),
	};
}

/* With its current values in the first half. */
static void copy_current(const rows *one, row *of, row *target)
{
	memcpy(target, of, sizeof(row));
	memcpy(target->values, values_of(one, of), one->value_bytes);
}

bool outboard_rows_copy(const rows *one, zend_string *key, row *copy)
{
	uint32_t chain_at;
	bucket *chain = bucket_of(one, key, &chain_at);
	outboard_swoole_lock(&chain->lock);
	row *found = find(one, chain, key, NULL);
	if (found) {
		copy_current(one, found, copy);
	}
	outboard_swoole_unlock(&chain->lock);
	return found != NULL;
}

bool outboard_rows_copy_next(const rows *one, uint32_t *position, row *copy)
{
	const uint32_t untouched = __atomic_load_n(&one->memory->untouched, __ATOMIC_RELAXED);
	bool is_copied = false;
	while (*position < untouched && !is_copied) {
		row *candidate = row_at(one, (*position)++);
		const uint32_t chain_at = __atomic_load_n(&candidate->bucket, __ATOMIC_RELAXED);
		if (!candidate->is_used || chain_at >= one->bucket_count) {
			continue;
		}
		bucket *chain = &one->buckets[chain_at];
		outboard_swoole_lock(&chain->lock);
		if (candidate->is_used && candidate->bucket == chain_at) {
			copy_current(one, candidate, copy);
			is_copied = true;
		}
		outboard_swoole_unlock(&chain->lock);
	}
	return is_copied;
}

void outboard_row_value(const row *copy, const column *of, zval *value)
{
	read_value(of, copy->values, value);
}

void outboard_row_key(const row *copy, zval *key)
{
	ZVAL_STRINGL(key, copy->key, copy->key_len);
}
