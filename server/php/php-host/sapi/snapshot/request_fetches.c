/*
 * The opcodes that fetch a superglobal by its name: they have an opcode of their own (zend_compile_simple_var), which is
 * rare, and the one after it says which entry is read. A handler records the entry and fetches the array from behind its
 * decoy (tripwire.c).
 *
 * Called by boot_request_reads.c. Invariant: a write is no read, and after the boot a fetch costs one comparison more.
 */
#include "snapshot/snapshot.h"
#include "zend_vm.h"

static user_opcode_handler_t next_of[256];

static const zend_uchar fetches[] = {
	ZEND_FETCH_R, ZEND_FETCH_IS, ZEND_FETCH_W, ZEND_FETCH_RW, ZEND_FETCH_FUNC_ARG, ZEND_FETCH_UNSET,
};

static const char *superglobal(const zend_string *name)
{
	static const char *const names[] = {"_SERVER", "_GET", "_POST", "_COOKIE", "_FILES", "_REQUEST", "_ENV"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (zend_string_equals_cstr(name, names[i], strlen(names[i]))) {
			return names[i];
		}
	}
	return NULL;
}

static const zval *operand(const zend_execute_data *execute_data, const zend_op *opline, zend_uchar type, znode_op node)
{
	const zval *value = type == IS_CONST ? RT_CONSTANT(opline, node) : EX_VAR(node.var);
	while (Z_TYPE_P(value) == IS_REFERENCE) {
		value = Z_REFVAL_P(value);
	}
	return value;
}

/* Of all entries if its key is no string. */
static void add_entry(const char *array, const zval *key)
{
	outboard_request_reads_add_entry(array, Z_TYPE_P(key) == IS_STRING ? Z_STRVAL_P(key) : NULL);
}

static bool is_result(zend_uchar type, znode_op node, const zend_op *fetch)
{
	return type == fetch->result_type && node.var == fetch->result.var;
}

static void note(const zend_execute_data *execute_data, const zend_op *fetch, const char *array)
{
	const zend_op *next = fetch + 1;
	bool is_first = is_result(next->op1_type, next->op1, fetch);
	if (next->opcode == ZEND_ARRAY_KEY_EXISTS && is_result(next->op2_type, next->op2, fetch)) {
		add_entry(array, operand(execute_data, next, next->op1_type, next->op1));
		return;
	}
	switch (is_first ? next->opcode : ZEND_NOP) {
	case ZEND_ASSIGN_DIM:
	case ZEND_UNSET_DIM:
		/* Writes, which boot_request.c finds. */
		return;
	case ZEND_FETCH_DIM_R:
	case ZEND_FETCH_DIM_IS:
	case ZEND_FETCH_DIM_W:
	case ZEND_FETCH_DIM_RW:
	case ZEND_FETCH_DIM_FUNC_ARG:
	case ZEND_FETCH_DIM_UNSET:
	case ZEND_ASSIGN_DIM_OP:
	case ZEND_ISSET_ISEMPTY_DIM_OBJ:
		if (next->op2_type != IS_UNUSED) {
			add_entry(array, operand(execute_data, next, next->op2_type, next->op2));
			return;
		}
		break;
	default:
		break;
	}
	outboard_request_reads_add_entry(array, NULL);
}

/* As zend_fetch_var_address_helper: the value, or where it is. */
static void answer(zend_execute_data *execute_data, const zend_op *fetch, zval *variable)
{
	const bool is_value = fetch->opcode == ZEND_FETCH_R || fetch->opcode == ZEND_FETCH_IS
		|| (fetch->opcode == ZEND_FETCH_FUNC_ARG && !(ZEND_CALL_INFO(EX(call)) & ZEND_CALL_SEND_ARG_BY_REF));
	if (is_value) {
		ZVAL_COPY_DEREF(EX_VAR(fetch->result.var), variable);
	} else {
		ZVAL_INDIRECT(EX_VAR(fetch->result.var), variable);
	}
}

static int fetch_variable(zend_execute_data *execute_data)
{
	const zend_op *opline = EX(opline);
	if (outboard_host.records_reads && opline->op1_type == IS_CONST && (opline->extended_value & ZEND_FETCH_GLOBAL)) {
		const char *array = superglobal(Z_STR_P(RT_CONSTANT(opline, opline->op1)));
		zval *variable = array ? outboard_tripwire_variable(array) : NULL;
		OUTBOARD_ASSERT(!outboard_host.is_fork);
		if (array) {
			note(execute_data, opline, array);
		}
		if (variable) {
			answer(execute_data, opline, variable);
			EX(opline) = opline + 1;
			return ZEND_USER_OPCODE_CONTINUE;
		}
	}
	user_opcode_handler_t next = next_of[opline->opcode];
	return next ? next(execute_data) : ZEND_USER_OPCODE_DISPATCH;
}

static void renew_handlers(const zend_op_array *code)
{
	for (zend_op *opline = code->opcodes; opline < code->opcodes + code->last; opline++) {
		if (memchr(fetches, opline->opcode, sizeof(fetches))) {
			zend_vm_set_opcode_handler(opline);
		}
	}
	for (uint32_t i = 0; i < code->num_dynamic_func_defs; i++) {
		renew_handlers(code->dynamic_func_defs[i]);
	}
}

static void renew_handlers_of(HashTable *functions)
{
	zend_function *function;
	ZEND_HASH_FOREACH_PTR(functions, function) {
		if (function->type == ZEND_USER_FUNCTION) {
			renew_handlers(&function->op_array);
		}
	} ZEND_HASH_FOREACH_END();
}

/* Code that is preloaded was compiled before; tripwire.c sees what this misses. */
static void renew_preloaded(void)
{
	zend_class_entry *class;
	if (zend_ini_long("opcache.protect_memory", sizeof("opcache.protect_memory") - 1, 0)) {
		return;
	}
	renew_handlers_of(CG(function_table));
	ZEND_HASH_FOREACH_PTR(CG(class_table), class) {
		renew_handlers_of(&class->function_table);
	} ZEND_HASH_FOREACH_END();
}

/*
 * Files that OPcache has stored on disk name the handlers of a process without these (zend_system_id.c), so with such
 * files only the tripwire notices.
 */
void outboard_request_fetches_begin(void)
{
	const char *stored = zend_ini_string("opcache.file_cache", sizeof("opcache.file_cache") - 1, 0);
	if (stored && *stored) {
		return;
	}
	for (size_t i = 0; i < sizeof(fetches); i++) {
		next_of[fetches[i]] = zend_get_user_opcode_handler(fetches[i]);
		zend_set_user_opcode_handler(fetches[i], fetch_variable);
	}
	renew_preloaded();
}
