/*
 * The doctor's report: a line for each place that can hold state and each of its values.
 *   depth TAB kind TAB name TAB declared at TAB fingerprint TAB value TAB fingerprint at first
 * Called by doctor.c.
 */
#include "doctor/doctor.h"

/* Limits of the values listed for one place. */
#define NAMED_DEPTH 4
#define MOST_CHILDREN 100

static FILE *out;

/* Tabs and line ends are separators, so they are replaced. */
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

void outboard_report_line(const outboard_location *at, int depth, zval *value, zval *first)
{
	fprintf(out, "%d\t%s\t", depth, at->kind);
	write_text(at->name, strlen(at->name), 300);
	fputc('\t', out);
	if (at->file) {
		write_text(at->file, strlen(at->file), PATH_MAX);
		fprintf(out, ":%u", at->line);
	}
	fprintf(out, "\t%016" PRIx64 "\t", outboard_fingerprint(value));
	write_short(value);
	fputc('\t', out);
	if (first && Z_TYPE_P(first) == IS_CONSTANT_AST) {
		fputc('?', out);
	} else if (first) {
		fprintf(out, "%016" PRIx64, outboard_fingerprint(first));
	}
	fputc('\n', out);
}

typedef struct {
	const outboard_location *at;
	HashTable *above;
	int depth;
	int children;
} descent;

static void write_children(const outboard_location *at, zval *value, int depth, HashTable *above);

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
	outboard_location child = {in->at->kind, name, in->at->file, in->at->line};
	outboard_report_line(&child, in->depth, value, NULL);
	write_children(&child, value, in->depth, in->above);
}

static void write_children(const outboard_location *at, zval *value, int depth, HashTable *above)
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
	outboard_each_element(value, write_child, &in);
}

void outboard_report_value(const outboard_location *at, zval *value, zval *first)
{
	HashTable above;
	outboard_report_line(at, 0, value, first);
	zend_hash_init(&above, 8, NULL, NULL, false);
	write_children(at, value, 0, &above);
	zend_hash_destroy(&above);
}

void outboard_report_text(const char *kind, const char *name, const char *text)
{
	outboard_location at = {kind, name, NULL, 0};
	zval value;
	ZVAL_STRING(&value, text ? text : "");
	outboard_report_line(&at, 0, &value, NULL);
	zval_ptr_dtor(&value);
}

void outboard_report_number(const char *kind, const char *name, zend_long number)
{
	outboard_location at = {kind, name, NULL, 0};
	zval value;
	ZVAL_LONG(&value, number);
	outboard_report_line(&at, 0, &value, NULL);
}

bool outboard_report_begin(const char *path)
{
	out = fopen(path, "a");
	if (out) {
		fputs("begin\n", out);
	}
	return out;
}

void outboard_report_end(void)
{
	fputs("end\n", out);
	fclose(out);
}
