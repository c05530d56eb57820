/*
 * What filter_input() reads: the arrays of ext/filter, as in its php_filter.h.
 */
#ifndef OUTBOARD_FILTER_H
#define OUTBOARD_FILTER_H

#include "shim.h"
#include "ext/filter/php_filter.h"

typedef zend_filter_globals outboard_filter_inputs;

/* NULL without the extension. */
extern outboard_filter_inputs *outboard_filter;
void outboard_filter_startup(void);

/* Whether variables are stored otherwise than they came (`filter.default`). */
bool outboard_filter_changes_input(void);

/* Lets filter_input(INPUT_SERVER) see the same as $_SERVER. */
void outboard_filter_set_server(zval *variables);

#endif
