/*
 * Connections that the boot has opened, pipes and terminals of its children among them. Workers must not share them:
 * what one sends would be answered to another. So the zygote closes each at its snapshot; the number remains, and names
 * a connection whose other end is closed. Clients that know how to connect again do so at their next use: see
 * connections/mysql.c, connections/pgsql.c, and what is said about each in decision 0036. For all others the first use
 * is logged, with the place where the connection was opened. What requests get anew is in connections/renewed.c.
 *
 * Called by worker_script.c and rewind.c, and by the replacements for functions of the C library.
 * Invariant: after the snapshot no process has a connection of the zygote, and none has a descriptor of the boot whose
 * content is not that of the snapshot, unless others can open it by its name.
 */
#include "connections/connections.h"
#include "interpose.h"
#include "zend_interfaces.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/major.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <syslog.h>
#include <unistd.h>

/* With higher numbers than this the places are not known. */
#define DESCRIPTORS_MAX 1024

enum fate {
	UNKNOWN,
	OF_START, /* open before the boot: of the host, of PHP and of its extensions */
	SEVERED, /* its use is logged */
	HEALING, /* its client connects again */
};

static struct {
	char *place; /* where it was connected; NULL: unknown */
	enum fate fate;
	const char *kind;
	uint64_t identity; /* of what the number names since then */
} descriptors[DESCRIPTORS_MAX];

/* How many are severed, and were not used since in this request. */
uint32_t outboard_severed_count;

/* Whether the boot of a zygote runs, whose connections are recorded. */
static bool is_booting;

bool outboard_connections_in_boot(void)
{
	return is_booting;
}

/* The innermost call from PHP code. */
void outboard_place_here(outboard_place *place)
{
	const zend_execute_data *frame = EG(current_execute_data);
	const zend_function *called = NULL;
	while (frame && !(frame->func && ZEND_USER_CODE(frame->func->type))) {
		called = frame->func ? frame->func : called;
		frame = frame->prev_execute_data;
	}
	const char *class = called && called->common.scope ? ZSTR_VAL(called->common.scope->name) : "";
	snprintf(place->text, sizeof(place->text), "%s%s%s at %s:%u", class, *class ? "::" : "",
		called && called->common.function_name ? ZSTR_VAL(called->common.function_name) : "opened",
		frame ? ZSTR_VAL(frame->func->op_array.filename) : "(unknown)",
		frame && frame->opline ? frame->opline->lineno : 0);
}

/* In connect(2). */
void outboard_connections_opened(int fd)
{
	outboard_place place;
	if (!is_booting || fd < 0 || fd >= DESCRIPTORS_MAX) {
		return;
	}
	outboard_place_here(&place);
	free(descriptors[fd].place);
	descriptors[fd].place = strdup(place.text);
}

static bool is_connected(int fd)
{
	int type = 0;
	int listens = 0;
	socklen_t len = sizeof(int);
	struct sockaddr_storage peer;
	socklen_t peer_len = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0
		&& (type == SOCK_STREAM || type == SOCK_SEQPACKET)
		&& getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && !listens
		&& getpeername(fd, (struct sockaddr *) &peer, &peer_len) == 0;
}

/* What it is, or NULL: nothing that carries data from one request to another. */
static const char *kind_of(int fd)
{
	struct stat status;
	struct statfs system;
	if (fstat(fd, &status) != 0) {
		return NULL;
	}
	/* A pipe with a name is as any file with a name. */
	if (S_ISFIFO(status.st_mode)) {
		return fstatfs(fd, &system) == 0 && system.f_type == PIPEFS_MAGIC ? "pipe" : NULL;
	}
	if (S_ISCHR(status.st_mode)) {
		return status.st_rdev == makedev(TTYAUX_MAJOR, 2) ? "pseudoterminal" : NULL;
	}
	if (S_ISREG(status.st_mode)) {
		return outboard_is_temporary(fd) ? "temporary file" : NULL;
	}
	return is_connected(fd) ? "connection" : NULL;
}

/* Closes a connection, and has its number name one whose other end is closed. */
static bool sever(int fd)
{
	int pair[2];
	const int flags = fcntl(fd, F_GETFL);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
		return false;
	}
	close(pair[1]);
	fcntl(pair[0], F_SETFL, flags);
	const bool is_severed = dup3(pair[0], fd, O_CLOEXEC) == fd;
	close(pair[0]);
	descriptors[fd].identity = outboard_identity_of(fd);
	return is_severed;
}

