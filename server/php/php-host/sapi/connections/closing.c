/*
 * Descriptors of the boot that a zygote closes before its snapshot, unless requests get them anew (renewed.c).
 *
 * Called by the hooks of engine/subjects.c. Invariant: after the snapshot no process has a connection of the zygote.
 */
#include "connections/connections.h"
#include "zend_interfaces.h"
#include <linux/magic.h>
#include <linux/major.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

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
	for (int other = 0; identity && other < OUTBOARD_DESCRIPTORS_MAX; other++) {
		if (outboard_descriptor_of(other)->fate == OUTBOARD_OF_START && outboard_descriptor_of(other)->identity == identity) {
			return true;
		}
	}
	return !identity;
}

static void sever_others(void)
{
	for (int fd = 0; fd < OUTBOARD_DESCRIPTORS_MAX; fd++) {
		if (outboard_descriptor_of(fd)->fate > OUTBOARD_OF_START || outboard_rs_is_own_descriptor(outboard_host.events, fd)
			|| is_of_start(fd) || outboard_renewed_find(fd)) {
			continue;
		}
		outboard_descriptor_of(fd)->kind = kind_of(fd);
		if (!outboard_descriptor_of(fd)->kind || !outboard_sever(fd)) {
			continue;
		}
		if (heals(outboard_descriptor_of(fd)->place)) {
			outboard_descriptor_of(fd)->fate = OUTBOARD_HEALING;
		} else {
			outboard_descriptor_of(fd)->fate = OUTBOARD_SEVERED;
			outboard_host.severed++;
		}
	}
}

/* In the zygote, before its snapshot. */
void outboard_connections_close(void)
{
	if (!outboard_connections_in_boot()) {
		return;
	}
	outboard_connections_set_boot(false);
	quit_memcached();
	outboard_mysql_close();
	outboard_pgsql_close();
	sever_others();
	OUTBOARD_ASSERT(!outboard_connections_in_boot() && outboard_host.severed <= OUTBOARD_DESCRIPTORS_MAX);
}

/* After each request of a worker that is about to be rewound. */
void outboard_connections_keep(void)
{
	if (outboard_keeps_connections()) {
		outboard_mysql_keep();
	}
}

void outboard_connections_startup(const outboard_start *start)
{
	(void) start;
	if (!outboard_host.events || !outboard_rs_is_forking(outboard_host.events)) {
		return;
	}
	OUTBOARD_ASSERT(outboard_host.severed == 0);
	outboard_connections_set_boot(true);
	for (int fd = 0; fd < OUTBOARD_DESCRIPTORS_MAX; fd++) {
		outboard_descriptor_of(fd)->identity = outboard_identity_of(fd);
		outboard_descriptor_of(fd)->fate = outboard_descriptor_of(fd)->identity ? OUTBOARD_OF_START : OUTBOARD_UNKNOWN;
	}
	outboard_mysql_startup();
}
