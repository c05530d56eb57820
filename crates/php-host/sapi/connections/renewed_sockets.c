/*
 * Sockets of the boot that each request gets anew, because nothing but the kernel knows them: pairs within the process,
 * such as those that wake libcurl or an event loop, and connected sockets for datagrams, such as that of
 * syslog(3) or StatsD. With the old ones a request could read what another has written.
 *
 * Called by connections.c. Invariant: the numbers, and whether they block, are those of the boot.
 */
#include "connections/connections.h"
#include "interpose.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* With more than this, the others are closed as connections are. */
#define RENEWED_MAX 64

typedef struct {
	int ends[2]; /* the second is -1 for a socket that is connected to an address */
	ino_t inodes[2];
	int family;
	int type;
	struct sockaddr_storage peer;
	socklen_t peer_len;
} renewed;

static renewed all[RENEWED_MAX];
static size_t count;

static ino_t inode_of(int fd)
{
	struct stat status;
	return fd >= 0 && fstat(fd, &status) == 0 ? status.st_ino : 0;
}

int socketpair(int family, int type, int protocol, int ends[2])
{
	REAL(socketpair);
	const int result = real(family, type, protocol, ends);
	if (result == 0 && count < RENEWED_MAX && outboard_connections_in_boot()) {
		all[count++] = (renewed) {
			.ends = {ends[0], ends[1]},
			.inodes = {inode_of(ends[0]), inode_of(ends[1])},
			.family = family,
			.type = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK),
		};
	}
	return result;
}

/* Whether the number still names this end. */
static bool is_there(const renewed *one, int end)
{
	return one->ends[end] >= 0 && inode_of(one->ends[end]) == one->inodes[end];
}

/* Whether requests get this socket anew. */
bool outboard_is_renewed(int fd)
{
	for (size_t i = 0; i < count; i++) {
		for (int end = 0; end < 2; end++) {
			if (all[i].ends[end] == fd && is_there(&all[i], end)) {
				return true;
			}
		}
	}
	return false;
}

/* Notes a socket for datagrams; false: it is not connected, or there are too many. */
static bool note(int fd, int type)
{
	renewed one = {.ends = {fd, -1}, .inodes = {inode_of(fd), 0}, .type = type, .peer_len = sizeof(one.peer)};
	if (count == RENEWED_MAX || getpeername(fd, (struct sockaddr *) &one.peer, &one.peer_len) != 0) {
		return false;
	}
	one.family = one.peer.ss_family;
	all[count++] = one;
	return true;
}

/* In the zygote, before its snapshot. */
void outboard_renewed_find(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_DGRAM && !outboard_is_renewed(fd)) {
		note(fd, type);
	}
}

static void replace(int fresh, int fd)
{
	const int closed_by_exec = fcntl(fd, F_GETFD) & FD_CLOEXEC;
	fcntl(fresh, F_SETFL, fcntl(fd, F_GETFL));
	dup3(fresh, fd, closed_by_exec ? O_CLOEXEC : 0);
	close(fresh);
}

static void renew_pair(const renewed *one)
{
	int fresh[2];
	REAL(socketpair);
	if (real(one->family, one->type | SOCK_CLOEXEC, 0, fresh) != 0) {
		return;
	}
	for (int end = 0; end < 2; end++) {
		if (is_there(one, end)) {
			replace(fresh[end], one->ends[end]);
		} else {
			close(fresh[end]);
		}
	}
}

static void renew_datagrams(const renewed *one)
{
	REAL(connect);
	const int fresh = socket(one->family, one->type | SOCK_CLOEXEC, 0);
	if (fresh >= 0 && real(fresh, (const struct sockaddr *) &one->peer, one->peer_len) == 0 && is_there(one, 0)) {
		replace(fresh, one->ends[0]);
	} else if (fresh >= 0) {
		close(fresh);
	}
}

/* At the beginning of each request. */
void outboard_renewed_open(void)
{
	for (size_t i = 0; i < count; i++) {
		if (all[i].ends[1] < 0) {
			renew_datagrams(&all[i]);
		} else {
			renew_pair(&all[i]);
		}
	}
}
