/*
 * What a request may change of the process beyond its visit's state, and how it is put back:
 * ini values, environment, working directory, umask, locale, time zone, mbstring, libxml,
 * assertions, stream wrappers and filters, the default stream context, the seed of random numbers,
 * variables in links, locks, open transactions. Called by visit.c after each request.
 *
 * Functions that change such a thing are wrapped, so that a request which calls none of them costs
 * nothing here. Invariant: after a request everything in the list is as it was when the script
 * first asked for one.
 */
#include "visit.h"
#include "ext/random/php_random.h"
#include "ext/standard/basic_functions.h"
#include "ext/standard/file.h"
#include "zend_smart_str.h"
#include <locale.h>
#include <sys/file.h>
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
	ASSERTION = 256,
	WRAPPERS = 512,
	FILTERS = 1024,
	CONTEXT = 2048,
	SEED = 4096,
	LOCK = 8192,
	REWRITING = 16384,
};

static uint32_t dirt;

static char **baseline_environment;
static char baseline_directory[PATH_MAX];
static mode_t baseline_umask;
static char *baseline_locale;
static zval baseline_time_zone;
static zval baseline_assertion;
static zval baseline_context;
static HashTable baseline_wrappers;
static HashTable baseline_filters;
static HashTable baseline_filter_classes;
static HashTable baseline_ini;

/* The very strings, because extensions point into them (OnUpdateString in zend_ini.c). */
static void note_ini(void)
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
 * Applications say once where sessions are kept, in the request that first needs one (Symfony's
 * session.handler.native_file); the next would not find it.
 */
static bool is_session_path(const zend_string *name)
{
	return zend_string_equals_literal(name, "session.save_path");
}

/* At the beginning of a request, whose session state is that of the boot. */
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

/* The stage is one in which no extension refuses (session.c does once the head was sent). */
static void put_ini_back(zend_string *name)
{
	zend_string *was = zend_hash_find_ptr(&baseline_ini, name);
	if (was) {
		zend_alter_ini_entry(name, was, PHP_INI_SYSTEM, PHP_INI_STAGE_DEACTIVATE);
	} else {
		zend_restore_ini_entry(name, PHP_INI_STAGE_DEACTIVATE);
	}
}

/* One at a time: putting a value back may take it out of the list. */
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

static void reset_ini(void)
{
	uint32_t left = EG(modified_ini_directives)
		? zend_hash_num_elements(EG(modified_ini_directives)) : 0;
	zend_ini_entry *entry;
	zend_string *name;
	while (left-- > 0 && (entry = changed_ini())) {
		put_ini_back(entry->name);
	}
	/* What ini_restore() has taken out of the list. */
	ZEND_HASH_FOREACH_STR_KEY(&baseline_ini, name) {
		entry = zend_hash_find_ptr(EG(ini_directives), name);
		if (entry && !is_as_booted(entry)) {
			put_ini_back(name);
		}
	} ZEND_HASH_FOREACH_END();
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

/* Functions that tell a setting when they are called without arguments, and else change it. */
static const struct {
	const char *name;
	uint32_t dirt;
} settings[] = {
	{"mb_internal_encoding", MBSTRING},
	{"mb_http_output", MBSTRING},
	{"mb_language", MBSTRING},
	{"mb_substitute_character", MBSTRING},
	{"mb_detect_order", MBSTRING},
	{"mb_regex_encoding", MBSTRING},
	{"mb_regex_set_options", MBSTRING},
	{"libxml_use_internal_errors", LIBXML},
};
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static zval baseline_settings[SETTINGS];

static void note_settings(void)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		call_if_there(settings[i].name, NULL, &baseline_settings[i]);
	}
}

static void reset_settings(uint32_t made)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		if ((made & settings[i].dirt) && !Z_ISUNDEF(baseline_settings[i])) {
			zval result;
			call_if_there(settings[i].name, &baseline_settings[i], &result);
			zval_ptr_dtor(&result);
		}
	}
}

