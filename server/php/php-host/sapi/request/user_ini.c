/*
 * .user.ini files, and the [HOST=] and [PATH=] sections of php.ini, as php-fpm applies them. Called
 * at each request's activation. The values of a directory are cached for user_ini.cache_ttl
 * seconds.
 */
#include "request/request.h"

typedef struct {
	time_t expires;
	HashTable values;
} directory_values;

static HashTable directories;

static void free_directory(zval *element)
{
	directory_values *directory = Z_PTR_P(element);
	zend_hash_destroy(&directory->values);
	free(directory);
}

void outboard_user_ini_startup(void)
{
	zend_hash_init(&directories, 8, NULL, free_directory, 1);
}

static directory_values *directory_of(const char *path, size_t len)
{
	directory_values *directory = zend_hash_str_find_ptr(&directories, path, len);
	if (!directory) {
		directory = pemalloc(sizeof(*directory), 1);
		directory->expires = 0;
		zend_hash_init(&directory->values, 0, NULL, config_zval_dtor, 1);
		zend_hash_str_update_ptr(&directories, path, len, directory);
	}
	return directory;
}

/* Reads the directory `path[0..len]`; path[len] is a slash. */
static void read_directory(directory_values *directory, char *path, size_t len)
{
	OUTBOARD_ASSERT(path[len] == '/');
	path[len] = '\0';
	php_parse_user_ini_file(path, PG(user_ini_filename), &directory->values);
	path[len] = '/';
}

/*
 * From the document root down to the script's directory; outside of the root only that directory.
 */
static void read_directories(directory_values *directory, char *path, size_t len)
{
	const outboard_str *root = &outboard_now.request->document_root;
	size_t root_len = root->len && root->ptr[root->len - 1] == '/' ? root->len - 1 : root->len;
	bool inside = root_len < len && strncmp(path, root->ptr, root_len) == 0
		&& path[root_len] == '/';
	zend_hash_clean(&directory->values);
	for (size_t at = inside ? root_len : len - 1; at < len; at++) {
		if (path[at] == '/') {
			read_directory(directory, path, at);
		}
	}
}

static void activate_directory(char *path, size_t len)
{
	time_t now = (time_t) sapi_get_request_time();
	directory_values *directory = directory_of(path, len);
	if (now > directory->expires) {
		read_directories(directory, path, len);
		directory->expires = now + PG(user_ini_cache_ttl);
	}
	php_ini_activate_config(&directory->values, PHP_INI_PERDIR, PHP_INI_STAGE_HTACCESS);
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
	const outboard_str *script = &outboard_now.request->script_filename;
	/* Not on the stack, where each coroutine would use a page for it. */
	static char path[PATH_MAX];
	const char *slash = memrchr(script->ptr, '/', script->len);
	bool has_name = PG(user_ini_filename) && *PG(user_ini_filename);
	if (php_ini_has_per_host_config()) {
		activate_host(&outboard_now.request->server_name);
	}
	if (!slash || script->len >= sizeof(path) || !(has_name || php_ini_has_per_dir_config())) {
		return;
	}
	size_t len = (size_t) (slash - script->ptr) + 1;
	memcpy(path, script->ptr, len);
	path[len] = '\0';
	php_ini_activate_per_dir_config(path, len);
	if (has_name) {
		activate_directory(path, len);
	}
}
