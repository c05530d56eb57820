/*
 * Replacements for functions that read, accept and connect through a descriptor, and for the stdio
 * functions that PHP reads a child's output with.
 *
 * Invariant: two coroutines never use one connection at a time; the second one gets an exception
 * that names both places (connection_guard.c).
 */
#include "waiting/waiting.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>

bool outboard_is_blocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags >= 0 && !(flags & O_NONBLOCK);
}

/* SO_RCVTIMEO or SO_SNDTIMEO; below 0: none. */
static int64_t socket_timeout_us(int fd, int option)
{
	struct timeval time = {0, 0};
	socklen_t len = sizeof(time);
	if (getsockopt(fd, SOL_SOCKET, option, &time, &len) != 0 || (!time.tv_sec && !time.tv_usec)) {
		return -1;
	}
	return (int64_t) time.tv_sec * 1000000 + time.tv_usec;
}

/*
 * Waits until a read or write would not block the worker. Also returns true for a non-blocking
 * descriptor, and where waiting is impossible.
 */
bool outboard_await_descriptor(enum call call, int fd, short events)
{
	struct pollfd one = {.fd = fd, .events = events};
	int saved_errno = errno;
	int ready = outboard_poll_real(&one, 1, 0);
	errno = saved_errno;
	if (ready != 0 || !outboard_is_blocking(fd)) {
		return true;
	}
	int64_t timeout_us = socket_timeout_us(fd, events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO);
	errno = saved_errno;
	int64_t begun_us = outboard_now_us();
	if (outboard_wait_for_one(call, fd, events, timeout_us) == WAIT_IMPOSSIBLE) {
		return !EG(exception);
	}
	if (EG(exception) || (timeout_us >= 0 && outboard_now_us() - begun_us >= timeout_us
		&& outboard_poll_real(&one, 1, 0) == 0)) {
		errno = EAGAIN;
		return false;
	}
	return true;
}

/* Functions that only read: for streams and sockets of the script, another coroutine may write meanwhile. All others
 * may be in the middle of an exchange, such as ftp_get() and stream_socket_enable_crypto(). */
static bool only_reads(const char *name)
{
	static const char *const readers[] = {
		"fgetc", "fgetcsv", "fgets", "fpassthru", "fread", "fscanf", "stream_copy_to_stream", "stream_get_contents",
		"stream_get_line", "stream_select", "stream_socket_accept", "stream_socket_recvfrom", "socket_accept",
		"socket_read", "socket_recv", "socket_recvfrom", "socket_recvmsg", "socket_select",
	};
	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
		if (strcmp(name, readers[i]) == 0) {
			return true;
		}
	}
	/* The host's own, which waits for a program. */
	const char *own = strrchr(name, '\\');
	return own && strcmp(own, "\\wait_descriptor") == 0;
}

/* Throws if another coroutine waits to read the descriptor: it would get this one's response. */
static bool is_in_use(int fd)
{
	OUTBOARD_ASSERT(outboard_host.events);
	uint64_t other = outboard_rs_reader(outboard_host.events, fd);
	if (!other || other == outboard_waiter()) {
		return false;
	}
	const zend_execute_data *frame = outboard_frame_of(other);
	const zend_function *function = frame ? frame->func : NULL;
	if (function && !function->common.scope && function->common.function_name
		&& only_reads(ZSTR_VAL(function->common.function_name))) {
		return false;
	}
	outboard_throw_connection_in_use(outboard_frame_of(other));
	errno = EBUSY;
	return true;
}

/* A connection of the boot, which the snapshot has closed. */
static void note_severed(int fd)
{
	if (UNEXPECTED(outboard_host.severed > 0)) {
		OUTBOARD_RUN_HOOKS(severed_used, fd);
	}
}

/* Before a call that reads, which waits itself unless it `is_patient`; false: it fails, see errno. */
bool outboard_await_readable(int fd, bool is_patient)
{
	note_severed(fd);
	return !is_patient || !outboard_may_wait() || outboard_await_descriptor(RECEIVE, fd, POLLIN);
}

/* Before a call that writes. */
bool outboard_await_writable(int fd, bool is_patient)
{
	note_severed(fd);
	return !outboard_may_wait()
		|| (!is_in_use(fd) && (!is_patient || outboard_await_descriptor(SEND, fd, POLLOUT)));
}

ssize_t read(int fd, void *buffer, size_t len)
{
	REAL(read);
	return outboard_await_readable(fd, true) ? real(fd, buffer, len) : -1;
}

ssize_t __read_chk(int fd, void *buffer, size_t len, size_t size)
{
	outboard_check_room(len, size);
	return read(fd, buffer, len);
}

