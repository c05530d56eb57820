/*
 * Waiting without holding the worker. The host exports functions of the C library in which PHP,
 * its extensions and the libraries below them wait; the dynamic linker binds them to these. Where
 * a coroutine could wait, it is suspended and the others go on; the real function is then called
 * when it has nothing to wait for. Everywhere else (classic mode, start-up, other threads) these
 * are the real functions.
 *
 * Invariants: a descriptor that is not ready is never given to a call that would block, unless the
 * engine forbids a switch; what is returned, and errno, are the real function's own. Non-blocking
 * descriptors are left to their owners.
 */
#include "visit.h"
#include "ext/spl/spl_exceptions.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ring's WaitCall. */
enum call { POLL, SELECT, SLEEP, CONNECT, RECEIVE, SEND, CHILD, RESOLVE, LOCK };

zend_class_entry *outboard_connection_in_use;

/* The engine's thread: libcurl resolves names in threads of its own. */
static __thread bool is_engine_thread;

void outboard_waiting_startup(void)
{
	is_engine_thread = true;
}

#define REAL(name) \
	static __typeof__(&name) real; \
	if (!real) { \
		real = (__typeof__(&name)) dlsym(RTLD_NEXT, #name); \
	}

static bool may_suspend(void)
{
	return is_engine_thread && outboard_events && outboard_may_suspend();
}

static int64_t now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* For waits that hold the whole worker: `outboard status` shows them. */
static int64_t begin_blocking(void)
{
	return is_engine_thread && outboard_events ? now_us() : 0;
}

static void end_blocking(enum call call, int64_t since_us)
{
	if (since_us) {
		int64_t took_us = now_us() - since_us;
		/* What took no time waited for nothing. */
		if (took_us > 100) {
			int saved_errno = errno;
			outboard_rs_count_wait(outboard_events, call, took_us);
			errno = saved_errno;
		}
	}
}

enum waited { CAME, LATE, TAKEN, IMPOSSIBLE };

/*
 * Suspends until one of the descriptors is ready or the time is over; below 0 there is no end.
 * Where another coroutine waits for one of them, `other` is that one.
 */
static enum waited wait_unless_taken(
	enum call call, struct pollfd *fds, size_t count, int64_t timeout_us, uint64_t *other)
{
	int saved_errno = errno;
	if (outboard_is_cancelled()) {
		outboard_throw_if_cancelled();
		return LATE;
	}
	*other = 0;
	if (outboard_rs_wait(outboard_events, outboard_waiter(), fds, count, timeout_us, other)) {
		return *other ? TAKEN : IMPOSSIBLE;
	}
	outboard_rs_count_wait(outboard_events, call, -1);
	uint64_t self = outboard_waiter();
	bool cancelled = outboard_suspend() == OUTBOARD_CANCELLED;
	outboard_rs_unwait(outboard_events, self);
	errno = saved_errno;
	if (cancelled) {
		outboard_throw_if_cancelled();
	}
	return cancelled ? LATE : CAME;
}

/* The same for who would read or write: what another waits for is refused. */
static enum waited wait_for(enum call call, struct pollfd *fds, size_t count, int64_t timeout_us)
{
	uint64_t other;
	enum waited waited = wait_unless_taken(call, fds, count, timeout_us, &other);
	if (waited == TAKEN) {
		outboard_refuse(outboard_frame_of(other));
		errno = EBUSY;
		return IMPOSSIBLE;
	}
	return waited;
}

static enum waited wait_for_one(enum call call, int fd, short events, int64_t timeout_us)
{
	struct pollfd one = {.fd = fd, .events = events};
	return wait_for(call, &one, 1, timeout_us);
}

static int poll_real(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	REAL(poll);
	return real(fds, count, timeout_ms);
}

/*
 * Asking what is ready takes nothing from another who asks the same, such as two requests that
 * share a multi handle of curl. The kernel is asked again and again then: it tells one of them.
 */
static enum waited wait_among_others(
	enum call call, struct pollfd *fds, size_t count, int64_t timeout_us)
{
	int64_t until_us = timeout_us < 0 ? INT64_MAX : now_us() + timeout_us;
	int64_t pause_us = 500;
	uint64_t other;
	enum waited waited;
	for (;;) {
		int64_t left_us = until_us == INT64_MAX ? -1 : until_us - now_us();
		waited = wait_unless_taken(call, fds, count, left_us < -1 ? 0 : left_us, &other);
		if (waited != TAKEN) {
			return waited;
		}
		waited = wait_for(call, NULL, 0, pause_us);
		if (waited != CAME || poll_real(fds, count, 0) != 0 || now_us() >= until_us) {
			return waited;
		}
		pause_us = pause_us < 8000 ? pause_us * 2 : 8000;
	}
}

static int poll_waiting(struct pollfd *fds, nfds_t count, int64_t timeout_us)
{
	int ready = poll_real(fds, count, 0);
	if (ready != 0 || timeout_us == 0) {
		return ready;
	}
	if (wait_among_others(POLL, fds, count, timeout_us) == IMPOSSIBLE) {
		return poll_real(fds, count, timeout_us < 0 ? -1 : (int) ((timeout_us + 999) / 1000));
	}
	return poll_real(fds, count, 0);
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	if (timeout_ms != 0 && may_suspend()) {
		return poll_waiting(fds, count, timeout_ms < 0 ? -1 : (int64_t) timeout_ms * 1000);
	}
	int64_t since_us = timeout_ms ? begin_blocking() : 0;
	int ready = poll_real(fds, count, timeout_ms);
	end_blocking(POLL, since_us);
	return ready;
}

/* What poll becomes with _FORTIFY_SOURCE. */
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t size)
{
	(void) size;
	return poll(fds, count, timeout_ms);
}

