/*
 * Declarations that the files of the state doctor share.
 */
#ifndef OUTBOARD_DOCTOR_H
#define OUTBOARD_DOCTOR_H

#include "state/state.h"

/* A place that can hold state, and where it is declared; `file` may be NULL. */
typedef struct {
	const char *kind;
	const char *name;
	const char *file;
	uint32_t line;
} outboard_location;

/* Called for each element or property of a value. */
typedef void (*outboard_element_callback)(
	zend_string *key, zend_ulong index, bool is_property, zval *value, void *arg);

/* doctor/doctor.c */
void outboard_doctor_startup(const outboard_start *start);
void outboard_doctor_examine(void);

/* doctor/fingerprint.c */
uint64_t outboard_fingerprint(zval *value);
void outboard_each_element(zval *value, outboard_element_callback callback, void *arg);

/* doctor/report.c; `first` is the place's first value, or NULL. */
bool outboard_report_begin(const char *path);
void outboard_report_end(void);
void outboard_report_line(const outboard_location *at, int depth, zval *value, zval *first);
void outboard_report_value(const outboard_location *at, zval *value, zval *first);
void outboard_report_text(const char *kind, const char *name, const char *text);
void outboard_report_number(const char *kind, const char *name, zend_long number);

#endif
