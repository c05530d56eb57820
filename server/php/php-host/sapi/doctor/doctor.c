/*
 * The state doctor: before each request it writes a report of the state that the request will find.
 * `outboard doctor state` compares the reports. Called before each request (request_due in hooks.h), in a worker with a state report.
 * Invariant: it only reads, and runs no code of the application.
 */
#include "doctor/doctor.h"
#include "zend_closures.h"
#include "zend_generators.h"
#include "zend_fibers.h"
#include "ext/spl/php_spl.h"
#include "ext/standard/file.h"
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static const char *report;

static bool is_reset_with_request(const zend_string *name)
{
	static const char *const reset[] = {"_GET", "_POST", "_COOKIE", "_FILES", "_REQUEST",
		"_SERVER", "_SESSION", "GLOBALS", "argv", "argc"};
	for (size_t i = 0; i < sizeof(reset) / sizeof(reset[0]); i++) {
		if (zend_string_equals_cstr(name, reset[i], strlen(reset[i]))) {
			return true;
		}
	}
	return false;
}

static void write_globals(void)
{
	zend_string *name;
	zval *value;
	ZEND_HASH_FOREACH_STR_KEY_VAL_IND(&EG(symbol_table), name, value) {
		char spelled[200];
		if (!name || Z_ISUNDEF_P(value) || is_reset_with_request(name)) {
			continue;
		}
		snprintf(spelled, sizeof(spelled), "$%s", ZSTR_VAL(name));
		outboard_location at = {"global", spelled, NULL, 0};
		outboard_report_value(&at, value, NULL);
	} ZEND_HASH_FOREACH_END();
}

static void write_static_variables(zend_op_array *code, const char *function)
{
	HashTable *present = ZEND_MAP_PTR_GET(code->static_variables_ptr);
	zend_string *name;
	zval *value;
	if (!code->static_variables || !present) {
		return;
	}
	ZEND_HASH_FOREACH_STR_KEY_VAL(present, name, value) {
		char spelled[300];
		zval *first = zend_hash_find(code->static_variables, name);
		snprintf(spelled, sizeof(spelled), "%s() $%s", function, ZSTR_VAL(name));
		outboard_location at = {"static variable", spelled, ZSTR_VAL(code->filename), code->line_start};
		outboard_report_value(&at, value, first);
	} ZEND_HASH_FOREACH_END();
}

static void write_functions(void)
{
	zend_function *function;
	ZEND_HASH_FOREACH_PTR(CG(function_table), function) {
		if (function->type == ZEND_USER_FUNCTION) {
			write_static_variables(&function->op_array, ZSTR_VAL(function->common.function_name));
		}
	} ZEND_HASH_FOREACH_END();
}

static void write_methods(zend_class_entry *class)
{
	zend_function *function;
	ZEND_HASH_FOREACH_PTR(&class->function_table, function) {
		char name[250];
		if (function->type == ZEND_USER_FUNCTION && function->common.scope == class) {
			snprintf(name, sizeof(name), "%s::%s", ZSTR_VAL(class->name),
				ZSTR_VAL(function->common.function_name));
			write_static_variables(&function->op_array, name);
		}
	} ZEND_HASH_FOREACH_END();
}

static void write_static_properties(zend_class_entry *class)
{
	zval *members = ZEND_MAP_PTR(class->static_members_table) ? CE_STATIC_MEMBERS(class) : NULL;
	zend_property_info *property;
	zend_string *name;
	if (!members || class->default_static_members_count == 0) {
		return;
	}
	ZEND_HASH_FOREACH_STR_KEY_PTR(&class->properties_info, name, property) {
		char spelled[300];
		if (!(property->flags & ZEND_ACC_STATIC) || property->ce != class) {
			continue;
		}
		zval *value = &members[property->offset];
		zval *first = &class->default_static_members_table[property->offset];
		ZVAL_DEINDIRECT(value);
		ZVAL_DEINDIRECT(first);
		ZVAL_DEREF(value);
		if (Z_ISUNDEF_P(value) || Z_TYPE_P(value) == IS_CONSTANT_AST) {
			continue;
		}
		snprintf(spelled, sizeof(spelled), "%s::$%s", ZSTR_VAL(class->name), ZSTR_VAL(name));
		outboard_location at = {"static property", spelled, ZSTR_VAL(class->info.user.filename),
			class->info.user.line_start};
		outboard_report_value(&at, value, first);
	} ZEND_HASH_FOREACH_END();
}

static void write_classes(void)
{
	zend_class_entry *class;
	ZEND_HASH_FOREACH_PTR(CG(class_table), class) {
		/* Classes of the API's PHP part have no file. */
		if (class->type == ZEND_USER_CLASS) {
			write_static_properties(class);
			write_methods(class);
		}
	} ZEND_HASH_FOREACH_END();
}

