/*
 * Descriptors of the boot that each request gets anew, because nothing but the kernel knows what is behind them: pairs
 * within the process, such as those that wake libcurl or an event loop, connected sockets for datagrams, such as that of
 * syslog(3) or StatsD, and temporary files. With the old ones a request could read what another has written.
 *
 * Called by closing.c. Invariants: the numbers, their flags and positions are those of the boot; a temporary file has
 * the content of the snapshot; what is not noted here is closed at the snapshot.
 */
#include "connections/connections.h"
#include "interpose.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* With more than this, the others are closed as connections are. */
#define RENEWED_MAX 64

/* So much is copied for each request. */
#define FILE_BYTES_MAX (1024 * 1024)

typedef struct {
	enum { SOCKETS, PIPE, DATAGRAMS, TEMPORARY } kind;
	int ends[2]; /* the second is -1 if it is one descriptor */
	uint64_t identities[2];
	int family;
	int type;
	struct sockaddr_storage peer;
	socklen_t peer_len;
	int source; /* a sealed copy of a file; -1: none */
	off_t size;
	off_t position;
} renewed;

static renewed all[RENEWED_MAX];
static size_t count;

/* Of what a number names; 0: it is closed. */
uint64_t outboard_identity_of(int fd)
{
	struct stat status;
	return fd >= 0 && fstat(fd, &status) == 0 ? status.st_ino ^ (uint64_t) status.st_dev << 40 : 0;
}

/* Whether the number still names this end. */
static bool is_there(const renewed *one, int end)
{
	return one->ends[end] >= 0 && outboard_identity_of(one->ends[end]) == one->identities[end];
}

/* In place of one that the boot has closed, or NULL: there are too many. */
static renewed *add(int kind, int first, int second)
{
	size_t at = 0;
	while (at < count && (is_there(&all[at], 0) || is_there(&all[at], 1))) {
		at++;
	}
	OUTBOARD_ASSERT(at <= count && count <= RENEWED_MAX);
	if (at == RENEWED_MAX) {
		return NULL;
	}
	count = at == count ? count + 1 : count;
	all[at] = (renewed) {
		.kind = kind,
		.ends = {first, second},
		.identities = {outboard_identity_of(first), outboard_identity_of(second)},
		.source = -1,
	};
	return &all[at];
}

int socketpair(int family, int type, int protocol, int ends[2])
{
	REAL(socketpair);
	const int result = real(family, type, protocol, ends);
	renewed *one = result == 0 && outboard_connections_in_boot() ? add(SOCKETS, ends[0], ends[1]) : NULL;
	if (one) {
		one->family = family;
		one->type = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
	}
	return result;
}

static int pipe_noted(int result, const int ends[2])
{
	if (result == 0 && outboard_connections_in_boot()) {
		outboard_connections_opened(ends[0]);
		outboard_connections_opened(ends[1]);
		add(PIPE, ends[0], ends[1]);
	}
	return result;
}

int pipe(int ends[2])
{
	REAL(pipe);
	return pipe_noted(real(ends), ends);
}

int pipe2(int ends[2], int flags)
{
	REAL(pipe2);
	return pipe_noted(real(ends, flags), ends);
}

/* For tmpfile() of PHP, whose file has a name until it is closed. */
int mkstemp(char *template)
{
	REAL(mkstemp);
	const int fd = real(template);
	if (fd >= 0 && outboard_connections_in_boot() && !add(TEMPORARY, fd, -1)) {
		unlink(template);
		close(fd);
		errno = EMFILE;
		return -1;
	}
	return fd;
}

/* That of a number, or NULL. Both ends of a pair must be here, or the other one is a child's. */
static renewed *find(int fd)
{
	for (size_t i = 0; i < count; i++) {
		const bool is_whole = is_there(&all[i], 0) && (all[i].ends[1] < 0 || is_there(&all[i], 1));
		if (is_whole && (all[i].ends[0] == fd || all[i].ends[1] == fd)) {
			return &all[i];
		}
	}
	return NULL;
}

