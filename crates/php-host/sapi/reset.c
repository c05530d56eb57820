/*
 * What a request may change of the process beyond its visit's state, and how it is put back:
 * ini values, environment, working directory, umask, locale, time zone, mbstring, libxml,
 * open transactions. Called by visit.c after each request.
 *
 * Functions that change such a thing are wrapped, so that a request which calls none of them costs
 * nothing here. Invariant: after a request everything in the list is as it was when the script
 * first asked for one.
 */
#include "visit.h"
#include "ext/random/php_random.h"
#include "ext/standard/basic_functions.h"
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

enum dirt {
	ENVIRONMENT = 1,
	DIRECTORY = 2,
	UMASK = 4,
	LOCALE = 8,
	TIME_ZONE = 16,
	MBSTRING = 32,
	LIBXML = 64,
	TRANSACTION = 128,
};

static uint32_t dirt;

static char **baseline_environment;
static char baseline_directory[PATH_MAX];
static mode_t baseline_umask;
static char *baseline_locale;
static zval baseline_time_zone;
static HashTable baseline_ini;

static void note_ini(void)
{
	zend_ini_entry *entry;
	zend_hash_init(&baseline_ini, 8, NULL, NULL, true);
	if (!EG(modified_ini_directives)) {
		return;
	}
	ZEND_HASH_FOREACH_PTR(EG(modified_ini_directives), entry) {
		if (entry->value) {
			zend_hash_update_ptr(&baseline_ini, entry->name,
				zend_string_init(ZSTR_VAL(entry->value), ZSTR_LEN(entry->value), true));
		}
	} ZEND_HASH_FOREACH_END();
}

/* Walks the list from its end, because putting a value back takes it out. */
static void reset_ini(void)
{
	zend_ini_entry *changed[64];
	uint32_t count = 0;
	zend_ini_entry *entry;
	if (!EG(modified_ini_directives)) {
		return;
	}
	ZEND_HASH_FOREACH_PTR(EG(modified_ini_directives), entry) {
		zend_string *was = zend_hash_find_ptr(&baseline_ini, entry->name);
		bool same = was && entry->value && zend_string_equals(was, entry->value);
		if (!same && count < 64) {
			changed[count++] = entry;
		}
	} ZEND_HASH_FOREACH_END();
	for (uint32_t i = 0; i < count; i++) {
		zend_string *was = zend_hash_find_ptr(&baseline_ini, changed[i]->name);
		if (was) {
			zend_alter_ini_entry(changed[i]->name, was, PHP_INI_USER, PHP_INI_STAGE_RUNTIME);
		} else {
			zend_restore_ini_entry(changed[i]->name, PHP_INI_STAGE_SHUTDOWN);
		}
	}
}

static char **copied_environment(void)
{
	size_t count = 0;
	while (environ[count]) {
		count++;
	}
	char **copy = pemalloc((count + 1) * sizeof(*copy), 1);
	for (size_t i = 0; i < count; i++) {
		copy[i] = pestrdup(environ[i], 1);
	}
	copy[count] = NULL;
	return copy;
}

static void reset_environment(void)
{
	/* putenv() remembers what it has to undo at the end of the script. */
	zend_hash_clean(&BG(putenv_ht));
	clearenv();
	for (char **variable = baseline_environment; *variable; variable++) {
		putenv(*variable);
	}
	tzset();
}

static void call_if_there(const char *function, zval *argument, zval *result)
{
	zval name;
	ZVAL_UNDEF(result);
	if (zend_hash_str_exists(CG(function_table), function, strlen(function))) {
		ZVAL_STRING(&name, function);
		call_user_function(NULL, NULL, &name, result, argument ? 1 : 0, argument);
		zval_ptr_dtor(&name);
	}
}

static void reset_module(const char *name)
{
	zend_module_entry *module = zend_hash_str_find_ptr(&module_registry, name, strlen(name));
	if (module && module->request_shutdown_func && module->request_startup_func) {
		module->request_shutdown_func(MODULE_PERSISTENT, module->module_number);
		module->request_startup_func(MODULE_PERSISTENT, module->module_number);
	}
}

static void reset_libxml(void)
{
	zval off;
	zval result;
	ZVAL_FALSE(&off);
	call_if_there("libxml_use_internal_errors", &off, &result);
	zval_ptr_dtor(&result);
	call_if_there("libxml_clear_errors", NULL, &result);
	zval_ptr_dtor(&result);
}

/* Has the connection's own method undo what the request did not finish. */
static void roll_back(zend_object *connection)
{
	zval object;
	zval result;
	zval name;
	bool open = true;
	ZVAL_OBJ(&object, connection);
	if (zend_hash_str_exists(&connection->ce->function_table, ZEND_STRL("intransaction"))) {
		ZVAL_STRING(&name, "inTransaction");
		call_user_function(NULL, &object, &name, &result, 0, NULL);
		zval_ptr_dtor(&name);
		open = Z_TYPE(result) == IS_TRUE;
		zval_ptr_dtor(&result);
	}
	if (open && !EG(exception)) {
		ZVAL_STRING(&name, "rollBack");
		call_user_function(NULL, &object, &name, &result, 0, NULL);
		zval_ptr_dtor(&name);
		zval_ptr_dtor(&result);
		php_log_err_with_severity(
			"a request left a transaction open: it was rolled back", LOG_WARNING);
	}
	if (EG(exception)) {
		zend_clear_exception();
	}
}

/* Connections with a transaction that the requests in progress have begun. */
static zend_object *begun[32];
static uint32_t begun_count;

