/*
 * The C library's caches of locales and of conversions of characters, as some that a rewound worker keeps warm
 * (warm_caches.c). The library maps those files at the first use and keeps most of them; a request that
 * maps them anew takes the time for that, and has the rewind look at all mappings.
 *
 * Replaces setlocale() and iconv_open() for PHP and its extensions (build.rs), to note what a request uses; the notes
 * are put back with all other memory.
 */
#include "rewind/rewind.h"
#include "interpose.h"
#include "ext/standard/basic_functions.h"
#include <iconv.h>
#include <locale.h>
#include <stdlib.h>

#define NOTES 32
#define NAME_BYTES 256

typedef struct {
	outboard_cache cache;
	char first[NAME_BYTES]; /* a category as one character, or the target */
	char second[NAME_BYTES]; /* a name, or the source */
} use;

static use uses[NOTES];
static size_t count;

/* Those from this one on are of the present request; the others are in the library's memory. */
static size_t known;

static bool is_noted(outboard_cache cache, const char *first, const char *second)
{
	for (size_t i = 0; i < count; i++) {
		const use *one = &uses[i];
		if (one->cache == cache && strcmp(one->first, first) == 0 && strcmp(one->second, second) == 0) {
			return true;
		}
	}
	return false;
}

static void note(outboard_cache cache, const char *first, const char *second)
{
	if (outboard_host.is_rewinding && count < NOTES && strlen(first) < NAME_BYTES
		&& strlen(second) < NAME_BYTES && !is_noted(cache, first, second)) {
		use *new = &uses[count++];
		new->cache = cache;
		strcpy(new->first, first);
		strcpy(new->second, second);
	}
}

static void note_locale(int category, const char *name)
{
	const char text[] = {(char) ('0' + category), '\0'};
	note(OUTBOARD_LOCALES, text, name);
}

char *setlocale(int category, const char *name)
{
	REAL(setlocale);
	char *set = real(category, name);
	if (set && name) {
		note_locale(category, set);
	}
	return set;
}

iconv_t iconv_open(const char *to, const char *from)
{
	REAL(iconv_open);
	iconv_t conversion = real(to, from);
	if (conversion != (iconv_t) -1) {
		note(OUTBOARD_CONVERSIONS, to, from);
	}
	return conversion;
}

/* That of the boot is not set again by a request, but is in use. */
void outboard_libc_caches_begin(void)
{
	if (BG(ctype_string)) {
		note_locale(LC_CTYPE, ZSTR_VAL(BG(ctype_string)));
	}
	known = count;
}

/*
 * The length of the locale in front of a key of the engine; 0 without one. PHP has forgotten it at the end of a
 * request.
 */
size_t outboard_locale_prefix(const char *key, size_t len)
{
	size_t longest = 0;
	for (size_t i = 0; i < count; i++) {
		const char *name = uses[i].second;
		const size_t name_len = strlen(name);
		/* "C" is in no key. */
		if (uses[i].cache == OUTBOARD_LOCALES && name_len > 1 && name_len > longest && name_len < len
			&& memcmp(key, name, name_len) == 0) {
			longest = name_len;
		}
	}
	return longest;
}

void outboard_libc_caches_note(void)
{
	OUTBOARD_ASSERT(known <= count && count <= NOTES);
	for (size_t i = known; i < count; i++) {
		const use *used = &uses[i];
		outboard_rs_cache_used(outboard_host.events, (uint8_t) used->cache, used->first,
			strlen(used->first), used->second, strlen(used->second));
	}
}

/* The library keeps what it has read of a locale. */
void outboard_locale_add(const char *category, const char *name)
{
	OUTBOARD_ASSERT(*category >= '0' && category[1] == 0);
	char *before = strdup(setlocale(LC_ALL, NULL));
	if (before) {
		setlocale(*category - '0', name);
		setlocale(LC_ALL, before);
	}
	free(before);
}

/* It is never closed, since the library unloads what no conversion uses. */
void outboard_conversion_add(const char *to, const char *from)
{
	(void) iconv_open(to, from);
}
