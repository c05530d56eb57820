/*
 * What a rewind leaves as it is. Called by rewind.c and by the owners of such variables.
 */
#ifndef OUTBOARD_REWIND_H
#define OUTBOARD_REWIND_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Of a variable that says what this process is in memory that it shares with others. It must not point to
 * memory that the boot or a request has allocated.
 */
#define OUTBOARD_KEPT __attribute__((section("outboard_kept")))

/* rewind/rewind.c: whether this process, or its forks, are rewound after each request. */
extern bool outboard_is_rewinding;

/* process/native_calls.c */
void outboard_native_watch(void);
bool outboard_native_is_possible(void);
bool outboard_native_was_called(void);

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
