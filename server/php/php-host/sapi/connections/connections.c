/*
 * Connections that the boot has opened, pipes and terminals of its children among them. Workers must not share them:
 * what one sends would be answered to another. So the zygote closes each at its snapshot; the number remains, and names
 * a connection whose other end is closed. Clients that know how to connect again do so at their next use: see
 * connections/mysql.c, connections/pgsql.c, and what is said about each in decision 0036. For all others the first use
 * is logged, with the place where the connection was opened. What requests get anew is in connections/renewed.c.
 *
 * Called by closing.c and the files beside it, and by the replacements for functions of the C library.
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

static outboard_descriptor descriptors[OUTBOARD_DESCRIPTORS_MAX];

/* Whether the boot of a zygote runs, whose connections are recorded. */
static bool is_booting;

bool outboard_connections_in_boot(void)
{
	return is_booting;
}

void outboard_connections_set_boot(bool runs)
{
	OUTBOARD_ASSERT(runs != is_booting);
	is_booting = runs;
}

outboard_descriptor *outboard_descriptor_of(int fd)
{
	OUTBOARD_ASSERT(fd >= 0 && fd < OUTBOARD_DESCRIPTORS_MAX);
	return &descriptors[fd];
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

/* In connect(2) and pipe(2). */
void outboard_connections_opened(int fd)
{
	outboard_place place;
	if (!is_booting || fd < 0 || fd >= OUTBOARD_DESCRIPTORS_MAX) {
		return;
	}
	outboard_place_here(&place);
	free(descriptors[fd].place);
	descriptors[fd].place = strdup(place.text);
}

/* In connect(2): true when a connection that the worker has kept is taken instead. */
bool outboard_connections_connect(int fd, const void *caller)
{
	(void) caller;
	outboard_connections_opened(fd);
	return outboard_adoption_connect(fd);
}

/* Closes a connection, and has its number name one whose other end is closed. */
bool outboard_sever(int fd)
{
	OUTBOARD_ASSERT(fd >= 0 && fd < OUTBOARD_DESCRIPTORS_MAX && !outboard_host.is_fork);
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
	if (fd >= 0 && fd < OUTBOARD_DESCRIPTORS_MAX && outboard_sever(fd)) {
		descriptors[fd].fate = OUTBOARD_HEALING;
	}
}

/* A severed connection is read or written. It is logged once for each request. */
void outboard_severed_is_used(int fd)
{
	const int saved_errno = errno;
	/* The request may have closed it, and opened something else under the number. */
	if (fd < 0 || fd >= OUTBOARD_DESCRIPTORS_MAX || descriptors[fd].fate != OUTBOARD_SEVERED
		|| descriptors[fd].identity != outboard_identity_of(fd)) {
		return;
	}
	descriptors[fd].fate = OUTBOARD_HEALING;
	OUTBOARD_ASSERT(outboard_host.severed > 0);
	outboard_host.severed--;
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