static int select_real(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *time)
{
	REAL(select);
	return real(count, in, out, except, time);
}

static size_t collect(int count, const fd_set *sets[3], struct pollfd *fds)
{
	static const short kinds[3] = {POLLIN, POLLOUT, POLLPRI};
	size_t used = 0;
	for (int fd = 0; fd < count; fd++) {
		short events = 0;
		for (int i = 0; i < 3; i++) {
			if (sets[i] && FD_ISSET(fd, sets[i])) {
				events |= kinds[i];
			}
		}
		if (events) {
			fds[used++] = (struct pollfd) {.fd = fd, .events = events};
		}
	}
	return used;
}

/* select(2) overwrites the sets with what is ready, so they are asked of twice. */
int select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *time)
{
	fd_set *given[3] = {in, out, except};
	fd_set copies[3];
	const fd_set *sets[3];
	struct pollfd fds[FD_SETSIZE];
	struct timeval none = {0, 0};
	int64_t timeout_us = time ? (int64_t) time->tv_sec * 1000000 + time->tv_usec : -1;
	if (timeout_us == 0 || count > FD_SETSIZE || !may_suspend()) {
		int64_t since_us = timeout_us ? begin_blocking() : 0;
		int ready = select_real(count, in, out, except, time);
		end_blocking(SELECT, since_us);
		return ready;
	}
	for (int i = 0; i < 3; i++) {
		sets[i] = given[i] ? &copies[i] : NULL;
		if (given[i]) {
			copies[i] = *given[i];
		}
	}
	int ready = select_real(count, in, out, except, &none);
	if (ready != 0) {
		return ready;
	}
	enum waited waited = wait_among_others(SELECT, fds, collect(count, sets, fds), timeout_us);
	for (int i = 0; i < 3; i++) {
		if (given[i]) {
			*given[i] = copies[i];
		}
	}
	return select_real(count, in, out, except, waited == IMPOSSIBLE ? time : &none);
}