static void reset_libxml(void)
{
	zval none;
	zval result;
	ZVAL_NULL(&none);
	call_if_there("libxml_clear_errors", NULL, &result);
	zval_ptr_dtor(&result);
	call_if_there("libxml_set_external_entity_loader", &none, &result);
	zval_ptr_dtor(&result);
}

/* ASSERT_CALLBACK is the one option that is no ini value. */
#define ASSERT_CALLBACK 2

static void call_assert_options(zval *callback, zval *result)
{
	zval name;
	zval arguments[2];
	ZVAL_UNDEF(result);
	zend_function *function =
		zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("assert_options"));
	/* Deprecated since 8.3: calling it would complain in the application's name. */
	if (!function || (function->common.fn_flags & ZEND_ACC_DEPRECATED)) {
		return;
	}
	ZVAL_STRING(&name, "assert_options");
	ZVAL_LONG(&arguments[0], ASSERT_CALLBACK);
	if (callback) {
		ZVAL_COPY_VALUE(&arguments[1], callback);
	}
	call_user_function(NULL, NULL, &name, result, callback ? 2 : 1, arguments);
	zval_ptr_dtor(&name);
}

static void copy_names(HashTable *to, HashTable *from)
{
	zend_string *name;
	void *value;
	zend_hash_init(to, from ? zend_hash_num_elements(from) : 0, NULL, NULL, true);
	if (from) {
		ZEND_HASH_FOREACH_STR_KEY_PTR(from, name, value) {
			zend_hash_str_add_ptr(to, ZSTR_VAL(name), ZSTR_LEN(name), value);
		} ZEND_HASH_FOREACH_END();
	}
}

/* A key of `present` that `baseline` does not have, or has with another value. */
static zend_string *added_name(HashTable *present, HashTable *baseline)
{
	zend_string *name;
	void *value;
	ZEND_HASH_FOREACH_STR_KEY_PTR(present, name, value) {
		if (zend_hash_find_ptr(baseline, name) != value) {
			return zend_string_copy(name);
		}
	} ZEND_HASH_FOREACH_END();
	return NULL;
}

static void reset_wrappers(void)
{
	zend_string *name;
	php_stream_wrapper *wrapper;
	while (FG(stream_wrappers) && (name = added_name(FG(stream_wrappers), &baseline_wrappers))) {
		php_unregister_url_stream_wrapper_volatile(name);
		zend_string_release(name);
	}
	ZEND_HASH_FOREACH_STR_KEY_PTR(&baseline_wrappers, name, wrapper) {
		if (FG(stream_wrappers) && !zend_hash_exists(FG(stream_wrappers), name)) {
			zend_string *copy = zend_string_init(ZSTR_VAL(name), ZSTR_LEN(name), false);
			php_register_url_stream_wrapper_volatile(copy, wrapper);
			zend_string_release(copy);
		}
	} ZEND_HASH_FOREACH_END();
}

/* PHP keeps the class and the factory in two tables (stream_filter_register in user_filters.c). */
static void reset_filters(void)
{
	zend_string *name;
	while (FG(stream_filters) && (name = added_name(FG(stream_filters), &baseline_filters))) {
		zend_hash_del(FG(stream_filters), name);
		zend_string_release(name);
	}
	while (BG(user_filter_map)
		&& (name = added_name(BG(user_filter_map), &baseline_filter_classes))) {
		zend_hash_del(BG(user_filter_map), name);
		zend_string_release(name);
	}
}

static void note_context(void)
{
	ZVAL_UNDEF(&baseline_context);
	if (FG(default_context)) {
		ZVAL_DUP(&baseline_context, &FG(default_context)->options);
	}
}

static void reset_context(void)
{
	php_stream_context *context = FG(default_context);
	if (!context) {
		return;
	}
	zval_ptr_dtor(&context->options);
	if (Z_ISUNDEF(baseline_context)) {
		array_init(&context->options);
	} else {
		ZVAL_DUP(&context->options, &baseline_context);
	}
}

