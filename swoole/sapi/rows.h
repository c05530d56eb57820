/*
 * Rows of fixed columns under keys, in memory that all processes share: what rows.c has for
 * table.c.
 */
#ifndef OUTBOARD_SWOOLE_ROWS_H
#define OUTBOARD_SWOOLE_ROWS_H

#include "swoole/sapi/swoole.h"

#define OUTBOARD_COLUMNS_MAX 64

enum outboard_column_type { COLUMN_INT = 1, COLUMN_FLOAT = 2, COLUMN_STRING = 3 };

typedef struct {
	zend_string *name;
	enum outboard_column_type type;
	uint32_t size; /* of a string */
	uint32_t offset;
} outboard_column;

typedef struct outboard_rows_head outboard_rows_head;
typedef struct outboard_bucket outboard_bucket;
typedef struct outboard_row outboard_row;

typedef struct {
	outboard_rows_head *memory; /* NULL before they are created */
	size_t memory_bytes;
	outboard_bucket *buckets;
	char *rows;
	uint32_t size;
	uint32_t bucket_count;
	uint32_t row_count;
	uint32_t row_bytes;
	uint32_t copy_bytes; /* of a row with one half of its values */
	uint32_t value_bytes;
	outboard_column columns[OUTBOARD_COLUMNS_MAX];
	uint32_t column_count;
} outboard_rows;

typedef struct {
	uint64_t count;
	uint64_t conflicts;
	uint64_t inserts;
	uint64_t updates;
	uint64_t deletes;
} outboard_rows_stats;

/* Before they are created. */
void outboard_rows_set_size(outboard_rows *rows, uint32_t size);
bool outboard_rows_add_column(
	outboard_rows *rows, zend_string *name, enum outboard_column_type type, uint32_t size);

/* False when there is no memory. The proportion is that of spare rows. */
bool outboard_rows_create(outboard_rows *rows, double proportion);
void outboard_rows_unmap(outboard_rows *rows);

/* False when all rows are in use. The values have the types of the columns, or are undefined. */
bool outboard_rows_set(outboard_rows *rows, zend_string *key, const zval *values);
/* The number's new value; false when all rows are in use. */
bool outboard_rows_add(outboard_rows *rows, zend_string *key, const outboard_column *column,
	zend_long whole, double real, zval *result);
bool outboard_rows_exist(const outboard_rows *rows, zend_string *key);
bool outboard_rows_delete(outboard_rows *rows, zend_string *key);
outboard_rows_stats outboard_rows_count(const outboard_rows *rows);

/* A copy of a row takes copy_bytes; false when there is no such row. */
bool outboard_rows_copy(const outboard_rows *rows, zend_string *key, outboard_row *copy);
/* The first row at the position or after it, which becomes the one behind it. */
bool outboard_rows_copy_next(const outboard_rows *rows, uint32_t *position, outboard_row *copy);
void outboard_row_value(const outboard_row *copy, const outboard_column *column, zval *value);
void outboard_row_key(const outboard_row *copy, zval *key);

#endif
