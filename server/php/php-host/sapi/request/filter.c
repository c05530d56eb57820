/*
 * ext/filter's copies of the input, for filter_input(). It exports nothing, but one of its ini
 * entries has the address of its globals. Called by variables.c and request_state.c.
 */
#include "request/request.h"
#include "request/filter.h"

/* NULL without the extension. */
static outboard_filter_inputs *inputs_now;

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
	inputs_now = known ? entry->mh_arg2 : NULL;
}

void outboard_filter_save(outboard_filter_inputs *inputs)
{
	if (inputs_now) {
		*inputs = *inputs_now;
	}
}

void outboard_filter_restore(const outboard_filter_inputs *inputs)
{
	if (inputs_now) {
		*inputs_now = *inputs;
	}
}

bool outboard_filter_changes_input(void)
{
	return inputs_now ? inputs_now->default_filter != FILTER_UNSAFE_RAW
		: sapi_module.input_filter != php_default_input_filter;
}

/* The filter would copy each variable, which costs as much as registering them. */
void outboard_filter_set_server(zval *variables)
{
	if (inputs_now) {
		zval_ptr_dtor(&inputs_now->server_array);
		ZVAL_ARR(&inputs_now->server_array, zend_array_dup(Z_ARRVAL_P(variables)));
	}
}
