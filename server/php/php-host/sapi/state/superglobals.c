/*
 * The superglobals of requests in worker mode: imports them, and swaps them when another request
 * becomes active. Called by request_state.c.
 *
 * Invariant: the symbol table has the superglobals of the active request only.
 */
#include "state/state.h"

static const char *const names[OUTBOARD_SUPERGLOBALS] = {
	"_GET", "_POST", "_COOKIE", "_FILES", "_REQUEST", "_SERVER", "_SESSION",
};
/* All but $_SESSION, which is not imported from the request. */
#define IMPORTED 6

static zend_string *keys[OUTBOARD_SUPERGLOBALS];
static zend_auto_global *importers[OUTBOARD_SUPERGLOBALS];

void outboard_superglobals_startup(void)
{
	for (int i = 0; i < OUTBOARD_SUPERGLOBALS; i++) {
		keys[i] = zend_string_init_interned(names[i], strlen(names[i]), true);
		importers[i] = zend_hash_find_ptr(CG(auto_globals), keys[i]);
		OUTBOARD_ASSERT(importers[i] || i >= IMPORTED);
	}
}

/*
 * The superglobal's entry in the symbol table, or NULL. It stays in its bucket until the table
 * grows or is packed; the bucket's key shows that.
 */
static zval *entry_of(int i)
{
	static uint32_t buckets[OUTBOARD_SUPERGLOBALS];
	const HashTable *table = &EG(symbol_table);
	if (buckets[i] < table->nNumUsed) {
		Bucket *bucket = table->arData + buckets[i];
		if (bucket->key == keys[i] && Z_TYPE(bucket->val) != IS_UNDEF) {
			return &bucket->val;
		}
	}
	zval *entry = zend_hash_find_known_hash(table, keys[i]);
	if (entry) {
		buckets[i] = (uint32_t) ((Bucket *) entry - table->arData);
	}
	return entry;
}

/* Returns whether the table has a superglobal that `wanted` lacks. */
bool outboard_superglobals_exchange(zval *saved, const zval *wanted)
{
	bool has_unset = false;
	for (int i = 0; i < OUTBOARD_SUPERGLOBALS; i++) {
		zval *entry = entry_of(i);
		if (entry) {
			OUTBOARD_ASSERT(Z_TYPE_P(entry) != IS_UNDEF && saved != wanted);
			ZVAL_COPY_VALUE(&saved[i], entry);
			if (Z_ISUNDEF(wanted[i])) {
				ZVAL_NULL(entry);
				has_unset = true;
			} else {
				ZVAL_COPY_VALUE(entry, &wanted[i]);
			}
		} else {
			ZVAL_UNDEF(&saved[i]);
			if (!Z_ISUNDEF(wanted[i])) {
				zend_hash_add_new(&EG(symbol_table), keys[i], (zval *) &wanted[i]);
			}
		}
	}
	return has_unset;
}

void outboard_superglobals_save_armed(bool *armed)
{
	for (int i = 0; i < IMPORTED; i++) {
		armed[i] = importers[i]->armed;
	}
}

void outboard_superglobals_restore_armed(const bool *armed)
{
	for (int i = 0; i < IMPORTED; i++) {
		importers[i]->armed = armed[i];
	}
}

/*
 * Another request may have compiled a file that mentions a superglobal while this one waited; the
 * file is not compiled again.
 */
void outboard_superglobals_import_mentioned(void)
{
	for (int i = 0; i < IMPORTED; i++) {
		if (importers[i]->armed && entry_of(i)) {
			importers[i]->armed = importers[i]->auto_global_callback(importers[i]->name);
		}
	}
}

/* Indices of `names`. */
enum { GET, POST, COOKIE, FILES };
static const int tracked[] = {TRACK_VARS_GET, TRACK_VARS_POST, TRACK_VARS_COOKIE, TRACK_VARS_FILES};

static bool is_empty(int i)
{
	switch (i) {
	case GET:
		return !SG(request_info).query_string || !*SG(request_info).query_string;
	case COOKIE:
		return !SG(request_info).cookie_data;
	case POST:
	case FILES:
		return strcasecmp(SG(request_info).request_method, "POST") != 0;
	default:
		return false;
	}
}

/*
 * An empty superglobal is the engine's immutable empty array, which costs nothing to create or
 * free. It is disarmed then: PHP's importers add a reference to the array they find, which this one
 * does not allow.
 */
static bool import_empty(int i)
{
	if (!is_empty(i)) {
		return false;
	}
	OUTBOARD_ASSERT(i <= FILES);
	zval *entry = entry_of(i);
	ZVAL_EMPTY_ARRAY(&PG(http_globals)[tracked[i]]);
	if (entry) {
		ZVAL_EMPTY_ARRAY(entry);
	} else {
		zend_hash_add_new(&EG(symbol_table), keys[i], &PG(http_globals)[tracked[i]]);
	}
	importers[i]->armed = false;
	return true;
}

/*
 * As php_hash_environment: the importers read the request and write PG(http_globals) and the
 * symbol table. With auto_globals_jit, $_SERVER and $_REQUEST are imported only if some script has
 * mentioned them, because a compiled script does not mention them again.
 */
void outboard_superglobals_import(void)
{
	for (int i = 0; i < IMPORTED; i++) {
		if (importers[i]->jit && !entry_of(i)) {
			importers[i]->armed = true;
		} else if (!import_empty(i)) {
			importers[i]->armed = importers[i]->auto_global_callback(importers[i]->name);
		}
	}
}

void outboard_superglobals_free(void)
{
	for (int i = 0; i < 6; i++) {
		zval_ptr_dtor(&PG(http_globals)[i]);
		ZVAL_UNDEF(&PG(http_globals)[i]);
	}
	for (int i = 0; i < OUTBOARD_SUPERGLOBALS; i++) {
		zval *entry = entry_of(i);
		if (entry) {
			zval old;
			ZVAL_COPY_VALUE(&old, entry);
			ZVAL_NULL(entry);
			zval_ptr_dtor(&old);
		}
	}
}
