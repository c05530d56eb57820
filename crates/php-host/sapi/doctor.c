/*
 * The state doctor: before each request it writes down what the request will find of those before
 * it. `outboard doctor state` compares what was written.
 * Called by coroutine.c, in a worker that was told to. Invariant: reads only; no code of the
 * application runs.
 *
 * A line for each place that can hold state, and for what it holds down to a certain depth:
 *   depth TAB kind TAB name TAB declared at TAB fingerprint TAB value TAB fingerprint at first
 */
#include "visit.h"
#include "zend_closures.h"
#include "zend_enum.h"
#include "zend_generators.h"
#include "zend_fibers.h"
#include "ext/spl/php_spl.h"
#include "ext/standard/file.h"
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

/* How deep fingerprints look, how deep differences are named, and at how many values of one place. */
#define FINGERPRINT_DEPTH 12
#define NAMED_DEPTH 4
#define MOST_VALUES 5000
#define MOST_CHILDREN 100

static const char *report;
static FILE *out;
static HashTable seen;
static uint32_t looked_at;

typedef uint64_t fingerprint;

/* FNV-1a. */
static fingerprint mix(fingerprint so_far, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		so_far = (so_far ^ ((const unsigned char *) bytes)[i]) * 0x100000001b3;
	}
	return so_far;
}

#define EMPTY_FINGERPRINT 0xcbf29ce484222325

static fingerprint mix_string(fingerprint so_far, const zend_string *text)
{
	return mix(mix(so_far, ZSTR_VAL(text), ZSTR_LEN(text)), "", 1);
}

/* What a value holds: called for each element or property. */
typedef void (*visitor)(zend_string *key, zend_ulong index, bool is_property, zval *value, void *arg);

static void each_of_table(HashTable *table, bool are_properties, visitor visit, void *arg)
{
	zend_ulong index;
	zend_string *key;
	zval *value;
	ZEND_HASH_FOREACH_KEY_VAL_IND(table, index, key, value) {
		visit(key, index, are_properties, value, arg);
	} ZEND_HASH_FOREACH_END();
}

static void each_of_closure(zval *object, visitor visit, void *arg)
{
	const zend_function *function = zend_get_closure_method_def(Z_OBJ_P(object));
	HashTable *variables = function->type == ZEND_USER_FUNCTION
		? ZEND_MAP_PTR_GET(function->op_array.static_variables_ptr) : NULL;
	if (variables) {
		each_of_table(variables, true, visit, arg);
	}
}

static void each_of_object(zval *value, visitor visit, void *arg)
{
	zend_object *object = Z_OBJ_P(value);
	if (object->ce == zend_ce_closure) {
		each_of_closure(value, visit, arg);
	} else if (object->properties) {
		each_of_table(object->properties, true, visit, arg);
	} else {
		for (int i = 0; i < object->ce->default_properties_count; i++) {
			zend_property_info *property = object->ce->properties_info_table[i];
			if (property && !Z_ISUNDEF(object->properties_table[i])) {
				visit(property->name, 0, true, &object->properties_table[i], arg);
			}
		}
	}
	/* What classes of the engine hold beside properties, by what they tell the collector of it. */
	if (object->handlers->get_gc != zend_std_get_gc && object->ce != zend_ce_closure
		&& object->ce != zend_ce_generator && object->ce != zend_ce_fiber) {
		zval *held;
		int count;
		object->handlers->get_gc(object, &held, &count);
		for (int i = 0; i < count; i++) {
			visit(NULL, (zend_ulong) i, false, &held[i], arg);
		}
	}
}

static void each_of(zval *value, visitor visit, void *arg)
{
	if (Z_TYPE_P(value) == IS_ARRAY) {
		each_of_table(Z_ARR_P(value), false, visit, arg);
	} else if (Z_TYPE_P(value) == IS_OBJECT && !(Z_OBJCE_P(value)->ce_flags & ZEND_ACC_ENUM)) {
		each_of_object(value, visit, arg);
	}
}

typedef struct {
	fingerprint so_far;
	int depth;
} taking;

static fingerprint fingerprint_of(zval *value, int depth);

static void take_child(zend_string *key, zend_ulong index, bool is_property, zval *value, void *arg)
{
	taking *one = arg;
	(void) is_property;
	if (Z_ISUNDEF_P(value)) {
		return;
	}
	one->so_far = key ? mix_string(one->so_far, key) : mix(one->so_far, &index, sizeof(index));
	fingerprint child = fingerprint_of(value, one->depth + 1);
	one->so_far = mix(one->so_far, &child, sizeof(child));
}

static bool is_seen(const zend_object *object)
{
	return !zend_hash_index_add_empty_element(&seen, object->handle);
}

