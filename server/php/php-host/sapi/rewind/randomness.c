/*
 * Random numbers after a rewind, which puts the state of every generator back: each would repeat what it has
 * drawn before, in the same worker and in all others.
 *
 * Called by rewind.c. The engine's own generators are seeded anew by outboard_reset_random(), and those that
 * ask the kernel each time (random_bytes, libsodium, arc4random) have no state. Here are the others: OpenSSL's,
 * which notices a fork by its process id and a rewind not at all, and the C library's rand().
 */
#include "rewind/rewind.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/random.h>

/* Of OpenSSL (RAND_bytes(3), RAND_add(3)), if PHP or an extension has loaded it. */
static int (*random_bytes)(unsigned char *target, int bytes);
static void (*add_entropy)(const void *source, int bytes, double entropy);

/* Before the snapshot: OpenSSL creates its generators at the first use, which takes a while. */
void outboard_randomness_prepare(void)
{
	unsigned char byte;
	random_bytes = (__typeof__(random_bytes)) dlsym(RTLD_DEFAULT, "RAND_bytes");
	add_entropy = (__typeof__(add_entropy)) dlsym(RTLD_DEFAULT, "RAND_add");
	if (random_bytes && add_entropy) {
		random_bytes(&byte, 1);
	}
}

void outboard_randomness_renew(void)
{
	unsigned char seed[32];
	unsigned int number;
	/* It cannot fail or be short for so few bytes (getrandom(2)). */
	if (getrandom(seed, sizeof(seed), 0) != (ssize_t) sizeof(seed)) {
		abort();
	}
	if (add_entropy) {
		add_entropy(seed, sizeof(seed), sizeof(seed));
	}
	memcpy(&number, seed, sizeof(number));
	srandom(number);
}
