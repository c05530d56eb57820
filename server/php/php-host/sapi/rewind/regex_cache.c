/*
 * The engine's cache of compiled regular expressions, as one of the caches that a rewound worker keeps warm
 * (warm_caches.c). Its keys are the patterns, in front of them the locale of character types if a script has set one.
 *
 * Invariant: while an entry is brought in no script runs, and nothing is reported.
 */
#include "rewind/rewind.h"
#include "ext/pcre/php_pcre.h"
#include "ext/standard/basic_functions.h"
#include <locale.h>
#include <stdlib.h>

/* The entries of the cache from this one on are of the present request. */
static uint32_t known;

void outboard_regex_cache_begin(void)
{
	known = PCRE_G(pcre_cache).nNumUsed;
}

/* It begins with a delimiter, and no name of a locale does: that of one which is not known would be taken for one. */
static bool is_pattern(char first)
{
	return !isalnum((unsigned char) first);
}

void outboard_regex_cache_note(void)
{
	const HashTable *cache = &PCRE_G(pcre_cache);
	OUTBOARD_ASSERT(known <= cache->nNumUsed);
	for (uint32_t i = known; i < cache->nNumUsed; i++) {
		const Bucket *entry = &cache->arData[i];
		if (Z_TYPE(entry->val) == IS_UNDEF || !entry->key) {
			continue;
		}
		const size_t locale = outboard_locale_prefix(ZSTR_VAL(entry->key), ZSTR_LEN(entry->key));
		const char *pattern = ZSTR_VAL(entry->key) + locale;
		if (is_pattern(*pattern)) {
			outboard_rs_cache_used(outboard_host.events, OUTBOARD_REGEX_CACHE, ZSTR_VAL(entry->key), locale,
				pattern, ZSTR_LEN(entry->key) - locale);
		}
	}
}

/* It was compiled before, so it fails for want of memory alone. */
static void compile(const char *pattern, size_t len)
{
	OUTBOARD_ASSERT(EG(error_reporting) == 0 && Z_ISUNDEF(EG(user_error_handler)));
	zend_string *regex = zend_string_init(pattern, len, true);
	zend_try {
		pcre_get_compiled_regex_cache(regex);
	} zend_end_try();
	zend_string_release_ex(regex, true);
}

/* Without a locale: the pattern alone is the key, whatever the boot has set. */
static void compile_for(zend_string *locale, const char *pattern, size_t len)
{
	zend_string *present = BG(ctype_string);
	BG(ctype_string) = locale;
	compile(pattern, len);
	BG(ctype_string) = present;
}

static void compile_in(const char *locale, const char *pattern, size_t len)
{
	char *present = strdup(setlocale(LC_CTYPE, NULL));
	if (present && setlocale(LC_CTYPE, locale)) {
		zend_string *name = zend_string_init(locale, strlen(locale), true);
		compile_for(name, pattern, len);
		zend_string_release_ex(name, true);
		setlocale(LC_CTYPE, present);
	}
	free(present);
}

void outboard_regex_cache_add(const char *locale, const char *pattern, size_t len)
{
	const int reporting = EG(error_reporting);
	zval handler;
	ZVAL_COPY_VALUE(&handler, &EG(user_error_handler));
	ZVAL_UNDEF(&EG(user_error_handler));
	EG(error_reporting) = 0;
	if (*locale) {
		compile_in(locale, pattern, len);
	} else {
		compile_for(NULL, pattern, len);
	}
	EG(error_reporting) = reporting;
	ZVAL_COPY_VALUE(&EG(user_error_handler), &handler);
}