static void sleep_waiting(int64_t us)
{
	wait_for(SLEEP, NULL, 0, us);
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
	REAL(nanosleep);
	if (may_suspend() && wanted->tv_sec >= 0 && wanted->tv_nsec >= 0 && wanted->tv_nsec < 1000000000) {
		sleep_waiting((int64_t) wanted->tv_sec * 1000000 + (wanted->tv_nsec + 999) / 1000);
		return 0;
	}
	int64_t since_us = begin_blocking();
	int result = real(wanted, left);
	end_blocking(SLEEP, since_us);
	return result;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left)
{
	REAL(clock_nanosleep);
	if (may_suspend() && wanted->tv_sec >= 0) {
		int64_t us = (int64_t) wanted->tv_sec * 1000000 + (wanted->tv_nsec + 999) / 1000;
		if (flags & TIMER_ABSTIME) {
			struct timespec now;
			clock_gettime(clock, &now);
			us -= (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
		}
		sleep_waiting(us > 0 ? us : 0);
		return 0;
	}
	int64_t since_us = begin_blocking();
	int result = real(clock, flags, wanted, left);
	end_blocking(SLEEP, since_us);
	return result;
}

int usleep(useconds_t us)
{
	struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = (long) (us % 1000000) * 1000};
	return nanosleep(&time, NULL);
}

unsigned int sleep(unsigned int seconds)
{
	struct timespec time = {.tv_sec = seconds};
	struct timespec left = {0};
	return nanosleep(&time, &left) == 0 ? 0 : (unsigned int) left.tv_sec;
}

static bool is_blocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags >= 0 && !(flags & O_NONBLOCK);
}

/* SO_RCVTIMEO or SO_SNDTIMEO; below 0 there is none. */
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
 * Whether the descriptor may be read or written now without holding the worker: true as well when
 * it is not a blocking one, or when nothing can be done about it.
 */
static bool prepare(enum call call, int fd, short events)
{
	struct pollfd one = {.fd = fd, .events = events};
	int saved_errno = errno;
	int ready = poll_real(&one, 1, 0);
	errno = saved_errno;
	if (ready != 0 || !is_blocking(fd)) {
		return true;
	}
	int64_t timeout_us = socket_timeout_us(fd, events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO);
	errno = saved_errno;
	int64_t begun_us = now_us();
	if (wait_for_one(call, fd, events, timeout_us) == IMPOSSIBLE) {
		return !EG(exception);
	}
	if (EG(exception) || (timeout_us >= 0 && now_us() - begun_us >= timeout_us
		&& poll_real(&one, 1, 0) == 0)) {
		errno = EAGAIN;
		return false;
	}
	return true;
}

/* Two coroutines on one connection would read each other's answers: the second is refused. */
static bool is_taken(int fd)
{
	uint64_t other = outboard_rs_reader(outboard_events, fd);
	if (!other || other == outboard_waiter()) {
		return false;
	}
	const zend_execute_data *frame = outboard_frame_of(other);
	const zend_function *function = frame ? frame->func : NULL;
	if (function && !function->common.scope && function->common.function_name) {
		/* Streams and sockets of the script: one may read what another writes. */
		const char *name = ZSTR_VAL(function->common.function_name);
		if (name[0] == 'f' || !strncmp(name, "stream_", 7) || !strncmp(name, "socket_", 7)) {
			return false;
		}
	}
	outboard_refuse(outboard_frame_of(other));
	errno = EBUSY;
	return true;
}

ssize_t read(int fd, void *buffer, size_t len)
{
	REAL(read);
	if (may_suspend() && !prepare(RECEIVE, fd, POLLIN)) {
		return -1;
	}
	return real(fd, buffer, len);
}

ssize_t __read_chk(int fd, void *buffer, size_t len, size_t size)
{
	(void) size;
	return read(fd, buffer, len);
}

ssize_t write(int fd, const void *buffer, size_t len)
{
	REAL(write);
	if (may_suspend() && (is_taken(fd) || !prepare(SEND, fd, POLLOUT))) {
		return -1;
	}
	return real(fd, buffer, len);
}