static bool is_source(int fd)
{
	for (size_t i = 0; i < count; i++) {
		if (all[i].source == fd) {
			return true;
		}
	}
	return false;
}

/* Notes a socket for datagrams. */
static bool note_datagrams(int fd)
{
	struct sockaddr_storage peer = {0};
	socklen_t peer_len = sizeof(peer);
	renewed *one = getpeername(fd, (struct sockaddr *) &peer, &peer_len) == 0 ? add(DATAGRAMS, fd, -1) : NULL;
	if (one) {
		one->type = SOCK_DGRAM;
		one->family = peer.ss_family;
		one->peer = peer;
		one->peer_len = peer_len;
	}
	return one != NULL;
}

static bool copy(int from, int to, off_t size)
{
	off_t at = 0;
	while (at < size) {
		if (sendfile(to, from, &at, (size_t) (size - at)) <= 0) {
			return false;
		}
	}
	return true;
}

/* A file that no other process can open by a name, and the boot by no other number. */
static bool note_file(int fd, const struct stat *status, renewed *one)
{
	for (size_t i = 0; i < count; i++) {
		if (&all[i] != one && is_there(&all[i], 0) && all[i].identities[0] == outboard_identity_of(fd)) {
			return false;
		}
	}
	one = one ? one : add(TEMPORARY, fd, -1);
	if (!one || status->st_size > FILE_BYTES_MAX) {
		return false;
	}
	one->source = memfd_create("temporary", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	one->size = status->st_size;
	one->position = lseek(fd, 0, SEEK_CUR);
	return copy(fd, one->source, one->size)
		&& fcntl(one->source, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) == 0;
}

/* Whether it is a file that is gone with its descriptors. */
bool outboard_is_temporary(int fd)
{
	struct stat status;
	return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (status.st_nlink == 0 || find(fd));
}

/* In the zygote, before its snapshot: whether requests get this descriptor anew. */
bool outboard_renewed_find(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);
	struct stat status;
	renewed *one = find(fd);
	if (fstat(fd, &status) != 0 || is_source(fd)) {
		return true;
	}
	if (outboard_is_temporary(fd)) {
		return note_file(fd, &status, one);
	}
	return one || (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_DGRAM && note_datagrams(fd));
}

static void replace(int fresh, int fd)
{
	OUTBOARD_ASSERT(fresh >= 0 && fresh != fd);
	const int closed_by_exec = fcntl(fd, F_GETFD) & FD_CLOEXEC;
	fcntl(fresh, F_SETFL, fcntl(fd, F_GETFL));
	dup3(fresh, fd, closed_by_exec ? O_CLOEXEC : 0);
	close(fresh);
}

static void renew_pair(const renewed *one)
{
	int fresh[2];
	REAL(socketpair);
	const int made = one->kind == PIPE ? pipe2(fresh, O_CLOEXEC) : real(one->family, one->type | SOCK_CLOEXEC, 0, fresh);
	for (int end = 0; made == 0 && end < 2; end++) {
		replace(fresh[end], one->ends[end]);
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

/* If there is no memory for a copy, the file can be read only. */
static void renew_file(const renewed *one)
{
	const int fresh = memfd_create("temporary", MFD_CLOEXEC);
	if (copy(one->source, fresh, one->size) && lseek(fresh, one->position, SEEK_SET) == one->position) {
		replace(fresh, one->ends[0]);
		return;
	}
	close(fresh);
	dup3(one->source, one->ends[0], O_CLOEXEC);
}

/* At the beginning of each request. */
void outboard_renewed_open(void)
{
	OUTBOARD_ASSERT(outboard_host.is_fork);
	for (size_t i = 0; i < count; i++) {
		if (all[i].kind == DATAGRAMS) {
			renew_datagrams(&all[i]);
		} else if (all[i].kind == TEMPORARY && all[i].source >= 0 && is_there(&all[i], 0)) {
			renew_file(&all[i]);
		} else if (all[i].kind != TEMPORARY && is_there(&all[i], 0) && is_there(&all[i], 1)) {
			renew_pair(&all[i]);
		}
	}
}
