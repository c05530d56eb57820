/*
 * Replacements for functions that wait for name servers and other sources of names (nsswitch.conf(5)): a thread makes
 * the call (threads.c). Addresses, which no server is asked for, are converted at once.
 */
#include "waiting/waiting.h"
#include <arpa/nameser.h>
#include <netdb.h>
#include <resolv.h>

#define WORD(value) ((uintptr_t) (value))
/* What is reserved for a host and its aliases, at most. */
#define HOST_BYTES_MAX 65536

/* The replacement of a function that returns an integer; `is_due`: it may wait. */
#define RESOLVE_APART(type, name, parameters, arguments, is_due, ...) \
	type name parameters \
	{ \
		REAL(name); \
		if ((is_due) && outboard_may_wait()) { \
			return (type) outboard_in_thread( \
				RESOLVE, (outboard_c_function) real, (uintptr_t[WORDS_MAX]) {__VA_ARGS__}); \
		} \
		int64_t since_us = outboard_begin_blocking(); \
		type result = real arguments; \
		outboard_end_blocking(RESOLVE, since_us); \
		return result; \
	}

static bool is_address(const char *node)
{
	return !node || node[strspn(node, "0123456789.")] == '\0' || strchr(node, ':');
}

RESOLVE_APART(int, getaddrinfo,
	(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found),
	(node, service, hints, found), !is_address(node), WORD(node), WORD(service), WORD(hints), WORD(found))

RESOLVE_APART(int, getaddrinfo_a, (int mode, struct gaicb *list[], int count, struct sigevent *event),
	(mode, list, count, event), mode == GAI_WAIT, WORD(mode), WORD(list), WORD(count), WORD(event))

RESOLVE_APART(int, gai_suspend, (const struct gaicb *const list[], int count, const struct timespec *time),
	(list, count, time), true, WORD(list), WORD(count), WORD(time))

RESOLVE_APART(int, getnameinfo,
	(const struct sockaddr *address, socklen_t len, char *host, socklen_t host_len, char *service,
		socklen_t service_len, int flags),
	(address, len, host, host_len, service, service_len, flags), host && !(flags & NI_NUMERICHOST),
	WORD(address), WORD(len), WORD(host), WORD(host_len), WORD(service), WORD(service_len), WORD(flags))

RESOLVE_APART(int, gethostbyname_r,
	(const char *name, struct hostent *host, char *buffer, size_t len, struct hostent **found, int *error),
	(name, host, buffer, len, found, error), !is_address(name),
	WORD(name), WORD(host), WORD(buffer), len, WORD(found), WORD(error))

RESOLVE_APART(int, gethostbyname2_r,
	(const char *name, int family, struct hostent *host, char *buffer, size_t len, struct hostent **found, int *error),
	(name, family, host, buffer, len, found, error), !is_address(name),
	WORD(name), WORD(family), WORD(host), WORD(buffer), len, WORD(found), WORD(error))

RESOLVE_APART(int, gethostbyaddr_r,
	(const void *address, socklen_t size, int family, struct hostent *host, char *buffer, size_t len,
		struct hostent **found, int *error),
	(address, size, family, host, buffer, len, found, error), true,
	WORD(address), WORD(size), WORD(family), WORD(host), WORD(buffer), len, WORD(found), WORD(error))

RESOLVE_APART(int, res_nsearch, (res_state state, const char *name, int class, int type, unsigned char *answer, int len),
	(state, name, class, type, answer, len), true,
	WORD(state), WORD(name), WORD(class), WORD(type), WORD(answer), WORD(len))

RESOLVE_APART(int, res_nquery, (res_state state, const char *name, int class, int type, unsigned char *answer, int len),
	(state, name, class, type, answer, len), true,
	WORD(state), WORD(name), WORD(class), WORD(type), WORD(answer), WORD(len))

RESOLVE_APART(int, res_nsend, (res_state state, const unsigned char *query, int query_len, unsigned char *answer, int len),
	(state, query, query_len, answer, len), true,
	WORD(state), WORD(query), WORD(query_len), WORD(answer), WORD(len))

/* These have a state for each thread, so they get that of this one. */
int res_search(const char *name, int class, int type, unsigned char *answer, int len)
{
	return _res.options & RES_INIT || res_init() == 0 ? res_nsearch(&_res, name, class, type, answer, len) : -1;
}

int res_query(const char *name, int class, int type, unsigned char *answer, int len)
{
	return _res.options & RES_INIT || res_init() == 0 ? res_nquery(&_res, name, class, type, answer, len) : -1;
}

/* The result of functions whose caller has no memory for it: valid until the next one, as in the C library. */
struct found_host {
	struct hostent host;
	char buffer[];
};

static struct hostent *find_host(const char *name, const void *address, socklen_t size, int family)
{
	static __thread struct found_host *last;
	for (size_t len = 1024; len <= HOST_BYTES_MAX; len *= 2) {
		struct found_host *own = malloc(sizeof(*own) + len);
		struct hostent *host = NULL;
		int error = NETDB_INTERNAL;
		int result = !own ? ENOMEM : name
			? gethostbyname2_r(name, family, &own->host, own->buffer, len, &host, &error)
			: gethostbyaddr_r(address, size, family, &own->host, own->buffer, len, &host, &error);
		h_errno = error;
		if (result == 0 && host) {
			free(last);
			last = own;
			return host;
		}
		free(own);
		if (result != ERANGE) {
			break;
		}
	}
	return NULL;
}

struct hostent *gethostbyname2(const char *name, int family)
{
	return find_host(name, NULL, 0, family);
}

struct hostent *gethostbyname(const char *name)
{
	return find_host(name, NULL, 0, AF_INET);
}

struct hostent *gethostbyaddr(const void *address, socklen_t size, int family)
{
	return find_host(NULL, address, size, family);
}
