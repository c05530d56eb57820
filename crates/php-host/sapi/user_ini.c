/*
 * .user.ini files, and the [HOST=] and [PATH=] sections of php.ini, as php-fpm applies them.
 * Called at each request's activation. What was read of a folder is kept for
 * user_ini.cache_ttl seconds.
 */
#include "shim.h"

typedef struct {
	time_t expires;
	HashTable values;
} folder_values;

static HashTable folders;

static void free_folder(zval *element)
{
	folder_values *folder = Z_PTR_P(element);
	zend_hash_destroy(&folder->values);
	free(folder);
}

void outboard_user_ini_startup(void)
{
	zend_hash_init(&folders, 8, NULL, free_folder, 1);
}

static folder_values *folder_of(const char *path, size_t len)
{
	folder_values *folder = zend_hash_str_find_ptr(&folders, path, len);
	if (!folder) {
		folder = pemalloc(sizeof(*folder), 1);
		folder->expires = 0;
		zend_hash_init(&folder->values, 0, NULL, config_zval_dtor, 1);
		zend_hash_str_update_ptr(&folders, path, len, folder);
	}
	return folder;
}

/* Reads `path[0..len]` as a folder; path[len] is a slash. */
static void read_folder(folder_values *folder, char *path, size_t len)
{
	path[len] = '\0';
	php_parse_user_ini_file(path, PG(user_ini_filename), &folder->values);
	path[len] = '/';
}

/* From the document root down to the script's folder; outside of the root that folder alone. */
static void read_folders(folder_values *folder, char *path, size_t len)
{
	const outboard_str *root = &outboard_current->document_root;
	size_t root_len = root->len && root->ptr[root->len - 1] == '/' ? root->len - 1 : root->len;
	bool inside = root_len < len && strncmp(path, root->ptr, root_len) == 0
		&& path[root_len] == '/';
	zend_hash_clean(&folder->values);
	for (size_t at = inside ? root_len : len - 1; at < len; at++) {
		if (path[at] == '/') {
			read_folder(folder, path, at);
		}
	}
}

static void activate_folder(char *path, size_t len)
{
	time_t now = (time_t) sapi_get_request_time();
	folder_values *folder = folder_of(path, len);
	if (now > folder->expires) {
		read_folders(folder, path, len);
		folder->expires = now + PG(user_ini_cache_ttl);
	}
	php_ini_activate_config(&folder->values, PHP_INI_PERDIR, PHP_INI_STAGE_HTACCESS);
}

static void activate_host(const outboard_str *server_name)
{
	char host[256];
	if (server_name->len < sizeof(host)) {
		zend_str_tolower_copy(host, server_name->ptr, server_name->len);
		php_ini_activate_per_host_config(host, server_name->len);
	}
}

void outboard_user_ini_activate(void)
{
	const outboard_str *script = &outboard_current->script_filename;
	/* Not on the stack: each coroutine would keep that page of its own. */
	static char path[PATH_MAX];
	const char *slash = memrchr(script->ptr, '/', script->len);
	bool has_name = PG(user_ini_filename) && *PG(user_ini_filename);
	if (php_ini_has_per_host_config()) {
		activate_host(&outboard_current->server_name);
	}
	if (!slash || script->len >= sizeof(path) || !(has_name || php_ini_has_per_dir_config())) {
		return;
	}
	size_t len = (size_t) (slash - script->ptr) + 1;
	memcpy(path, script->ptr, len);
	path[len] = '\0';
	php_ini_activate_per_dir_config(path, len);
	if (has_name) {
		activate_folder(path, len);
	}
}
