/*
 * Spans of a request. One block per file.
 */
#ifndef OUTBOARD_TRACING_H
#define OUTBOARD_TRACING_H

#include "shim.h"

/* tracing/span.c */
enum { OUTBOARD_MAX_ATTRIBUTES = 32 };
typedef struct {
	uint64_t start_us;
	uint32_t id;
	uint32_t parent;
} outboard_span;
typedef struct {
	outboard_str texts[2 + 2 * OUTBOARD_MAX_ATTRIBUTES];
	zend_string *values[OUTBOARD_MAX_ATTRIBUTES];
	size_t count;
} outboard_span_texts;
extern const zend_function_entry outboard_span_functions[];
bool outboard_span_begin(outboard_span *span);
uint64_t outboard_span_us(const outboard_span *span);
void outboard_span_attribute(outboard_span_texts *texts, const char *key, size_t key_len, zend_string *value);
void outboard_span_end(const outboard_span *span, const char *name, size_t name_len, bool failed, outboard_span_texts *texts);
void outboard_span_abandon(const outboard_span *span);

/* tracing/database_rows.c */
zend_long outboard_rows_of_mysqli(zval *subject, zval *result);
zend_long outboard_rows_of_pgsql(zval *result);

/* tracing/database_span.c */
void outboard_database_span_startup(void);

#endif
