/*
 * Caches of the process that a rewound worker keeps warm. Under php-fpm a process fills such a cache once; a worker
 * that is put back to its snapshot would fill it in each request. So what several requests have used is brought in
 * once more between two requests, and becomes part of the memory to which this worker is put back
 * (src/rewind/warm_caches.rs).
 *
 * Called by rewind.c. Invariants: no script runs meanwhile; an entry is the same whichever request needs it, so that a
 * program can tell by the time alone.
 */
#include "rewind/rewind.h"

/* What is noted from now on is of the present request. */
void outboard_warm_caches_begin(void)
{
	outboard_regex_cache_begin();
	outboard_libc_caches_begin();
}

/* At the end of a request, before it is undone. */
void outboard_warm_caches_note(void)
{
	if (outboard_rs_learns(outboard_host.events)) {
		outboard_regex_cache_note();
		outboard_libc_caches_note();
	}
}

static void add(outboard_cache cache, const char *key, size_t len)
{
	const char *second = key + strlen(key) + 1;
	OUTBOARD_ASSERT((size_t) (second - key) <= len);
	switch (cache) {
	case OUTBOARD_REGEX_CACHE:
		outboard_regex_cache_add(key, second, len - (size_t) (second - key));
		break;
	case OUTBOARD_LOCALES:
		outboard_locale_add(key, second);
		break;
	case OUTBOARD_CONVERSIONS:
		outboard_conversion_add(key, second);
		break;
	}
}

/* Between two requests: brings in what is due. Returns whether the memory has changed for good. */
bool outboard_warm_caches_add(void)
{
	size_t len;
	uint8_t cache;
	const char *key = outboard_rs_next_due(outboard_host.events, &cache, &len);
	if (!key) {
		return false;
	}
	for (; key; key = outboard_rs_next_due(outboard_host.events, &cache, &len)) {
		add((outboard_cache) cache, key, len);
	}
	outboard_warm_caches_begin();
	/* Memory that was mapped for the entries stays. */
	outboard_mapping_changes_begin();
	return true;
}