/* Closures that something refers to, with the variables they have captured. */
static void write_closures(void)
{
	for (uint32_t i = 1; i < EG(objects_store).top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		if (!IS_OBJ_VALID(object) || object->ce != zend_ce_closure) {
			continue;
		}
		zend_op_array *code = &((zend_function *) zend_get_closure_method_def(object))->op_array;
		if (code->type == ZEND_USER_FUNCTION && code->static_variables
			&& !zend_string_equals_literal(code->filename, "outboard:runtime")) {
			write_static_variables(code, "{closure}");
		}
	}
}

static void write_constants(void)
{
	zend_constant *constant;
	ZEND_HASH_FOREACH_PTR(EG(zend_constants), constant) {
		if (constant->name && ZEND_CONSTANT_MODULE_NUMBER(constant) == PHP_USER_CONSTANT) {
			outboard_location at = {"constant", ZSTR_VAL(constant->name), NULL, 0};
			outboard_report_line(&at, 0, &constant->value, NULL);
		}
	} ZEND_HASH_FOREACH_END();
}

static void write_ini(void)
{
	zend_ini_entry *entry;
	if (!EG(modified_ini_directives)) {
		return;
	}
	ZEND_HASH_FOREACH_PTR(EG(modified_ini_directives), entry) {
		outboard_report_text("ini", ZSTR_VAL(entry->name),
			entry->value ? ZSTR_VAL(entry->value) : NULL);
	} ZEND_HASH_FOREACH_END();
}

static void write_environment(void)
{
	for (char **variable = environ; *variable; variable++) {
		const char *equals = strchr(*variable, '=');
		char name[200];
		if (equals) {
			snprintf(name, sizeof(name), "%.*s", (int) (equals - *variable), *variable);
			outboard_report_text("environment", name, equals + 1);
		}
	}
}

static void write_names(const char *what, HashTable *table)
{
	zend_string *name;
	if (table) {
		ZEND_HASH_FOREACH_STR_KEY(table, name) {
			if (name) {
				outboard_report_text(what, ZSTR_VAL(name), NULL);
			}
		} ZEND_HASH_FOREACH_END();
	}
}

static void write_resources(void)
{
	HashTable counts;
	zend_resource *resource;
	zend_string *name;
	zval *count;
	zend_hash_init(&counts, 8, NULL, NULL, false);
	ZEND_HASH_FOREACH_PTR(&EG(regular_list), resource) {
		const char *type = zend_rsrc_list_get_rsrc_type(resource);
		if (type) {
			zval one;
			ZVAL_LONG(&one, 1);
			count = zend_hash_str_find(&counts, type, strlen(type));
			if (count) {
				Z_LVAL_P(count)++;
			} else {
				zend_hash_str_add(&counts, type, strlen(type), &one);
			}
		}
	} ZEND_HASH_FOREACH_END();
	ZEND_HASH_FOREACH_STR_KEY_VAL(&counts, name, count) {
		outboard_report_number("open resources", ZSTR_VAL(name), Z_LVAL_P(count));
	} ZEND_HASH_FOREACH_END();
	zend_hash_destroy(&counts);
}

static void write_handler(const char *name, zval *handler)
{
	outboard_location at = {"handler", name, NULL, 0};
	zval none;
	ZVAL_NULL(&none);
	outboard_report_line(&at, 0, Z_ISUNDEF_P(handler) ? &none : handler, NULL);
}

static void write_autoloaders(void)
{
	zval name;
	zval loaders;
	outboard_location at = {"handler", "spl_autoload_functions()", NULL, 0};
	ZVAL_STRING(&name, "spl_autoload_functions");
	if (call_user_function(NULL, NULL, &name, &loaders, 0, NULL) == SUCCESS) {
		/* Only their number: their values are in other lines. */
		if (Z_TYPE(loaders) == IS_ARRAY) {
			outboard_report_number(at.kind, at.name, zend_hash_num_elements(Z_ARR(loaders)));
		}
		zval_ptr_dtor(&loaders);
	}
	zval_ptr_dtor(&name);
}

static void write_process(void)
{
	char directory[PATH_MAX];
	mode_t mask = umask(0);
	umask(mask);
	outboard_report_text("process", "working directory", getcwd(directory, sizeof(directory)));
	outboard_report_number("process", "umask", (zend_long) mask);
	outboard_report_text("process", "locale", setlocale(LC_ALL, NULL));
	outboard_report_number("process", "output buffers", php_output_get_level());
	write_handler("set_error_handler()", &EG(user_error_handler));
	write_handler("set_exception_handler()", &EG(user_exception_handler));
	write_autoloaders();
	write_names("stream wrapper", php_stream_get_url_stream_wrappers_hash());
	write_names("stream filter", php_get_stream_filters_hash());
}

void outboard_doctor_startup(const outboard_start *start)
{
	report = start->state_report;
}

void outboard_doctor_examine(void)
{
	OUTBOARD_ASSERT(!EG(exception));
	if (!report || !outboard_report_begin(report)) {
		return;
	}
	write_globals();
	write_functions();
	write_classes();
	write_closures();
	write_constants();
	write_ini();
	write_environment();
	write_resources();
	write_process();
	outboard_report_end();
}
