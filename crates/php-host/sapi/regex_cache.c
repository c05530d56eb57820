/*
 * The engine's cache of compiled regular expressions, over rewinds. Under php-fpm a process compiles a pattern
 * once; a worker that is put back to its snapshot would compile it again in each request. So what several
 * requests have compiled is compiled once more between two requests, and becomes part of the memory to which
 * this worker is put back (src/rewind/patterns.rs). A cached pattern is what its text says, so that no program can
 * tell but by the time.
 *
 * Called by rewind.c. Invariant: no script runs meanwhile, and nothing is reported.
 */
#include "shim.h"
#include "rewind.h"
#include "ext/pcre/php_pcre.h"
#include "ext/standard/basic_functions.h"

/* The entries of the cache from this one on are of the present request. */
static uint32_t known;

/* With another character type than that of "C" the keys are not the patterns alone. */
static bool has_plain_keys(void)
{
	return BG(ctype_string) == NULL;
}

void outboard_regex_cache_begin(void)
{
	known = PCRE_G(pcre_cache).nNumUsed;
}

/* At the end of a request, before it is undone. */
void outboard_regex_cache_note(void)
{
	const HashTable *cache = &PCRE_G(pcre_cache);
	if (!has_plain_keys() || !outboard_rs_learns_patterns(outboard_events)) {
		return;
	}
	for (uint32_t i = known; i < cache->nNumUsed; i++) {
		const Bucket *entry = &cache->arData[i];
		if (Z_TYPE(entry->val) != IS_UNDEF && entry->key) {
			outboard_rs_pattern_compiled(outboard_events, ZSTR_VAL(entry->key),
				ZSTR_LEN(entry->key));
		}
	}
}

/* It was compiled before, so it fails for want of memory alone. */
static void compile(const char *pattern, size_t len)
{
	zend_string *regex = zend_string_init(pattern, len, true);
	zend_try {
		pcre_get_compiled_regex_cache(regex);
	} zend_end_try();
	zend_string_release_ex(regex, true);
}

/* Between two requests: compiles what is due. Returns whether the memory has changed for good. */
bool outboard_regex_cache_prime(void)
{
	size_t len;
	const char *pattern = has_plain_keys() ? outboard_rs_next_pattern(outboard_events, &len) : NULL;
	if (!pattern) {
		return false;
	}
	const int reporting = EG(error_reporting);
	zval handler;
	ZVAL_COPY_VALUE(&handler, &EG(user_error_handler));
	ZVAL_UNDEF(&EG(user_error_handler));
	EG(error_reporting) = 0;
	for (; pattern; pattern = outboard_rs_next_pattern(outboard_events, &len)) {
		compile(pattern, len);
	}
	EG(error_reporting) = reporting;
	ZVAL_COPY_VALUE(&EG(user_error_handler), &handler);
	outboard_regex_cache_begin();
	/* Memory that was mapped for the compiled patterns stays. */
	outboard_mapping_changes_begin();
	return true;
}
