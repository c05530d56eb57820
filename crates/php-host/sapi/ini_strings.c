/*
 * Texts of ini values that a visit's share of the engine points into. The engine frees a value when the
 * next is set, whoever sets it; SG and PS of the other visits point to it still (OnUpdateString in
 * zend_ini.c). So each visit holds the values that were set while it had the turn.
 *
 * Called by request_state.c. Invariant: what SG and PS of a visit point to lives until the visit has ended.
 */
#include "worker_mode.h"

typedef struct {
	zend_ini_entry *entry;
	ZEND_INI_MH((*apply));
} setting;

/* Those of SG and PS. */
static setting settings[64];
static size_t count;

static const setting *setting_of(const zend_ini_entry *entry)
{
	size_t at = 0;
	while (settings[at].entry != entry) {
		at++;
	}
	return &settings[at];
}

static void release(zval *value)
{
	zend_string_release(Z_STR_P(value));
}

static ZEND_INI_MH(apply_and_hold)
{
	const setting *one = setting_of(entry);
	int applied = one->apply(entry, new_value, mh_arg1, mh_arg2, mh_arg3, stage);
	if (applied == SUCCESS && new_value && !ZSTR_IS_INTERNED(new_value)) {
		HashTable *held = outboard_active_state->ini_strings;
		zval value;
		if (!held) {
			held = pemalloc(sizeof(*held), 1);
			zend_hash_init(held, 8, NULL, release, true);
			outboard_active_state->ini_strings = held;
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
	ZEND_HASH_FOREACH_PTR(EG(ini_directives), entry) {
		bool is_of_visit = entry->mh_arg2 == &sapi_globals || entry->mh_arg2 == &ps_globals;
		if (is_of_visit && entry->on_modify && count < sizeof(settings) / sizeof(settings[0])) {
			settings[count++] = (setting) {entry, entry->on_modify};
			entry->on_modify = apply_and_hold;
		}
	} ZEND_HASH_FOREACH_END();
}

/* A visit begins with what the boot's share points to. */
void outboard_ini_strings_begin(outboard_request_state *state)
{
	const HashTable *held = outboard_boot_state.ini_strings;
	if (held) {
		state->ini_strings = pemalloc(sizeof(*held), 1);
		zend_hash_init(state->ini_strings, zend_hash_num_elements(held), NULL, release, true);
		zend_hash_copy(state->ini_strings, (HashTable *) held, zval_add_ref);
	}
}

/* Its share of the engine is out of use. */
void outboard_ini_strings_end(outboard_request_state *state)
{
	if (state->ini_strings) {
		zend_hash_destroy(state->ini_strings);
		pefree(state->ini_strings, 1);
		state->ini_strings = NULL;
	}
}