static bool has_method(const zend_object *object, const char *name)
{
	return zend_hash_str_exists(&object->ce->function_table, name, strlen(name));
}

static bool call_method(zend_object *of, const char *method, zval *argument)
{
	zval object;
	zval result;
	zval name;
	ZVAL_OBJ(&object, of);
	ZVAL_UNDEF(&result);
	ZVAL_STRING(&name, method);
	call_user_function(NULL, &object, &name, &result, argument ? 1 : 0, argument);
	zval_ptr_dtor(&name);
	bool is_true = Z_TYPE(result) == IS_TRUE;
	zval_ptr_dtor(&result);
	return is_true;
}

static void roll_back_pgsql(zend_object *connection)
{
	zval arguments[2];
	zval result;
	zval name;
	ZVAL_OBJ(&arguments[0], connection);
	call_if_there("pg_transaction_status", &arguments[0], &result);
	if (Z_TYPE(result) == IS_LONG && Z_LVAL(result) != 0) {
		ZVAL_STRING(&arguments[1], "ROLLBACK");
		ZVAL_STRING(&name, "pg_query");
		call_user_function(NULL, NULL, &name, &result, 2, arguments);
		zval_ptr_dtor(&name);
		zval_ptr_dtor(&arguments[1]);
	}
	zval_ptr_dtor(&result);
}

/*
 * Has the connection's own methods undo what the request did not finish. mysqli does not tell
 * whether there is anything: it is asked to roll back in any case, and only PDO's is logged.
 */
static void roll_back(zend_object *connection, bool autocommit)
{
	if (has_method(connection, "intransaction")) {
		if (call_method(connection, "inTransaction", NULL) && !EG(exception)) {
			call_method(connection, "rollBack", NULL);
			php_log_err_with_severity(
				"a request left a transaction open: it was rolled back", LOG_WARNING);
		}
	} else if (has_method(connection, "rollback")) {
		zval on;
		ZVAL_TRUE(&on);
		call_method(connection, "rollback", NULL);
		if (autocommit && !EG(exception)) {
			call_method(connection, "autocommit", &on);
		}
	} else {
		roll_back_pgsql(connection);
	}
	if (EG(exception)) {
		zend_clear_exception();
	}
}

/*
 * Connections that a request has begun a transaction on, and files that it has locked. Neither
 * is kept alive by this: it would be open for longer than the script wants.
 */
typedef struct {
	outboard_visit *visit;
	const void *what;
	uint32_t handle;
	bool autocommit; /* was switched */
} hold;

static hold *holds;
static uint32_t hold_count;
static uint32_t hold_room;

static void note_hold(const void *what, uint32_t handle, bool autocommit)
{
	for (uint32_t i = 0; i < hold_count; i++) {
		if (holds[i].what == what && holds[i].visit == outboard_active_visit) {
			holds[i].autocommit |= autocommit;
			return;
		}
	}
	if (hold_count == hold_room) {
		hold_room = hold_room ? hold_room * 2 : 8;
		holds = perealloc(holds, hold_room * sizeof(*holds), 1);
	}
	holds[hold_count++] = (hold) {outboard_active_visit, what, handle, autocommit};
}

static void note_transaction(zval *connection, bool autocommit)
{
	if (connection && Z_TYPE_P(connection) == IS_OBJECT) {
		dirt |= TRANSACTION;
		note_hold(Z_OBJ_P(connection), Z_OBJ_HANDLE_P(connection), autocommit);
	}
}

static void note_lock(zval *file)
{
	if (file && Z_TYPE_P(file) == IS_RESOURCE) {
		dirt |= LOCK;
		note_hold(Z_RES_P(file), (uint32_t) Z_RES_HANDLE_P(file), false);
	}
}

static bool is_live_object(const hold *one)
{
	return one->handle < EG(objects_store).top
		&& IS_OBJ_VALID(EG(objects_store).object_buckets[one->handle])
		&& EG(objects_store).object_buckets[one->handle] == one->what;
}

