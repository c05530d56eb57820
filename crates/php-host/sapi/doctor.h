/*
 * What the files of the state doctor share.
 */
#ifndef OUTBOARD_DOCTOR_H
#define OUTBOARD_DOCTOR_H

#include "visit.h"

/* Where state can be, and where that is declared: `file` may be NULL. */
typedef struct {
	const char *kind;
	const char *name;
	const char *file;
	uint32_t line;
} outboard_place;

/* Called for each element or property of a value. */
typedef void (*outboard_holding)(
	zend_string *key, zend_ulong index, bool is_property, zval *value, void *arg);

/* fingerprint.c */
uint64_t outboard_fingerprint(zval *value);
void outboard_each_of(zval *value, outboard_holding visit, void *arg);

/* doctor_lines.c; `first` is what the place held at first, or NULL. */
bool outboard_report_begin(const char *path);
void outboard_report_end(void);
void outboard_write_line(const outboard_place *at, int depth, zval *value, zval *first);
void outboard_write_value(const outboard_place *at, zval *value, zval *first);
void outboard_write_text_value(const char *kind, const char *name, const char *text);
void outboard_write_number(const char *kind, const char *name, zend_long number);

#endif
