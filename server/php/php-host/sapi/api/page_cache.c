/*
 * Outboard\cache_purge(), in every mode: purges pages of the app from the page cache. The gateway
 * has done so when the call returns. src/callbacks/gateway_calls.rs sends the request.
 */
#include "api/api.h"
#include "ext/spl/spl_exceptions.h"

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_cache_purge, 0, 0, IS_LONG, 0)
	ZEND_ARG_TYPE_MASK(0, urls, MAY_BE_ARRAY | MAY_BE_STRING, "[]")
	ZEND_ARG_TYPE_MASK(0, tags, MAY_BE_ARRAY | MAY_BE_STRING, "[]")
	ZEND_ARG_TYPE_MASK(0, prefixes, MAY_BE_ARRAY | MAY_BE_STRING, "[]")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, all, _IS_BOOL, 0, "false")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, soft, _IS_BOOL, 0, "false")
ZEND_END_ARG_INFO()

/* An argument: one string, or an array of them. */
typedef struct {
	char kind;
	HashTable *many;
	zend_string *one;
} argument;

typedef struct {
	char *kinds;
	outboard_str *texts;
	size_t count;
} selectors;

static size_t count_of(const argument *given)
{
	return given->many ? zend_hash_num_elements(given->many) : given->one ? 1 : 0;
}

static void add(selectors *all, char kind, zend_string *text)
{
	all->kinds[all->count] = kind;
	all->texts[all->count] = (outboard_str) {ZSTR_VAL(text), ZSTR_LEN(text)};
	all->count++;
}

/* False, with an exception, if an element is not a string. */
static bool collect(selectors *all, const argument *given, uint32_t position)
{
	if (given->one) {
		add(all, given->kind, given->one);
	}
	if (!given->many) {
		return true;
	}
	zval *element;
	ZEND_HASH_FOREACH_VAL(given->many, element) {
		ZVAL_DEREF(element);
		if (Z_TYPE_P(element) != IS_STRING) {
			zend_argument_type_error(position, "must hold strings only, %s found",
				zend_zval_type_name(element));
			return false;
		}
		add(all, given->kind, Z_STR_P(element));
	} ZEND_HASH_FOREACH_END();
	return true;
}

PHP_FUNCTION(outboard_cache_purge)
{
	argument given[] = {{.kind = 'u'}, {.kind = 't'}, {.kind = 'p'}};
	bool everything = false;
	bool soft = false;
	ZEND_PARSE_PARAMETERS_START(0, 5)
		Z_PARAM_OPTIONAL
		Z_PARAM_ARRAY_HT_OR_STR(given[0].many, given[0].one)
		Z_PARAM_ARRAY_HT_OR_STR(given[1].many, given[1].one)
		Z_PARAM_ARRAY_HT_OR_STR(given[2].many, given[2].one)
		Z_PARAM_BOOL(everything)
		Z_PARAM_BOOL(soft)
	ZEND_PARSE_PARAMETERS_END();
	size_t most = count_of(&given[0]) + count_of(&given[1]) + count_of(&given[2]) + 1;
	selectors all = {safe_emalloc(most, 1, 0), safe_emalloc(most, sizeof(outboard_str), 0), 0};
	bool sound = true;
	for (uint32_t at = 0; sound && at < sizeof(given) / sizeof(given[0]); at++) {
		sound = collect(&all, &given[at], at + 1);
	}
	if (everything) {
		add(&all, 'a', ZSTR_EMPTY_ALLOC());
	}
	int64_t purged = sound
		? outboard_rs_purge(SG(server_context), outboard_host.events, all.kinds, all.texts,
			all.count, soft)
		: 0;
	efree(all.kinds);
	efree(all.texts);
	if (purged < 0) {
		zend_throw_exception(spl_ce_RuntimeException,
			"the page cache cannot be purged here, or a URL or tag is too long", 0);
		return;
	}
	RETVAL_LONG(purged);
}

const zend_function_entry outboard_page_cache_functions[] = {
	ZEND_NS_FENTRY("Outboard", cache_purge, ZEND_FN(outboard_cache_purge), arginfo_cache_purge, 0)
	PHP_FE_END
};
