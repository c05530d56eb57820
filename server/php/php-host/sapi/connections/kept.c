/*
 * How a client library adopts a connection that the worker has kept (src/kept_connections.rs). The library
 * connects as usual, but to a pair of sockets in this process, in which the server's greeting and its consent
 * wait already; then the kept connection takes the pair's number.
 *
 * Called by connections/mysql.c and in connect(2) (connects in hooks.h). Invariants: each adoption
 * that has begun is ended; there is no more than one at a time; a library that does not take the offer has connected
 * as ever.
 */
#include "connections/connections.h"
#include "waiting/waiting.h"
#include "zend_fibers.h"
#include <fcntl.h>
#include <sys/socket.h>

/* The ends of the pair; -1: none. */
static int client_end = -1;
static int server_end = -1;
/* The socket that has taken the first. */
static int taken_by = -1;

bool outboard_keeps_connections(void)
{
	return outboard_host.events && outboard_host.is_fork && outboard_rs_is_rewound(outboard_host.events);
}

/* Nothing has arrived that the client has not read. */
bool outboard_is_quiet(int fd)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};
	return outboard_poll_real(&one, 1, 0) == 0;
}

/* Has `to` name what `from` names, with the flags that it had, and closes `from`. */
void outboard_replace_descriptor(int from, int to)
{
	OUTBOARD_ASSERT(from != to);
	const int flags = fcntl(to, F_GETFL);
	if (flags >= 0) {
		fcntl(from, F_SETFL, flags);
	}
	dup3(from, to, O_CLOEXEC);
	close(from);
}

/* From now on what is written to `fd` goes nowhere, until the descriptor is closed that this returns. */
int outboard_divert(int fd)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
		return -1;
	}
	outboard_replace_descriptor(pair[0], fd);
	return pair[1];
}

bool outboard_adoption_begin(const char *greeting, size_t len)
{
	int pair[2];
	OUTBOARD_ASSERT(client_end < 0 && server_end < 0 && taken_by < 0);
	/* No other coroutine may connect meanwhile: it would take the offer. */
	zend_fiber_switch_block();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
		return false;
	}
	client_end = pair[0];
	server_end = pair[1];
	return send(server_end, greeting, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t) len;
}

/* In connect(2): whether the socket is connected to the pair now. */
bool outboard_adoption_connect(int fd)
{
	if (client_end < 0) {
		return false;
	}
	OUTBOARD_ASSERT(server_end >= 0 && taken_by < 0);
	outboard_replace_descriptor(client_end, fd);
	client_end = -1;
	taken_by = fd;
	return true;
}

/* Whether the library has taken the offer, and its socket `fd` is the adopted connection now, which is closed
 * otherwise. */
bool outboard_adoption_end(int fd, int adopted)
{
	/* What resolves a name may connect as well. */
	const bool is_taken = client_end < 0 && server_end >= 0 && fd >= 0 && fd == taken_by;
	if (client_end >= 0) {
		close(client_end);
	}
	if (is_taken) {
		outboard_replace_descriptor(adopted, fd);
	} else {
		close(adopted);
	}
	if (server_end >= 0) {
		close(server_end);
	}
	client_end = server_end = taken_by = -1;
	zend_fiber_switch_unblock();
	return is_taken;
}

void outboard_bytes_add(outboard_bytes *to, const void *bytes, size_t len)
{
	OUTBOARD_ASSERT(to->len <= to->size && len < SIZE_MAX / 4);
	if (to->len + len > to->size) {
		to->size = (to->len + len) * 2;
		to->bytes = perealloc(to->bytes, to->size, 1);
	}
	if (len > 0) {
		memcpy(to->bytes + to->len, bytes, len);
		to->len += len;
	}
}

/* With its length, so that no two lists of parts are equal. */
void outboard_bytes_add_part(outboard_bytes *to, const char *text, size_t len)
{
	outboard_bytes_add(to, &len, sizeof(len));
	outboard_bytes_add(to, text, len);
}

void outboard_bytes_free(outboard_bytes *bytes)
{
	pefree(bytes->bytes, 1);
	*bytes = (outboard_bytes) {0};
}
