/*
 * The module that a program for Swoole finds loaded: classes, functions, settings and constants of the extension.
 *
 * Called before the script's boot. Invariant: nothing of this exists in a process whose script is no such program.
 */
#include "swoole/sapi/coroutines.h"

/* The version that is reported to programs, whose interfaces are implemented. */
#define SWOOLE_VERSION_TEXT "6.0.0"
#define SWOOLE_VERSION_NUMBER 60000

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_version, 0, 0, IS_STRING, 0)
ZEND_END_ARG_INFO()

PHP_FUNCTION(swoole_version)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_STRINGL(SWOOLE_VERSION_TEXT, sizeof(SWOOLE_VERSION_TEXT) - 1);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_number, 0, 0, IS_LONG, 0)
ZEND_END_ARG_INFO()

PHP_FUNCTION(swoole_cpu_num)
{
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_LONG(processors > 0 ? processors : 1);
}

/* Those of the extension that programs read; enable_preemptive_scheduler is the one with an effect. */
PHP_INI_BEGIN()
	PHP_INI_ENTRY("swoole.enable_library", "On", PHP_INI_ALL, NULL)
	PHP_INI_ENTRY("swoole.enable_fiber_mock", "Off", PHP_INI_ALL, NULL)
	PHP_INI_ENTRY(
		"swoole.enable_preemptive_scheduler", "Off", PHP_INI_ALL, outboard_swoole_on_preemptive)
	PHP_INI_ENTRY("swoole.display_errors", "On", PHP_INI_ALL, NULL)
	PHP_INI_ENTRY("swoole.use_shortname", "On", PHP_INI_SYSTEM, NULL)
	PHP_INI_ENTRY("swoole.unixsock_buffer_size", "8388608", PHP_INI_ALL, NULL)
PHP_INI_END()

static const zend_function_entry functions[] = {
	PHP_FE(swoole_version, arginfo_version)
	PHP_FE(swoole_cpu_num, arginfo_number)
	PHP_FE_END
};

static PHP_MINIT_FUNCTION(swoole)
{
	REGISTER_INI_ENTRIES();
	zend_register_functions(NULL, outboard_swoole_program_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_coroutine_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_http_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_http_request_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_http_response_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_server_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_socket_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_process_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_wait_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_preemption_functions, NULL, type);
	const zend_ini_entry *short_names =
		zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("swoole.use_shortname"));
	const bool has_short_names = short_names && zend_ini_parse_bool(short_names->value);
	if (has_short_names) {
		zend_register_functions(NULL, outboard_swoole_short_functions, NULL, type);
	}
	REGISTER_BOOL_CONSTANT("SWOOLE_USE_SHORTNAME", has_short_names, CONST_PERSISTENT);
	outboard_swoole_channel_startup(has_short_names);
	outboard_swoole_table_startup();
	outboard_swoole_atomic_startup();
	outboard_swoole_lock_startup();
	outboard_swoole_header_blocks_startup();
	REGISTER_STRING_CONSTANT("SWOOLE_VERSION", SWOOLE_VERSION_TEXT, CONST_PERSISTENT);
	REGISTER_LONG_CONSTANT("SWOOLE_VERSION_ID", SWOOLE_VERSION_NUMBER, CONST_PERSISTENT);
	REGISTER_LONG_CONSTANT("SWOOLE_MAJOR_VERSION", 6, CONST_PERSISTENT);
	REGISTER_LONG_CONSTANT("SWOOLE_MINOR_VERSION", 0, CONST_PERSISTENT);
	REGISTER_LONG_CONSTANT("SWOOLE_RELEASE_VERSION", 0, CONST_PERSISTENT);
	REGISTER_STRING_CONSTANT("SWOOLE_EXTRA_VERSION", "", CONST_PERSISTENT);
	return SUCCESS;
}

static zend_module_entry swoole_module = {
	STANDARD_MODULE_HEADER,
	"swoole",
	functions,
	PHP_MINIT(swoole),
	NULL,
	NULL,
	NULL,
	NULL,
	SWOOLE_VERSION_TEXT,
	STANDARD_MODULE_PROPERTIES
};

/* After the engine's start, before the script's boot. */
void outboard_program_add_module(const outboard_start *start)
{
	(void) start;
	if (!outboard_host.is_program) {
		return;
	}
	if (zend_hash_str_exists(&module_registry, ZEND_STRL("swoole"))) {
		fprintf(stderr, "the extension swoole is loaded: remove it from the ini files, this server "
			"has its classes\n");
		return;
	}
	OUTBOARD_ASSERT(outboard_host.is_program && !EG(active));
	/* Names that last as long as the process, as during the engine's own start (main.c). */
	zend_interned_strings_switch_storage(false);
	zend_module_entry *module = zend_register_internal_module(&swoole_module);
	if (module && zend_startup_module_ex(module) == SUCCESS) {
		outboard_swoole_coroutine_startup();
	}
	zend_interned_strings_switch_storage(true);
}
