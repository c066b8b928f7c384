#include "link/door.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static const struct dl_allowance handshakes = {
	DL_DOOR_BURST, DL_SECOND / DL_DOOR_RATE};

/* An IPv4 address may come as an IPv6 one that maps it. */
static struct dl_source find_source(const struct sockaddr *address)
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct dl_source s = {.family = address->sa_family};
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (s.family == AF_INET) {
		memcpy(&in, address, sizeof in);
		memcpy(s.prefix, &in.sin_addr, 4);
		return s;
	}
	memcpy(&in6, address, sizeof in6);
	if (memcmp(&in6.sin6_addr, mapped, sizeof mapped) != 0) {
		memcpy(s.prefix, &in6.sin6_addr, sizeof s.prefix);
		return s;
	}
	s.family = AF_INET;
	memcpy(s.prefix, (unsigned char *)&in6.sin6_addr + 12, 4);
	return s;
}

/* Its entry, or the one whose loss matters least. */
static struct dl_source *place(struct dl_door *d, const struct dl_source *s)
{
	struct dl_source *fullest = &d->source[0];

	for (size_t i = 0; i < DL_DOOR_SOURCES; i++) {
		struct dl_source *at = &d->source[i];

		if (at->family == s->family &&
			!memcmp(at->prefix, s->prefix, sizeof s->prefix))
			return at;
		if (at->bucket.full_at < fullest->bucket.full_at)
			fullest = at;
	}
	*fullest = *s;
	return fullest;
}

int dl_door_knock(
	struct dl_door *d, const struct sockaddr *address, int64_t now)
{
	struct dl_source s;

	if (address->sa_family != AF_INET && address->sa_family != AF_INET6)
		return 1;
	s = find_source(address);
	return dl_bucket_take(&place(d, &s)->bucket, handshakes, now);
}
