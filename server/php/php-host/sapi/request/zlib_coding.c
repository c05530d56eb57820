/*
 * The content coding of ext/zlib (ob_gzhandler, zlib.output_compression). The extension reads
 * Accept-Encoding once per PHP request and remembers the result, but another client may accept
 * less. It exports nothing, but one of its ini entries has the address of its globals.
 *
 * Called by request_state.c. Invariant: each request has its own coding.
 */
#include "request/request.h"
#include "request/zlib_coding.h"

/* A copy of zend_zlib_globals in ext/zlib/php_zlib.h, which is not installed. */
typedef struct {
	zend_long output_compression;
	zend_long output_compression_level;
	char *output_handler;
	void *ob_gzhandler;
	zend_long output_compression_default;
	bool handler_registered;
	int compression_coding;
} zlib_globals;

static zlib_globals *globals;
static zend_module_entry *module;

static bool is_at(const char *name, size_t offset, const void *base)
{
	const zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), name, strlen(name));
	return entry && entry->mh_arg2 == base && (size_t) entry->mh_arg1 == offset;
}

/*
 * The entries' first argument is the offset of the setting, the second the address of the globals.
 */
void outboard_zlib_startup(void)
{
	const zend_ini_entry *entry =
		zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("zlib.output_compression"));
	void *base = entry ? entry->mh_arg2 : NULL;
	bool known = base
		&& is_at("zlib.output_compression", offsetof(zlib_globals, output_compression_default), base)
		&& is_at("zlib.output_compression_level",
			offsetof(zlib_globals, output_compression_level), base)
		&& is_at("zlib.output_handler", offsetof(zlib_globals, output_handler), base);
	module = zend_hash_str_find_ptr(&module_registry, ZEND_STRL("zlib"));
	globals = known && module ? base : NULL;
	OUTBOARD_ASSERT(!globals || module->request_startup_func);
}

void outboard_zlib_save(outboard_zlib_coding *coding)
{
	if (globals) {
		coding->context = globals->ob_gzhandler;
		coding->registered = globals->handler_registered;
		coding->coding = globals->compression_coding;
	}
}

void outboard_zlib_restore(const outboard_zlib_coding *coding)
{
	if (globals) {
		globals->ob_gzhandler = coding->context;
		globals->handler_registered = coding->registered;
		globals->compression_coding = coding->coding;
	}
}

void outboard_zlib_begin(void)
{
	if (globals) {
		module->request_startup_func(MODULE_PERSISTENT, module->module_number);
	}
}

void outboard_zlib_end(void)
{
	if (globals) {
		module->request_shutdown_func(MODULE_PERSISTENT, module->module_number);
	}
}
