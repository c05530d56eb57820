/*
 * The engine's start. One block per file.
 */
#ifndef OUTBOARD_ENGINE_H
#define OUTBOARD_ENGINE_H

#include "shim.h"

/* engine/subjects.c */
extern const outboard_hooks outboard_subjects;

/* engine/sanitizer.c */
extern const zend_function_entry outboard_sanitizer_functions[];
void outboard_sanitizer_prepare(void);
void outboard_sanitizer_startup(void);

#endif