ssize_t readv(int fd, const struct iovec *parts, int count)
{
	REAL(readv);
	return outboard_await_readable(fd, true) ? real(fd, parts, count) : -1;
}

ssize_t recv(int fd, void *buffer, size_t len, int flags)
{
	REAL(recv);
	return outboard_await_readable(fd, !(flags & MSG_DONTWAIT)) ? real(fd, buffer, len, flags) : -1;
}

ssize_t __recv_chk(int fd, void *buffer, size_t len, size_t size, int flags)
{
	outboard_check_room(len, size);
	return recv(fd, buffer, len, flags);
}

ssize_t recvfrom(
	int fd, void *buffer, size_t len, int flags, __SOCKADDR_ARG from, socklen_t *from_len)
{
	REAL(recvfrom);
	return outboard_await_readable(fd, !(flags & MSG_DONTWAIT)) ? real(fd, buffer, len, flags, from, from_len) : -1;
}

ssize_t __recvfrom_chk(
	int fd, void *buffer, size_t len, size_t size, int flags, __SOCKADDR_ARG from, socklen_t *from_len)
{
	outboard_check_room(len, size);
	return recvfrom(fd, buffer, len, flags, from, from_len);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	REAL(recvmsg);
	return outboard_await_readable(fd, !(flags & MSG_DONTWAIT)) ? real(fd, message, flags) : -1;
}

/* The first message is waited for here, so that the call, which may block for each of them, takes those that are there. */
int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *time)
{
	REAL(recvmmsg);
	if (!(flags & MSG_DONTWAIT) && outboard_may_wait()) {
		int taken = 0;
		int64_t until_us = time ? outboard_after_us((int64_t) time->tv_sec * 1000000 + time->tv_nsec / 1000) : INT64_MAX;
		while ((unsigned) taken < count && outboard_await_readable(fd, true)) {
			int more = real(fd, messages + taken, count - (unsigned) taken, flags | MSG_DONTWAIT, NULL);
			taken += more > 0 ? more : 0;
			/* As recvmmsg(2): the time is looked at after each message only. */
			if (more <= 0 || (flags & MSG_WAITFORONE) || outboard_now_us() >= until_us) {
				break;
			}
		}
		return taken > 0 ? taken : -1;
	}
	note_severed(fd);
	return real(fd, messages, count, flags, time);
}

int accept4(int fd, __SOCKADDR_ARG address, socklen_t *len, int flags)
{
	REAL(accept4);
	return outboard_await_readable(fd, true) ? real(fd, address, len, flags) : -1;
}

int accept(int fd, __SOCKADDR_ARG address, socklen_t *len)
{
	return accept4(fd, address, len, 0);
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t len)
{
	REAL(connect);
	/* A library may connect before the engine has started. */
	if (outboard_stations && OUTBOARD_ANY_HOOK(connects, fd, __builtin_return_address(0))) {
		return 0;
	}
	if (!outboard_may_wait() || !outboard_is_blocking(fd)) {
		return real(fd, address, len);
	}
	int flags = fcntl(fd, F_GETFL);
	int64_t timeout_us = socket_timeout_us(fd, SO_SNDTIMEO);
	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	int result = real(fd, address, len);
	if (result != 0 && errno == EINPROGRESS) {
		socklen_t error_len = sizeof(errno);
		outboard_wait_for_one(CONNECT, fd, POLLOUT, timeout_us);
		struct pollfd one = {.fd = fd, .events = POLLOUT};
		int error = EINPROGRESS;
		if (outboard_poll_real(&one, 1, 0) > 0) {
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_len);
		}
		errno = error;
		result = error ? -1 : 0;
	}
	int saved_errno = errno;
	fcntl(fd, F_SETFL, flags);
	errno = saved_errno;
	return result;
}

/* stdio calls read(2) internally, so the wait comes before. */
static void await_stream(FILE *stream)
{
	if (outboard_may_wait() && stream->_IO_read_ptr >= stream->_IO_read_end) {
		outboard_await_descriptor(RECEIVE, fileno(stream), POLLIN);
	}
}

char *fgets(char *line, int len, FILE *stream)
{
	REAL(fgets);
	await_stream(stream);
	return real(line, len, stream);
}

size_t fread(void *buffer, size_t size, size_t count, FILE *stream)
{
	REAL(fread);
	await_stream(stream);
	return real(buffer, size, count, stream);
}

char *__fgets_chk(char *line, size_t size, int len, FILE *stream)
{
	outboard_check_room((size_t) len, size);
	return fgets(line, len, stream);
}

size_t __fread_chk(void *buffer, size_t room, size_t size, size_t count, FILE *stream)
{
	outboard_check_room(size ? count : 0, size ? room / size : 0);
	return fread(buffer, size, count, stream);
}
