/*
 * The engine's start and shutdown, the SAPI's description, and the module with our functions.
 * Called by the zygote once, before the first fork, except for the request hooks at the end.
 */
#include "engine/engine.h"
#include "api/api.h"
#include "request/request.h"
#include "worker/worker.h"
#include <dlfcn.h>

static zend_result request_time(double *time)
{
	if (!outboard_now.request) {
		return FAILURE;
	}
	*time = (double) outboard_now.request->received_us / 1e6;
	return SUCCESS;
}

static int activate(void)
{
	if (outboard_now.request) {
		outboard_user_ini_activate();
	}
	return SUCCESS;
}

/* Runs before the request heap is freed (php_request_shutdown in main.c). */
static int deactivate(void)
{
	if (outboard_now.result) {
		outboard_now.result->peak_memory_bytes = zend_memory_peak_usage(true);
	}
	outboard_input_reset();
	return SUCCESS;
}

/*
 * The gateway sets the name. Classic mode uses "fpm-fcgi": opcache runs only under names that it
 * knows (ZendAccelerator.c), and applications that check PHP_SAPI expect fastcgi_finish_request()
 * and the like.
 */
static sapi_module_struct sapi = {
	.pretty_name = "Outboard",
	.activate = activate,
	.deactivate = deactivate,
	.ub_write = outboard_ub_write,
	.flush = outboard_flush,
	.getenv = outboard_getenv,
	.sapi_error = zend_error,
	.send_headers = outboard_send_headers,
	.read_post = outboard_read_post,
	.read_cookies = outboard_read_cookies,
	.register_server_variables = outboard_register_server_variables,
	.log_message = outboard_log_message,
	.get_request_time = request_time,
	.php_ini_ignore_cwd = 1,
};

/* Names that applications read with ini_get(); the gateway implements their meaning. */
PHP_INI_BEGIN()
	PHP_INI_ENTRY("cgi.fix_pathinfo", "1", PHP_INI_SYSTEM, NULL)
	PHP_INI_ENTRY("cgi.rfc2616_headers", "0", PHP_INI_ALL, NULL)
PHP_INI_END()

static PHP_MINIT_FUNCTION(outboard)
{
	(void) type;
	REGISTER_INI_ENTRIES();
	OUTBOARD_RUN_HOOKS(engine_module);
	return SUCCESS;
}

#define FATAL_ERRORS \
	(E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR)

/*
 * Runs after shutdown functions and destructors, while the last error is still known, so the
 * outcome is decided here. exit(255) alone is not a failure.
 */
static PHP_RSHUTDOWN_FUNCTION(outboard)
{
	(void) type;
	(void) module_number;
	/* PHP has just cleared its own timer (php_request_shutdown in main.c). */
	outboard_time_limit_end();
	if (outboard_now.result && outboard_now.result->outcome == OUTBOARD_FINISHED
		&& EG(exit_status) == 255 && (PG(last_error_type) & FATAL_ERRORS)) {
		outboard_now.result->outcome = OUTBOARD_FAILED;
	}
	/* Keeps sapi_deactivate from waiting for the rest of the body. */
	SG(post_read) = 1;
	return SUCCESS;
}

static PHP_MINFO_FUNCTION(outboard)
{
	(void) zend_module;
	php_info_print_table_start();
	php_info_print_table_row(2, "Outboard", OUTBOARD_VERSION);
	php_info_print_table_end();
	DISPLAY_INI_ENTRIES();
}

static zend_module_entry outboard_module = {
	STANDARD_MODULE_HEADER,
	"outboard",
	outboard_functions,
	PHP_MINIT(outboard),
	NULL,
	NULL,
	PHP_RSHUTDOWN(outboard),
	PHP_MINFO(outboard),
	OUTBOARD_VERSION,
	STANDARD_MODULE_PROPERTIES
};

/*
 * Debian's libraries of all PHP versions share the name libphp.so, and the system's alternatives
 * decide which one is loaded. Another version than that of the build would crash.
 */