/* Of a client that connects again. */
void outboard_connection_sever(int fd)
{
	if (fd >= 0 && fd < DESCRIPTORS_MAX && sever(fd)) {
		descriptors[fd].fate = HEALING;
	}
}

/* These notice by themselves that a connection is closed, and connect again. */
static bool heals(const char *place)
{
	static const char *const clients[] = {"Redis::", "RedisCluster::", "RedisSentinel::", "curl_", "Memcached::"};
	for (size_t i = 0; place && i < sizeof(clients) / sizeof(*clients); i++) {
		if (strncmp(place, clients[i], strlen(clients[i])) == 0) {
			return true;
		}
	}
	return false;
}

/* libmemcached connects again after it was asked to close, but not after an error. */
static void quit_memcached(void)
{
	zend_class_entry *memcached = outboard_class("memcached");
	for (uint32_t i = 1; memcached && i < EG(objects_store).top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		if (IS_OBJ_VALID(object) && instanceof_function(object->ce, memcached)) {
			zval result;
			zend_call_method_with_0_params(object, object->ce, NULL, "quit", &result);
			zval_ptr_dtor(&result);
		}
	}
}

/* What was open before the boot, and other numbers for it, such as that of php://stderr. */
static bool is_of_start(int fd)
{
	const uint64_t identity = outboard_identity_of(fd);
	for (int other = 0; identity && other < DESCRIPTORS_MAX; other++) {
		if (descriptors[other].fate == OF_START && descriptors[other].identity == identity) {
			return true;
		}
	}
	return !identity;
}

static void sever_others(void)
{
	for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
		if (descriptors[fd].fate > OF_START || outboard_rs_is_own_descriptor(outboard_events, fd)
			|| is_of_start(fd) || outboard_renewed_find(fd)) {
			continue;
		}
		descriptors[fd].kind = kind_of(fd);
		if (!descriptors[fd].kind || !sever(fd)) {
			continue;
		}
		if (heals(descriptors[fd].place)) {
			descriptors[fd].fate = HEALING;
		} else {
			descriptors[fd].fate = SEVERED;
			outboard_severed_count++;
		}
	}
}

/* In the zygote, before its snapshot. */
void outboard_connections_close(void)
{
	if (!is_booting) {
		return;
	}
	is_booting = false;
	quit_memcached();
	outboard_mysql_close();
	outboard_pgsql_close();
	sever_others();
}

/* A severed connection is read or written. It is logged once for each request. */
void outboard_severed_is_used(int fd)
{
	const int saved_errno = errno;
	/* The request may have closed it, and opened something else under the number. */
	if (fd < 0 || fd >= DESCRIPTORS_MAX || descriptors[fd].fate != SEVERED
		|| descriptors[fd].identity != outboard_identity_of(fd)) {
		return;
	}
	descriptors[fd].fate = HEALING;
	outboard_severed_count--;
	outboard_connection_is_refused(descriptors[fd].kind, descriptors[fd].place, "it cannot be opened again");
	errno = saved_errno;
}

/* Why a connection of the boot is of no use in a request. */
void outboard_connection_is_refused(const char *kind, const char *place, const char *why)
{
	char *message;
	spprintf(&message, 0, "a %s was opened before the snapshot (%s) and is closed in requests: %s; open it below "
		"the snapshot, or in a function that is registered with Outboard\\on_resume()", kind,
		place ? place : "at an unknown place", why);
	php_log_err_with_severity(message, LOG_ERR);
	efree(message);
}

/* After each request of a worker that is about to be rewound. */
void outboard_connections_keep(void)
{
	if (outboard_keeps_connections()) {
		outboard_mysql_keep();
	}
}

void outboard_connections_startup(void)
{
	if (!outboard_events || !outboard_rs_is_forking(outboard_events)) {
		return;
	}
	is_booting = true;
	for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
		descriptors[fd].identity = outboard_identity_of(fd);
		descriptors[fd].fate = descriptors[fd].identity ? OF_START : UNKNOWN;
	}
	outboard_mysql_startup();
	outboard_boot_engines_startup();
}
