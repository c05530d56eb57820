/*
 * ext/filter's copies of the input, for filter_input(). It exports nothing, but one of its ini
 * entries has the address of its globals. Called by variables.c and request_state.c.
 */
#include "request/filter.h"

outboard_filter_inputs *outboard_filter;

/* From ext/filter/filter_private.h, which is not installed. */
#define FILTER_UNSAFE_RAW 0x0204

/*
 * The entry's first argument is the offset of the setting, its second the address of the globals.
 */
void outboard_filter_startup(void)
{
	zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("filter.default"));
	bool known = entry && entry->mh_arg2
		&& (size_t) entry->mh_arg1 == offsetof(outboard_filter_inputs, default_filter);
	outboard_filter = known ? entry->mh_arg2 : NULL;
}

bool outboard_filter_changes_input(void)
{
	return outboard_filter ? outboard_filter->default_filter != FILTER_UNSAFE_RAW
		: sapi_module.input_filter != php_default_input_filter;
}

/* The filter would copy each variable, which costs as much as registering them. */
void outboard_filter_set_server(zval *variables)
{
	if (outboard_filter) {
		zval_ptr_dtor(&outboard_filter->server_array);
		ZVAL_ARR(&outboard_filter->server_array, zend_array_dup(Z_ARRVAL_P(variables)));
	}
}