ssize_t recv(int fd, void *buffer, size_t len, int flags)
{
	REAL(recv);
	if (!(flags & MSG_DONTWAIT) && may_suspend() && !prepare(RECEIVE, fd, POLLIN)) {
		return -1;
	}
	return real(fd, buffer, len, flags);
}

ssize_t __recv_chk(int fd, void *buffer, size_t len, size_t size, int flags)
{
	(void) size;
	return recv(fd, buffer, len, flags);
}

ssize_t recvfrom(
	int fd, void *buffer, size_t len, int flags, __SOCKADDR_ARG from, socklen_t *from_len)
{
	REAL(recvfrom);
	if (!(flags & MSG_DONTWAIT) && may_suspend() && !prepare(RECEIVE, fd, POLLIN)) {
		return -1;
	}
	return real(fd, buffer, len, flags, from, from_len);
}

ssize_t send(int fd, const void *buffer, size_t len, int flags)
{
	REAL(send);
	if (may_suspend()) {
		if (is_taken(fd) || (!(flags & MSG_DONTWAIT) && !prepare(SEND, fd, POLLOUT))) {
			return -1;
		}
	}
	return real(fd, buffer, len, flags);
}

ssize_t sendto(
	int fd, const void *buffer, size_t len, int flags, __CONST_SOCKADDR_ARG to, socklen_t to_len)
{
	REAL(sendto);
	if (!(flags & MSG_DONTWAIT) && may_suspend() && !prepare(SEND, fd, POLLOUT)) {
		return -1;
	}
	return real(fd, buffer, len, flags, to, to_len);
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t len)
{
	REAL(connect);
	if (!may_suspend() || !is_blocking(fd)) {
		return real(fd, address, len);
	}
	int flags = fcntl(fd, F_GETFL);
	int64_t timeout_us = socket_timeout_us(fd, SO_SNDTIMEO);
	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	int result = real(fd, address, len);
	if (result != 0 && errno == EINPROGRESS) {
		socklen_t error_len = sizeof(errno);
		wait_for_one(CONNECT, fd, POLLOUT, timeout_us);
		struct pollfd one = {.fd = fd, .events = POLLOUT};
		int error = EINPROGRESS;
		if (poll_real(&one, 1, 0) > 0) {
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

/* A child has ended when the descriptor of its process is readable (pidfd_open(2)). */
static void await_child(pid_t pid)
{
	int saved_errno = errno;
	int fd = (int) syscall(SYS_pidfd_open, pid, 0);
	if (fd >= 0) {
		wait_for_one(CHILD, fd, POLLIN, -1);
		close(fd);
	}
	errno = saved_errno;
}

pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	REAL(wait4);
	if (pid > 0 && !(options & WNOHANG) && may_suspend()) {
		pid_t ended = real(pid, status, options | WNOHANG, usage);
		if (ended != 0) {
			return ended;
		}
		await_child(pid);
	}
	int64_t since_us = options & WNOHANG ? 0 : begin_blocking();
	pid_t ended = real(pid, status, options, usage);
	end_blocking(CHILD, since_us);
	return ended;
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	return wait4(pid, status, options, NULL);
}

/* Tries again, less and less often: no descriptor tells when a lock is free. */
int flock(int fd, int operation)
{
	REAL(flock);
	if ((operation & LOCK_NB) || (operation & LOCK_UN) || !may_suspend()) {
		int64_t since_us = begin_blocking();
		int result = real(fd, operation);
		end_blocking(LOCK, since_us);
		return result;
	}
	int64_t pause_us = 500;
	for (;;) {
		int result = real(fd, operation | LOCK_NB);
		if (result == 0 || errno != EWOULDBLOCK) {
			return result;
		}
		if (wait_for(LOCK, NULL, 0, pause_us) != CAME) {
			errno = EINTR;
			return -1;
		}
		pause_us = pause_us < 16000 ? pause_us * 2 : 16000;
	}
}

/* A call that a thread makes while the coroutine waits. */
struct errand {
	void (*run)(struct errand *errand);
	const char *node;
	const char *service;
	const struct addrinfo *hints;
	struct addrinfo **found;
	FILE *pipe;
	struct hostent *host;
	char *buffer;
	size_t buffer_len;
	struct hostent **host_found;
	int *host_error;
	int result;
	int error;
	atomic_bool done;
};

static void run_errand(void *arg)
{
	struct errand *errand = arg;
	errand->run(errand);
	errand->error = errno;
	atomic_store(&errand->done, true);
}

static int send_on(enum call call, struct errand *errand)
{
	if (!outboard_rs_offload(outboard_events, outboard_waiter(), run_errand, errand)) {
		run_errand(errand);
		return errand->result;
	}
	outboard_rs_count_wait(outboard_events, call, -1);
	/* It writes to this stack, so it is waited for whatever happens. */
	do {
		outboard_suspend();
	} while (!atomic_load(&errand->done));
	errno = errand->error;
	outboard_throw_if_cancelled();
	return errand->result;
}

static int getaddrinfo_real(
	const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	REAL(getaddrinfo);
	return real(node, service, hints, found);
}

static void resolve(struct errand *errand)
{
	errand->result =
		getaddrinfo_real(errand->node, errand->service, errand->hints, errand->found);
}

static bool is_address(const char *node)
{
	return !node || node[strspn(node, "0123456789.")] == '\0' || strchr(node, ':');
}

int getaddrinfo(
	const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	if (!is_address(node) && may_suspend()) {
		struct errand errand = {
			.run = resolve, .node = node, .service = service, .hints = hints, .found = found};
		return send_on(RESOLVE, &errand);
	}
	int64_t since_us = begin_blocking();
	int result = getaddrinfo_real(node, service, hints, found);
	end_blocking(RESOLVE, since_us);
	return result;
}

static int gethostbyname_real(const char *name, struct hostent *host, char *buffer,
	size_t buffer_len, struct hostent **found, int *error)
{
	REAL(gethostbyname_r);
	return real(name, host, buffer, buffer_len, found, error);
}

static void find_host(struct errand *errand)
{
	errand->result = gethostbyname_real(errand->node, errand->host, errand->buffer,
		errand->buffer_len, errand->host_found, errand->host_error);
}

int gethostbyname_r(const char *name, struct hostent *host, char *buffer, size_t buffer_len,
	struct hostent **found, int *error)
{
	if (!is_address(name) && may_suspend()) {
		struct errand errand = {.run = find_host, .node = name, .host = host, .buffer = buffer,
			.buffer_len = buffer_len, .host_found = found, .host_error = error};
		return send_on(RESOLVE, &errand);
	}
	int64_t since_us = begin_blocking();
	int result = gethostbyname_real(name, host, buffer, buffer_len, found, error);
	end_blocking(RESOLVE, since_us);
	return result;
}

static int pclose_real(FILE *pipe)
{
	REAL(pclose);
	return real(pipe);
}

static void close_pipe(struct errand *errand)
{
	errand->result = pclose_real(errand->pipe);
}

int pclose(FILE *pipe)
{
	if (may_suspend()) {
		struct errand errand = {.run = close_pipe, .pipe = pipe};
		return send_on(CHILD, &errand);
	}
	int64_t since_us = begin_blocking();
	int result = pclose_real(pipe);
	end_blocking(CHILD, since_us);
	return result;
}

/* The C library reads such a pipe by itself, so its descriptor is waited for before. */
static void await_stream(FILE *stream)
{
	if (may_suspend() && stream->_IO_read_ptr >= stream->_IO_read_end) {
		prepare(RECEIVE, fileno(stream), POLLIN);
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

/*
 * PHP loads extensions with RTLD_DEEPBIND, which would have them, and the libraries that they
 * bring, bind to the C library before this program.
 */
void *dlopen(const char *file, int flags)
{
	REAL(dlopen);
	return real(file, flags & ~RTLD_DEEPBIND);
}
