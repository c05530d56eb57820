/*
 * The rewind of a worker after each request, and what it adds to what it puts back. One block per file.
 */
#ifndef OUTBOARD_REWIND_H
#define OUTBOARD_REWIND_H

#include "coroutine/coroutine.h"
#include "kept.h"
#include "process/process.h"

/* rewind/rewind.c */
void outboard_rewind_mark(void);
void outboard_rewind(void);
void outboard_rewind_to_mark(void);

/* rewind/warm_caches.c */
void outboard_warm_caches_begin(void);
void outboard_warm_caches_note(void);
bool outboard_warm_caches_add(void);

/* Which of them an entry is of. */
typedef enum {
	OUTBOARD_REGEX_CACHE,
	OUTBOARD_LOCALES,
	OUTBOARD_CONVERSIONS,
} outboard_cache;

/* rewind/regex_cache.c */
void outboard_regex_cache_begin(void);
void outboard_regex_cache_note(void);
void outboard_regex_cache_add(const char *locale, const char *pattern, size_t len);

/* rewind/libc_caches.c */
void outboard_libc_caches_begin(void);
void outboard_libc_caches_note(void);
size_t outboard_locale_prefix(const char *key, size_t len);
void outboard_locale_add(const char *category, const char *name);
void outboard_conversion_add(const char *to, const char *from);

/* rewind/randomness.c */
void outboard_randomness_prepare(void);
void outboard_randomness_renew(void);

#endif