static bool library_fits(void)
{
	Dl_info info;
	char path[PATH_MAX];
	int major;
	int minor;
	if (!dladdr(&sapi_module, &info) || !info.dli_fname || !realpath(info.dli_fname, path)) {
		return true;
	}
	const char *name = strrchr(path, '/');
	if (!name || sscanf(name, "/libphp%d.%d.so", &major, &minor) != 2
		|| (major == PHP_MAJOR_VERSION && minor == PHP_MINOR_VERSION)) {
		return true;
	}
	fprintf(stderr, "this outboard-php was built for PHP %d.%d, but %s was loaded: "
		"set LD_LIBRARY_PATH or the alternative libphp8\n",
		PHP_MAJOR_VERSION, PHP_MINOR_VERSION, path);
	return false;
}

/* Each list is there, if only with its end: the code at a station does not look. */
static void check_stations(void)
{
	const void *const *lists = (const void *const *) outboard_stations;
	for (size_t i = 0; i < sizeof(*outboard_stations) / sizeof(*lists); i++) {
		OUTBOARD_ASSERT(lists[i]);
	}
}

/*
 * The strings must live as long as the process. A bailout in here ends the process (exit in
 * zend_bailout), and so may any extension: what was printed until then says why.
 */
bool outboard_engine_start(const char *sapi_name, const char *ini_file, const char *ini_entries)
{
	if (!library_fits()) {
		return false;
	}
	/* Of what extensions print, a process that is killed leaves less than a line in a buffer. Not _IONBF, with which glibc
	 * writes the first byte of each text by itself. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	outboard_stations = &outboard_subjects;
	check_stations();
	zend_signal_startup();
#ifdef ZEND_SIGNALS
	/* Keeps zend_signal_activate from setting PHP's handlers of seven signals again at each request:
	 * nothing here changes them, and SIGUSR2 is ours. */
	SIGG(reset) = 0;
#endif
	sapi.name = (char *) sapi_name;
	sapi.php_ini_path_override = (char *) ini_file;
	sapi_startup(&sapi);
	/* sapi_startup resets ini_entries (SAPI.c). */
	sapi.ini_entries = (char *) ini_entries;
	outboard_sanitizer_prepare();
	if (php_module_startup(&sapi, &outboard_module) == FAILURE) {
		return false;
	}
	OUTBOARD_RUN_HOOKS(engine_started);
	/* script.c changes the directory; php_execute_script would read and restore it as well. */
	SG(options) |= SAPI_OPTION_NO_CHDIR;
	return true;
}

/*
 * Whether opcache compiles the files. It refuses SAPI names that it does not know, and is then
 * loaded without effect. It is a library of its own, and since 8.5 a part of libphp.
 */
static bool opcache_compiles(void)
{
	Dl_info compiler, opcache;
	zend_extension *extension = zend_get_extension("Zend OPcache");
	return extension && zend_compile_file != compile_file
		&& dladdr((void *) zend_compile_file, &compiler)
		&& dladdr((void *) extension->startup, &opcache)
		&& compiler.dli_fbase == opcache.dli_fbase;
}

void outboard_engine_facts_get(outboard_engine_facts *facts)
{
	facts->php_version = zend_get_module_version("standard");
	facts->ini_file = php_ini_opened_path;
	facts->post_max_bytes = (uint64_t) SG(post_max_size);
	facts->opcache = opcache_compiles();
}

/* Forbids ini_set() and .user.ini to change the value; false if there is no such value. */
bool outboard_engine_fix_ini(const char *name, size_t name_len)
{
	zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), name, name_len);
	if (!entry) {
		return false;
	}
	entry->modifiable = ZEND_INI_SYSTEM;
	return true;
}

/* The value of a setting; NULL if there is no such setting. */
const char *outboard_engine_setting(const char *name, size_t name_len)
{
	zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), name, name_len);
	return entry && entry->value ? ZSTR_VAL(entry->value) : NULL;
}

/* Closes persistent connections and lets extensions write their data. */
void outboard_engine_stop(void)
{
	zend_first_try {
		php_module_shutdown();
	} zend_end_try();
}