static void note_transaction(zval *connection)
{
	if (connection && Z_TYPE_P(connection) == IS_OBJECT && begun_count < 32) {
		begun[begun_count++] = Z_OBJ_P(connection);
		GC_ADDREF(Z_OBJ_P(connection));
	}
}

static void roll_back_all(void)
{
	while (begun_count > 0) {
		zend_object *connection = begun[--begun_count];
		if (GC_REFCOUNT(connection) > 1) {
			roll_back(connection);
		}
		OBJ_RELEASE(connection);
	}
}

/* The functions that make a request's traces, and what they make. */
static const struct {
	const char *name;
	uint32_t dirt;
} marked[] = {
	{"putenv", ENVIRONMENT},
	{"chdir", DIRECTORY},
	{"chroot", DIRECTORY},
	{"umask", UMASK},
	{"setlocale", LOCALE},
	{"date_default_timezone_set", TIME_ZONE},
	{"mb_internal_encoding", MBSTRING},
	{"mb_http_output", MBSTRING},
	{"mb_http_input", MBSTRING},
	{"mb_language", MBSTRING},
	{"mb_substitute_character", MBSTRING},
	{"mb_detect_order", MBSTRING},
	{"mb_regex_encoding", MBSTRING},
	{"libxml_use_internal_errors", LIBXML},
	{"libxml_set_streams_context", LIBXML},
	{"mysqli_begin_transaction", TRANSACTION},
	{"mysqli_autocommit", TRANSACTION},
};
#define MARKED (sizeof(marked) / sizeof(marked[0]))

static zif_handler wrapped[MARKED];

static void mark(INTERNAL_FUNCTION_PARAMETERS)
{
	const zend_string *name = execute_data->func->common.function_name;
	size_t at = 0;
	while (at + 1 < MARKED && !zend_string_equals_cstr(name, marked[at].name, strlen(marked[at].name))) {
		at++;
	}
	dirt |= marked[at].dirt;
	if (marked[at].dirt == TRANSACTION && ZEND_NUM_ARGS() > 0) {
		note_transaction(ZEND_CALL_ARG(execute_data, 1));
	}
	wrapped[at](INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static zif_handler begin_pdo;
static zif_handler begin_mysqli;

static void mark_pdo(INTERNAL_FUNCTION_PARAMETERS)
{
	dirt |= TRANSACTION;
	note_transaction(ZEND_THIS);
	begin_pdo(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void mark_mysqli(INTERNAL_FUNCTION_PARAMETERS)
{
	dirt |= TRANSACTION;
	note_transaction(ZEND_THIS);
	begin_mysqli(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void wrap_method(const char *class, const char *method, zif_handler *next, zif_handler with)
{
	zend_class_entry *ce = zend_hash_str_find_ptr(CG(class_table), class, strlen(class));
	zend_function *function =
		ce ? zend_hash_str_find_ptr(&ce->function_table, method, strlen(method)) : NULL;
	if (function && function->type == ZEND_INTERNAL_FUNCTION) {
		*next = function->internal_function.handler;
		function->internal_function.handler = with;
	}
}

/* Before the script boots. */
void outboard_reset_startup(void)
{
	for (size_t i = 0; i < MARKED; i++) {
		zend_internal_function *function =
			zend_hash_str_find_ptr(CG(function_table), marked[i].name, strlen(marked[i].name));
		if (function && function->type == ZEND_INTERNAL_FUNCTION) {
			wrapped[i] = function->handler;
			function->handler = mark;
		}
	}
	wrap_method("pdo", "begintransaction", &begin_pdo, mark_pdo);
	wrap_method("mysqli", "begin_transaction", &begin_mysqli, mark_mysqli);
}

/* The script has booted: this is what requests begin with. */
void outboard_reset_baseline(void)
{
	const char *locale = setlocale(LC_ALL, NULL);
	note_ini();
	baseline_environment = copied_environment();
	if (!getcwd(baseline_directory, sizeof(baseline_directory))) {
		baseline_directory[0] = '\0';
	}
	baseline_umask = umask(0);
	umask(baseline_umask);
	baseline_locale = locale ? pestrdup(locale, 1) : NULL;
	call_if_there("date_default_timezone_get", NULL, &baseline_time_zone);
	dirt = 0;
	begun_count = 0;
}

/* Forks of one snapshot must not draw the same numbers. */
void outboard_reset_forked(void)
{
	RANDOM_G(mt19937_seeded) = false;
	RANDOM_G(combined_lcg_seeded) = false;
}

void outboard_reset_after(outboard_visit *visit)
{
	uint32_t made = dirt;
	(void) visit;
	reset_ini();
	if (!made) {
		return;
	}
	if (made & TRANSACTION) {
		roll_back_all();
	}
	if (made & ENVIRONMENT) {
		reset_environment();
	}
	if ((made & DIRECTORY) && baseline_directory[0] && chdir(baseline_directory) != 0) {
		php_log_err_with_severity("the worker's directory is gone", LOG_WARNING);
	}
	if (made & UMASK) {
		umask(baseline_umask);
	}
	if ((made & LOCALE) && baseline_locale) {
		setlocale(LC_ALL, baseline_locale);
		zend_update_current_locale();
	}
	if (made & MBSTRING) {
		reset_module("mbstring");
	}
	if (made & LIBXML) {
		reset_libxml();
	}
	if (made & TIME_ZONE) {
		zval result;
		call_if_there("date_default_timezone_set", &baseline_time_zone, &result);
		zval_ptr_dtor(&result);
	}
	dirt = 0;
}
