/*
 * Ini values: saves those of the boot, with which each request begins. Called by reset.c, and by
 * a hook for the session's path.
 */
#include "reset/reset.h"

static HashTable baseline_ini;

/* Saves the strings themselves, because extensions point to them (OnUpdateString in zend_ini.c). */
void outboard_save_ini(void)
{
	zend_ini_entry *entry;
	zend_hash_init(&baseline_ini, 8, NULL, NULL, true);
	if (!EG(modified_ini_directives)) {
		return;
	}
	ZEND_HASH_FOREACH_PTR(EG(modified_ini_directives), entry) {
		if (entry->value) {
			zend_hash_update_ptr(&baseline_ini, entry->name, zend_string_copy(entry->value));
		}
	} ZEND_HASH_FOREACH_END();
}

/*
 * Applications set it once, in the first request that needs a session (Symfony's
 * session.handler.native_file), so it stays.
 */
static bool is_session_path(const zend_string *name)
{
	return zend_string_equals_literal(name, "session.save_path");
}

/* At the beginning of a request, which has the boot's session globals. */
void outboard_reset_session_path(void)
{
	static zend_ini_entry *entry;
	if (!entry) {
		entry = zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("session.save_path"));
	}
	if (entry && entry->modified && entry->on_modify && entry->value) {
		entry->on_modify(entry, entry->value, entry->mh_arg1, entry->mh_arg2, entry->mh_arg3,
			PHP_INI_STAGE_RUNTIME);
	}
}

static bool is_as_booted(const zend_ini_entry *entry)
{
	if (is_session_path(entry->name)) {
		return true;
	}
	zend_string *was = zend_hash_find_ptr(&baseline_ini, entry->name);
	return was && entry->value && zend_string_equals(was, entry->value);
}

/* In this stage no extension refuses (ext/session/session.c does once the head was sent). */
static void restore_ini(zend_string *name)
{
	zend_string *was = zend_hash_find_ptr(&baseline_ini, name);
	if (was) {
		zend_alter_ini_entry(name, was, PHP_INI_SYSTEM, PHP_INI_STAGE_DEACTIVATE);
	} else {
		zend_restore_ini_entry(name, PHP_INI_STAGE_DEACTIVATE);
	}
}

/* One at a time: restoring a value may remove it from the list. */
static zend_ini_entry *changed_ini(void)
{
	zend_ini_entry *entry;
	ZEND_HASH_FOREACH_PTR(EG(modified_ini_directives), entry) {
		if (!is_as_booted(entry)) {
			return entry;
		}
	} ZEND_HASH_FOREACH_END();
	return NULL;
}

void outboard_reset_ini(void)
{
	uint32_t left = EG(modified_ini_directives)
		? zend_hash_num_elements(EG(modified_ini_directives)) : 0;
	zend_ini_entry *entry;
	zend_string *name;
	while (left-- > 0 && (entry = changed_ini())) {
		restore_ini(entry->name);
	}
	/* Values that ini_restore() has removed from the list. */
	ZEND_HASH_FOREACH_STR_KEY(&baseline_ini, name) {
		entry = zend_hash_find_ptr(EG(ini_directives), name);
		if (entry && !is_as_booted(entry)) {
			restore_ini(name);
		}
	} ZEND_HASH_FOREACH_END();
}