static fingerprint fingerprint_of(zval *value, int depth)
{
	taking one = {EMPTY_FINGERPRINT, depth};
	ZVAL_DEREF(value);
	unsigned char type = Z_TYPE_P(value);
	one.so_far = mix(one.so_far, &type, 1);
	if (++looked_at > MOST_VALUES) {
		return one.so_far;
	}
	switch (type) {
	case IS_LONG:
	case IS_DOUBLE:
		return mix(one.so_far, &Z_LVAL_P(value), sizeof(zend_long));
	case IS_STRING:
		return mix_string(one.so_far, Z_STR_P(value));
	case IS_RESOURCE:
		return mix(one.so_far, &Z_RES_P(value)->handle, sizeof(Z_RES_P(value)->handle));
	case IS_OBJECT:
		one.so_far = mix_string(one.so_far, Z_OBJCE_P(value)->name);
		if (Z_OBJCE_P(value)->ce_flags & ZEND_ACC_ENUM) {
			return mix_string(one.so_far, Z_STR_P(zend_enum_fetch_case_name(Z_OBJ_P(value))));
		}
		if (is_seen(Z_OBJ_P(value))) {
			return one.so_far;
		}
		break;
	case IS_ARRAY:
		break;
	default:
		return one.so_far;
	}
	if (depth < FINGERPRINT_DEPTH) {
		each_of(value, take_child, &one);
	}
	return one.so_far;
}

static fingerprint whole_fingerprint(zval *value)
{
	looked_at = 0;
	zend_hash_clean(&seen);
	return fingerprint_of(value, 0);
}

/* Tabs and line ends separate, so they are shown as something else. */
static void write_text(const char *text, size_t len, size_t most)
{
	size_t shown = len < most ? len : most;
	for (size_t i = 0; i < shown; i++) {
		unsigned char c = (unsigned char) text[i];
		fputc(c < ' ' || c == 0x7f ? '?' : c, out);
	}
	if (shown < len) {
		fputs("...", out);
	}
}

static void write_short(zval *value)
{
	ZVAL_DEREF(value);
	switch (Z_TYPE_P(value)) {
	case IS_LONG:
		fprintf(out, ZEND_LONG_FMT, Z_LVAL_P(value));
		break;
	case IS_DOUBLE:
		fprintf(out, "%.8g", Z_DVAL_P(value));
		break;
	case IS_STRING:
		fputc('"', out);
		write_text(Z_STRVAL_P(value), Z_STRLEN_P(value), 40);
		fputc('"', out);
		break;
	case IS_ARRAY:
		fprintf(out, "array(%u)", zend_hash_num_elements(Z_ARR_P(value)));
		break;
	case IS_OBJECT:
		write_text(ZSTR_VAL(Z_OBJCE_P(value)->name), ZSTR_LEN(Z_OBJCE_P(value)->name), 60);
		break;
	case IS_RESOURCE:
		fprintf(out, "resource " ZEND_LONG_FMT, (zend_long) Z_RES_P(value)->handle);
		break;
	default:
		fputs(zend_zval_type_name(value), out);
	}
}

typedef struct {
	const char *kind;
	const char *name;
	const char *file;
	uint32_t line;
} place;

static void write_line(const place *at, int depth, zval *value, zval *first)
{
	fprintf(out, "%d\t%s\t", depth, at->kind);
	write_text(at->name, strlen(at->name), 300);
	fputc('\t', out);
	if (at->file) {
		write_text(at->file, strlen(at->file), PATH_MAX);
		fprintf(out, ":%u", at->line);
	}
	fprintf(out, "\t%016" PRIx64 "\t", whole_fingerprint(value));
	write_short(value);
	fputc('\t', out);
	if (first && Z_TYPE_P(first) == IS_CONSTANT_AST) {
		fputc('?', out);
	} else if (first) {
		fprintf(out, "%016" PRIx64, whole_fingerprint(first));
	}
	fputc('\n', out);
}

typedef struct {
	const place *at;
	HashTable *above;
	int depth;
	int children;
} descent;

static void write_children(const place *at, zval *value, int depth, HashTable *above);

static void write_child(zend_string *key, zend_ulong index, bool is_property, zval *value, void *arg)
{
	descent *in = arg;
	char name[400];
	if (Z_ISUNDEF_P(value) || in->children++ >= MOST_CHILDREN) {
		return;
	}
	if (!key) {
		snprintf(name, sizeof(name), "%s[" ZEND_ULONG_FMT "]", in->at->name, index);
	} else if (is_property) {
		const char *class;
		const char *property;
		zend_unmangle_property_name(key, &class, &property);
		snprintf(name, sizeof(name), "%s->%s", in->at->name, property);
	} else {
		snprintf(name, sizeof(name), "%s['%s']", in->at->name, ZSTR_VAL(key));
	}
	place child = {in->at->kind, name, in->at->file, in->at->line};
	write_line(&child, in->depth, value, NULL);
	write_children(&child, value, in->depth, in->above);
}

