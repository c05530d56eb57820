/*
 * Strings of ini values that a request's SG and PS point to. The engine frees a value when the next
 * one is set, by any request (OnUpdateString in zend_ini.c), so each request keeps references to
 * the values that were set while it was active.
 *
 * Called by request_state.c. Invariant: strings that SG and PS of a request point to live until it
 * has ended.
 */
#include "state/state.h"

typedef struct {
	zend_ini_entry *entry;
	ZEND_INI_MH((*apply));
} setting;

/* The settings in SG and PS. */
static setting settings[64];
static size_t count;

static const setting *setting_of(const zend_ini_entry *entry)
{
	size_t at = 0;
	while (settings[at].entry != entry) {
		OUTBOARD_ASSERT(at + 1 < count);
		at++;
	}
	return &settings[at];
}

static void release(zval *value)
{
	zend_string_release(Z_STR_P(value));
}

static ZEND_INI_MH(apply_and_retain)
{
	const setting *one = setting_of(entry);
	int applied = one->apply(entry, new_value, mh_arg1, mh_arg2, mh_arg3, stage);
	if (applied == SUCCESS && new_value && !ZSTR_IS_INTERNED(new_value)) {
		HashTable *held = outboard_now.state->ini_strings;
		zval value;
		if (!held) {
			held = pemalloc(sizeof(*held), 1);
			zend_hash_init(held, 8, NULL, release, true);
			outboard_now.state->ini_strings = held;
		}
		ZVAL_STR_COPY(&value, new_value);
		zend_hash_update(held, entry->name, &value);
	}
	return applied;
}

/* Before the script boots. */
void outboard_ini_strings_startup(void)
{
	zend_ini_entry *entry;
	OUTBOARD_ASSERT(count == 0);
	ZEND_HASH_FOREACH_PTR(EG(ini_directives), entry) {
		bool is_per_request = entry->mh_arg2 == &sapi_globals || entry->mh_arg2 == &ps_globals;
		if (is_per_request && entry->on_modify && count < sizeof(settings) / sizeof(settings[0])) {
			settings[count++] = (setting) {entry, entry->on_modify};
			entry->on_modify = apply_and_retain;
		}
	} ZEND_HASH_FOREACH_END();
}

/* A request begins with the boot's values. */
void outboard_ini_strings_begin(outboard_request_state *state)
{
	const HashTable *held = outboard_boot_state.ini_strings;
	OUTBOARD_ASSERT(!state->ini_strings);
	if (held) {
		state->ini_strings = pemalloc(sizeof(*held), 1);
		zend_hash_init(state->ini_strings, zend_hash_num_elements(held), NULL, release, true);
		zend_hash_copy(state->ini_strings, (HashTable *) held, zval_add_ref);
	}
}

/* After the request's state has left the engine. */
void outboard_ini_strings_end(outboard_request_state *state)
{
	/* What SG and PS point to is not freed while the engine has them. */
	OUTBOARD_ASSERT(state != outboard_now.state);
	if (state->ini_strings) {
		zend_hash_destroy(state->ini_strings);
		pefree(state->ini_strings, 1);
		state->ini_strings = NULL;
	}
}