static void unlock(zend_resource *file)
{
	php_stream *stream = zend_fetch_resource2(file, NULL, php_file_le_stream(), php_file_le_pstream());
	if (stream) {
		php_stream_lock(stream, LOCK_UN);
	}
}

static void release_hold(const hold *one)
{
	zval *resource = zend_hash_index_find(&EG(regular_list), one->handle);
	if (is_live_object(one)) {
		zend_object *connection = (zend_object *) one->what;
		GC_ADDREF(connection);
		roll_back(connection, one->autocommit);
		OBJ_RELEASE(connection);
	} else if (resource && Z_RES_P(resource) == one->what) {
		unlock(Z_RES_P(resource));
	}
}

/* Those of this request; of others in the same worker nothing is undone. */
static void release_holds(const outboard_visit *visit)
{
	uint32_t i = 0;
	while (i < hold_count) {
		if (holds[i].visit == visit) {
			hold one = holds[i];
			holds[i] = holds[--hold_count];
			release_hold(&one);
		} else {
			i++;
		}
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
	{"mb_regex_set_options", MBSTRING},
	{"libxml_set_external_entity_loader", LIBXML},
	{"libxml_set_streams_context", LIBXML},
	{"assert_options", ASSERTION},
	{"stream_wrapper_register", WRAPPERS},
	{"stream_register_wrapper", WRAPPERS},
	{"stream_wrapper_unregister", WRAPPERS},
	{"stream_wrapper_restore", WRAPPERS},
	{"stream_filter_register", FILTERS},
	{"stream_context_set_default", CONTEXT},
	{"stream_context_get_default", CONTEXT},
	{"output_add_rewrite_var", REWRITING},
	{"mt_srand", SEED},
	{"srand", SEED},
	{"flock", LOCK},
	{"mysqli_begin_transaction", TRANSACTION},
	{"mysqli_autocommit", TRANSACTION},
	{"mysqli_query", TRANSACTION},
	{"mysqli_real_query", TRANSACTION},
	{"mysqli_multi_query", TRANSACTION},
	{"pg_query", TRANSACTION},
	{"pg_exec", TRANSACTION},
};
#define MARKED (sizeof(marked) / sizeof(marked[0]))

static zif_handler wrapped[MARKED];

/* Whether a statement opens a transaction, by its first word. */
static bool begins(const zval *statement)
{
	if (Z_TYPE_P(statement) != IS_STRING) {
		return false;
	}
	const char *text = Z_STRVAL_P(statement);
	text += strspn(text, " \t\r\n(");
	return strncasecmp(text, "begin", 5) == 0 || strncasecmp(text, "start", 5) == 0
		|| strncasecmp(text, "set autocommit", 14) == 0;
}

/* The connection is `this` of a method, the first argument of a function; a statement follows. */
static void note_beginning(zend_execute_data *execute_data, uint32_t is_method)
{
	uint32_t at = is_method ? 1 : 2;
	zval *connection = is_method ? ZEND_THIS
		: ZEND_NUM_ARGS() > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
	zval *statement = ZEND_NUM_ARGS() >= at ? ZEND_CALL_ARG(execute_data, at) : NULL;
	if (!statement || Z_TYPE_P(statement) != IS_STRING || begins(statement)) {
		const zend_string *name = execute_data->func->common.function_name;
		bool by_call = strstr(ZSTR_VAL(name), "autocommit") != NULL;
		bool by_statement = statement && Z_TYPE_P(statement) == IS_STRING
			&& strncasecmp(Z_STRVAL_P(statement), "set", 3) == 0;
		note_transaction(connection, by_call || by_statement);
	}
}

static void mark(INTERNAL_FUNCTION_PARAMETERS)
{
	const zend_string *name = execute_data->func->common.function_name;
	size_t at = 0;
	while (at + 1 < MARKED && !zend_string_equals_cstr(name, marked[at].name, strlen(marked[at].name))) {
		at++;
	}
	if (marked[at].dirt == TRANSACTION) {
		note_beginning(execute_data, 0);
	} else if (marked[at].dirt == LOCK) {
		note_lock(ZEND_NUM_ARGS() > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL);
	} else {
		dirt |= marked[at].dirt;
	}
	wrapped[at](INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* The methods that may begin a transaction. */
static const struct {
	const char *class;
	const char *method;
} beginners[] = {
	{"pdo", "begintransaction"},
	{"pdo", "exec"},
	{"pdo", "query"},
	{"mysqli", "begin_transaction"},
	{"mysqli", "autocommit"},
	{"mysqli", "query"},
	{"mysqli", "real_query"},
	{"mysqli", "multi_query"},
};
#define BEGINNERS (sizeof(beginners) / sizeof(beginners[0]))

static zif_handler wrapped_methods[BEGINNERS];

#define MARK_METHOD(at) \
	static void mark_method_##at(INTERNAL_FUNCTION_PARAMETERS) \
	{ \
		note_beginning(execute_data, 1); \
		wrapped_methods[at](INTERNAL_FUNCTION_PARAM_PASSTHRU); \
	}
MARK_METHOD(0)
MARK_METHOD(1)
MARK_METHOD(2)
MARK_METHOD(3)
MARK_METHOD(4)
MARK_METHOD(5)
MARK_METHOD(6)
MARK_METHOD(7)

static const zif_handler method_marks[BEGINNERS] = {
	mark_method_0, mark_method_1, mark_method_2, mark_method_3,
	mark_method_4, mark_method_5, mark_method_6, mark_method_7,
};

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
	for (size_t i = 0; i < BEGINNERS; i++) {
		wrap_method(beginners[i].class, beginners[i].method, &wrapped_methods[i],
			method_marks[i]);
	}
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
	note_settings();
	call_assert_options(NULL, &baseline_assertion);
	copy_names(&baseline_wrappers, php_stream_get_url_stream_wrappers_hash());
	copy_names(&baseline_filters, php_get_stream_filters_hash());
	copy_names(&baseline_filter_classes, BG(user_filter_map));
	note_context();
	dirt = 0;
	hold_count = 0;
}

/* Forks of one snapshot must not draw the same numbers, nor requests after one that seeded. */
void outboard_reset_forked(void)
{
	RANDOM_G(mt19937_seeded) = false;
	RANDOM_G(combined_lcg_seeded) = false;
}

/* As php_url_scanner_ex_deactivate in url_scanner_ex.re, which is not exported. */
static void reset_rewriting(void)
{
	url_adapt_state_ex_t *scanner = &BG(url_adapt_output_ex);
	zval result;
	call_if_there("output_reset_rewrite_vars", NULL, &result);
	zval_ptr_dtor(&result);
	smart_str_free(&scanner->result);
	smart_str_free(&scanner->buf);
	scanner->active = 0;
}

static void reset_streams(uint32_t made)
{
	if (made & WRAPPERS) {
		reset_wrappers();
	}
	if (made & FILTERS) {
		reset_filters();
	}
	if (made & CONTEXT) {
		reset_context();
	}
}

static void reset_process(uint32_t made)
{
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
}

void outboard_reset_after(outboard_visit *visit)
{
	uint32_t made = dirt;
	zval result;
	reset_ini();
	if (!made) {
		return;
	}
	dirt = 0;
	if (made & (TRANSACTION | LOCK)) {
		release_holds(visit);
		dirt |= hold_count > 0 ? TRANSACTION : 0;
	}
	reset_process(made);
	reset_settings(made);
	reset_streams(made);
	if (made & LIBXML) {
		reset_libxml();
	}
	if (made & TIME_ZONE) {
		call_if_there("date_default_timezone_set", &baseline_time_zone, &result);
		zval_ptr_dtor(&result);
	}
	if (made & ASSERTION) {
		call_assert_options(&baseline_assertion, &result);
		zval_ptr_dtor(&result);
	}
	if (made & REWRITING) {
		reset_rewriting();
	}
	if (made & SEED) {
		outboard_reset_forked();
	}
}