static void write_children(const place *at, zval *value, int depth, HashTable *above)
{
	descent in = {at, above, depth + 1, 0};
	ZVAL_DEREF(value);
	if (depth >= NAMED_DEPTH) {
		return;
	}
	if (Z_TYPE_P(value) == IS_OBJECT
		&& !zend_hash_index_add_empty_element(above, Z_OBJ_HANDLE_P(value))) {
		return;
	}
	each_of(value, write_child, &in);
}

static void write_value(const place *at, zval *value, zval *first)
{
	HashTable above;
	write_line(at, 0, value, first);
	zend_hash_init(&above, 8, NULL, NULL, false);
	write_children(at, value, 0, &above);
	zend_hash_destroy(&above);
}

static void write_text_value(const char *kind, const char *name, const char *text)
{
	place at = {kind, name, NULL, 0};
	zval value;
	ZVAL_STRING(&value, text ? text : "");
	write_line(&at, 0, &value, NULL);
	zval_ptr_dtor(&value);
}

static void write_number(const char *kind, const char *name, zend_long number)
{
	place at = {kind, name, NULL, 0};
	zval value;
	ZVAL_LONG(&value, number);
	write_line(&at, 0, &value, NULL);
}

static bool is_reset_anyway(const zend_string *name)
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
		if (!name || Z_ISUNDEF_P(value) || is_reset_anyway(name)) {
			continue;
		}
		snprintf(spelled, sizeof(spelled), "$%s", ZSTR_VAL(name));
		place at = {"global", spelled, NULL, 0};
		write_value(&at, value, NULL);
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
		place at = {"static variable", spelled, ZSTR_VAL(code->filename), code->line_start};
		write_value(&at, value, first);
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
		place at = {"static property", spelled, ZSTR_VAL(class->info.user.filename),
			class->info.user.line_start};
		write_value(&at, value, first);
	} ZEND_HASH_FOREACH_END();
}

static void write_classes(void)
{
	zend_class_entry *class;
	ZEND_HASH_FOREACH_PTR(CG(class_table), class) {
		/* The API's own part that is written in PHP has none. */
		if (class->type == ZEND_USER_CLASS) {
			write_static_properties(class);
			write_methods(class);
		}
	} ZEND_HASH_FOREACH_END();
}

/* Those that are kept somewhere; what they have captured is theirs as well. */
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
			place at = {"constant", ZSTR_VAL(constant->name), NULL, 0};
			write_line(&at, 0, &constant->value, NULL);
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
		write_text_value("ini", ZSTR_VAL(entry->name),
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
			write_text_value("environment", name, equals + 1);
		}
	}
}

static void write_names(const char *what, HashTable *table)
{
	zend_string *name;
	if (table) {
		ZEND_HASH_FOREACH_STR_KEY(table, name) {
			if (name) {
				write_text_value(what, ZSTR_VAL(name), NULL);
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
		write_number("open resources", ZSTR_VAL(name), Z_LVAL_P(count));
	} ZEND_HASH_FOREACH_END();
	zend_hash_destroy(&counts);
}

static void write_handler(const char *name, zval *handler)
{
	place at = {"handler", name, NULL, 0};
	zval none;
	ZVAL_NULL(&none);
	write_line(&at, 0, Z_ISUNDEF_P(handler) ? &none : handler, NULL);
}

static void write_autoloaders(void)
{
	zval name;
	zval loaders;
	place at = {"handler", "spl_autoload_functions()", NULL, 0};
	ZVAL_STRING(&name, "spl_autoload_functions");
	if (call_user_function(NULL, NULL, &name, &loaders, 0, NULL) == SUCCESS) {
		/* Their number: what they hold is in other lines. */
		if (Z_TYPE(loaders) == IS_ARRAY) {
			write_number(at.kind, at.name, zend_hash_num_elements(Z_ARR(loaders)));
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
	write_text_value("process", "working directory", getcwd(directory, sizeof(directory)));
	write_number("process", "umask", (zend_long) mask);
	write_text_value("process", "locale", setlocale(LC_ALL, NULL));
	write_number("process", "output buffers", php_output_get_level());
	write_handler("set_error_handler()", &EG(user_error_handler));
	write_handler("set_exception_handler()", &EG(user_exception_handler));
	write_autoloaders();
	write_names("stream wrapper", php_stream_get_url_stream_wrappers_hash());
	write_names("stream filter", php_get_stream_filters_hash());
}

void outboard_doctor_startup(const char *path)
{
	report = path;
}

void outboard_doctor_examine(void)
{
	if (!report || !(out = fopen(report, "a"))) {
		return;
	}
	zend_hash_init(&seen, 64, NULL, NULL, false);
	fprintf(out, "begin\n");
	write_globals();
	write_functions();
	write_classes();
	write_closures();
	write_constants();
	write_ini();
	write_environment();
	write_resources();
	write_process();
	fprintf(out, "end\n");
	zend_hash_destroy(&seen);
	fclose(out);
}
