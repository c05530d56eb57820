/*
 * Replacements for functions that write to a descriptor. A blocking write returns when the kernel has taken all of it,
 * which takes as long as the peer: here it is made in parts that do not block, with waits between them.
 *
 * Invariant: of a blocking descriptor a caller sees what a blocking write does: all is written, or an error has stopped it.
 */
#include "waiting/waiting.h"
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

/* Sends the rest of a message of which the kernel has taken a part (-1: nothing, see errno). */
static ssize_t send_rest(int fd, const char *data, size_t len, int flags, ssize_t first)
{
	static __typeof__(&send) send_now;
	size_t sent = first > 0 ? (size_t) first : 0;
	if (!send_now) {
		send_now = (__typeof__(&send)) dlsym(RTLD_NEXT, "send");
	}
	while (sent < len && outboard_await_descriptor(SEND, fd, POLLOUT)) {
		ssize_t part = send_now(fd, data + sent, len - sent, flags | MSG_DONTWAIT);
		if (part < 0 && errno != EAGAIN) {
			break;
		}
		sent += part > 0 ? (size_t) part : 0;
	}
	return sent > 0 ? (ssize_t) sent : -1;
}

/* Whether a blocking send has more to do after an attempt that did not block. */
static bool is_unfinished(int fd, ssize_t sent, size_t len)
{
	return (sent < 0 ? errno == EAGAIN : (size_t) sent < len) && outboard_is_blocking(fd);
}

ssize_t send(int fd, const void *buffer, size_t len, int flags)
{
	REAL(send);
	const bool waits = !(flags & MSG_DONTWAIT) && outboard_may_wait();
	if (!outboard_await_writable(fd, false)) {
		return -1;
	}
	ssize_t sent = real(fd, buffer, len, waits ? flags | MSG_DONTWAIT : flags);
	return waits && is_unfinished(fd, sent, len) ? send_rest(fd, buffer, len, flags, sent) : sent;
}

ssize_t sendto(
	int fd, const void *buffer, size_t len, int flags, __CONST_SOCKADDR_ARG to, socklen_t to_len)
{
	REAL(sendto);
	if (!to.__sockaddr__) {
		return send(fd, buffer, len, flags);
	}
	if (!(flags & MSG_DONTWAIT) && outboard_may_wait() && !outboard_await_descriptor(SEND, fd, POLLOUT)) {
		return -1;
	}
	return real(fd, buffer, len, flags, to, to_len);
}

/* Ancillary data goes with the first byte, so the rest needs none. */
static ssize_t send_rest_of_message(int fd, const struct msghdr *message, int flags, ssize_t first)
{
	size_t sent = first > 0 ? (size_t) first : 0;
	size_t before = 0;
	for (size_t i = 0; i < message->msg_iovlen; i++) {
		const struct iovec *part = &message->msg_iov[i];
		if (sent < before + part->iov_len) {
			ssize_t done = send_rest(fd, part->iov_base, part->iov_len, flags, (ssize_t) (sent - before));
			sent = before + (done > 0 ? (size_t) done : 0);
			if (done < (ssize_t) part->iov_len) {
				break;
			}
		}
		before += part->iov_len;
	}
	return sent > 0 ? (ssize_t) sent : -1;
}

static size_t length(const struct iovec *parts, size_t count)
{
	size_t sum = 0;
	for (size_t i = 0; i < count; i++) {
		sum += parts[i].iov_len;
	}
	return sum;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	REAL(sendmsg);
	const bool waits = !(flags & MSG_DONTWAIT) && outboard_may_wait();
	if (!outboard_await_writable(fd, false)) {
		return -1;
	}
	for (;;) {
		ssize_t sent = real(fd, message, waits ? flags | MSG_DONTWAIT : flags);
		if (!waits || !is_unfinished(fd, sent, length(message->msg_iov, message->msg_iovlen))) {
			return sent;
		}
		if (sent > 0) {
			return send_rest_of_message(fd, message, flags, sent);
		}
		if (!outboard_await_descriptor(SEND, fd, POLLOUT)) {
			return -1;
		}
	}
}

/* As sendmmsg(2): an error after a message is that of the next call. */
int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	REAL(sendmmsg);
	unsigned done = 0;
	if ((flags & MSG_DONTWAIT) || !outboard_may_wait()) {
		return real(fd, messages, count, flags);
	}
	for (; done < count; done++) {
		ssize_t sent = sendmsg(fd, &messages[done].msg_hdr, flags);
		if (sent < 0) {
			break;
		}
		messages[done].msg_len = (unsigned) sent;
	}
	return done > 0 || count == 0 ? (int) done : -1;
}

/* A pipe that is ready takes PIPE_BUF bytes at once (pipe(7)). */
static ssize_t write_to_pipe(__typeof__(&write) write_now, int fd, const char *data, size_t len)
{
	size_t written = 0;
	while (written < len && outboard_await_descriptor(SEND, fd, POLLOUT)) {
		size_t room = len - written < PIPE_BUF ? len - written : PIPE_BUF;
		ssize_t part = write_now(fd, data + written, room);
		if (part < 0) {
			break;
		}
		written += (size_t) part;
	}
	return written > 0 ? (ssize_t) written : -1;
}

ssize_t write(int fd, const void *buffer, size_t len)
{
	REAL(write);
	struct stat about;
	if (!outboard_await_writable(fd, true)) {
		return -1;
	}
	if (len > PIPE_BUF && outboard_may_wait() && fstat(fd, &about) == 0) {
		if (S_ISSOCK(about.st_mode)) {
			return send(fd, buffer, len, 0);
		}
		if (S_ISFIFO(about.st_mode) && outboard_is_blocking(fd)) {
			return write_to_pipe(real, fd, buffer, len);
		}
	}
	return real(fd, buffer, len);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	REAL(writev);
	struct stat about;
	if (outboard_may_wait() && count > 0 && fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode)) {
		const struct msghdr message = {.msg_iov = (struct iovec *) parts, .msg_iovlen = (size_t) count};
		return sendmsg(fd, &message, 0);
	}
	return outboard_await_writable(fd, true) ? real(fd, parts, count) : -1;
}
