/*
 * The arrays of ext/filter that filter_input() reads, as declared in its php_filter.h.
 */
#ifndef OUTBOARD_FILTER_H
#define OUTBOARD_FILTER_H

#include "shim.h"
#include "ext/filter/php_filter.h"

typedef zend_filter_globals outboard_filter_inputs;

void outboard_filter_startup(void);

/* Without the extension these two do nothing. */
void outboard_filter_save(outboard_filter_inputs *inputs);
void outboard_filter_restore(const outboard_filter_inputs *inputs);

/* Whether a default filter changes variables (`filter.default`). */
bool outboard_filter_changes_input(void);

/* Lets filter_input(INPUT_SERVER) read the values of $_SERVER. */
void outboard_filter_set_server(zval *variables);

#endif
