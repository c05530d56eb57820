/*
 * Xdebug: whether this process has it, and its connection to the debugger (an IDE, by the protocol DBGp).
 *
 * Workers that handle requests as usual run without Xdebug even if the ini files load it: its library is unloaded before
 * it has started. In a worker that is debugged each request connects; while the connection is there, a mark in
 * the ring's header says so to the gateway, which enforces no deadline meanwhile. Called at the stations of hooks.h.
 * Invariants: Xdebug waits for the debugger without another coroutine running meanwhile; only the worker writes
 * the mark, and no child that a script forks does.
 */
#include "debugger/debugger.h"
#include "kept.h"
#include "request/request.h"
#include "shim.h"
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t use;

/* The ring has it. */
static OUTBOARD_KEPT struct {
	_Atomic uint32_t *mark;
	pid_t process;
} announcement;

void outboard_debugger_use(uint32_t wanted)
{
	use = wanted;
}

void outboard_debugger_announce_to(uint32_t *mark)
{
	OUTBOARD_ASSERT(((uintptr_t) mark & 3) == 0);
	announcement.mark = (_Atomic uint32_t *) mark;
	announcement.process = getpid();
}

static void announce(bool is_attached)
{
	if (announcement.mark && announcement.process == getpid()) {
		atomic_store(announcement.mark, is_attached);
	}
}

static int is_named(void *extension, void *name)
{
	return strcmp(((const zend_extension *) extension)->name, name) == 0;
}

/* The extensions were loaded, and start after the modules (php_module_startup in main.c). */
void outboard_debugger_choose(void)
{
	char name[] = "Xdebug";
	const bool is_loaded = zend_get_extension(name) != NULL;
	if (use == OUTBOARD_XDEBUG_NEVER && is_loaded) {
		zend_llist_del_element(&zend_extensions, name, is_named);
	} else if (use == OUTBOARD_XDEBUG_ALWAYS && !is_loaded) {
		char path[MAXPATHLEN];
		snprintf(path, sizeof(path), "%s/xdebug.so", PG(extension_dir));
		/* Without the library PHP says so, and requests are handled as usual. */
		zend_load_extension(path);
	}
}

/*
 * At the start of a request: Xdebug connects when the next statement is run. In classic mode it finds triggers itself, but for
 * that in a header. With a secret of its own (xdebug.trigger_value) it alone decides.
 */
void outboard_debugger_request(void)
{
	if (use != OUTBOARD_XDEBUG_ALWAYS) {
		return;
	}
	if (!outboard_host.events && !outboard_header("xdebug-trigger", strlen("xdebug-trigger"))) {
		return;
	}
	/* A session of the debugger ends with PHP's request, which in worker mode is the process. */
	outboard_host.is_tainted |= outboard_host.events != NULL;
	const char *secret = zend_ini_string("xdebug.trigger_value", strlen("xdebug.trigger_value"), 0);
	zend_function *attach = zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("xdebug_connect_to_client"));
	if (attach && (!secret || !*secret)) {
		zval result;
		zend_call_known_function(attach, NULL, NULL, &result, 0, NULL, NULL);
		zval_ptr_dtor(&result);
	}
}

/* In connect(2). Xdebug closes the socket if nobody listens. */
bool outboard_debugger_connects(int fd, const void *caller)
{
	Dl_info info;
	if (use != OUTBOARD_XDEBUG_ALWAYS || !dladdr(caller, &info) || !info.dli_fname || !strstr(info.dli_fname, "/xdebug.so")) {
		return false;
	}
	/* A debugger whose machine is gone does not say so: the connection ends within two minutes. */
	const int on = 1, idle_s = 60, interval_s = 15, probes = 4;
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	outboard_host.debugger = fd;
	announce(true);
	return false;
}

/* Not by the C library's own, which would have to be looked for: a child between fork(2) and execve(2) closes as well. */
int close(int fd)
{
	if (UNEXPECTED(fd == outboard_host.debugger && fd >= 0)) {
		outboard_host.debugger = -1;
		announce(false);
	}
	return (int) syscall(SYS_close, fd);
}
