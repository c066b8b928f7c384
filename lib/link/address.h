/*
 * Addresses of links, and the sockets behind them.
 *
 *	unix:/path        a unix socket
 *	tcp:host:port     plain tcp; [::1] for addresses with colons
 *	tcp:KEY@host:port a session over tcp with who has that public key
 *	exec:command      a command's standard input and output
 *	dir:/path         a folder, the spool of a run (link/spool.h)
 *
 * What a peer says is never parsed as one: it may name no command and no path.
 */
#ifndef DL_LINK_ADDRESS_H
#define DL_LINK_ADDRESS_H

#include <stdint.h>

#include "base/err.h"
#include "link/child.h"
#include "link/key.h"
#include "link/tcp.h"

enum dl_link_kind { DL_LINK_UNIX, DL_LINK_TCP, DL_LINK_EXEC, DL_LINK_DIR };

enum { DL_ADDRESS_MAX = 320, DL_PEER_MAX = 320 };

struct dl_address {
	enum dl_link_kind kind;
	char host[256];	   /* tcp: without brackets */
	char port[6];	   /* tcp: decimal; 0 lets the system choose (listen) */
	struct dl_tcp tcp; /* tcp: how its sockets are set up */
	int keyed;	   /* tcp: with a key in front of the host */
	unsigned char key[DL_KEY];
	const struct dl_key *own; /* tcp: of this end, in a session; borrowed,
				   * and NULL after parse */
	char path[104];		  /* unix: fits sun_path everywhere */
	uint64_t inode;		  /* of path, while we listen there */
	const char *command;	  /* exec: in the string that was parsed */
	const char *folder;	  /* dir: likewise */
};

/* How plain tcp, without own, is allowed: how often --insecure was said. */
enum dl_insecure {
	DL_INSECURE_NO,	      /* no tcp */
	DL_INSECURE_LOOPBACK, /* tcp to and from this machine only */
	DL_INSECURE_ANYWHERE
};

/* 64 with the fact, which shows no key, when s is none. A command or folder
 * stays where it is in s. */
int dl_address_parse(struct dl_address *a, const char *s, struct dl_err *e);
/* "unix:/path", "tcp:127.0.0.1:4000", keys in full; a long command is cut;
 * returns out. */
char *dl_address_print(char out[DL_ADDRESS_MAX], const struct dl_address *a);
/* The same for messages, where a key is cut: by mistake it may be a secret one.
 */
char *dl_address_show(char out[DL_ADDRESS_MAX], const struct dl_address *a);

/*
 * The nth address that a's host has now, in the system's order, and from the
 * first again when there are fewer: *out is a, with numbers for the host, and
 * *count how many there are. What is not tcp has one, itself. It may wait for
 * a name server; 69 when the name has no address.
 */
int dl_address_resolve(const struct dl_address *a, unsigned nth,
	struct dl_address *out, unsigned *count, struct dl_err *e);

/*
 * Begins to connect: *fd is a non-blocking, close-on-exec socket, ready for
 * dl_conn_init at once; a failure that shows later ends that connection. Of
 * a name's addresses the first is taken: who may not wait for it, or tries them
 * all, resolves before. 64 when a is not allowed, a folder or port 0, 69 when
 * nobody is there. *child is the command of an exec: link, to be ended when
 * *fd has been closed; else none.
 */
int dl_address_connect(const struct dl_address *a, enum dl_insecure allowed,
	int *fd, struct dl_child *child, struct dl_err *e);

/*
 * Listens: *fd is non-blocking and close-on-exec. A unix socket gets mode 0600
 * and replaces a stale one, after nobody answered there; 73 when one is in use
 * or the path is something else. With port 0 a->port is set. 64 for exec: and
 * dir:.
 */
int dl_address_listen(struct dl_address *a, enum dl_insecure allowed, int *fd,
	struct dl_err *e);
/* Closes the listener; removes the path of a unix socket, unless somebody else
 * listens there by now. */
void dl_address_unlisten(const struct dl_address *a, int fd);

/* One waiting connection: *fd as from connect, or -1 when none waits or it
 * went away; 71 or 74 when the system has no more to give. */
int dl_address_accept(int listener, int *fd, struct dl_err *e);

/* Who is at the other end: "tcp:127.0.0.1:50312", "unix:uid=1000,pid=77". */
char *dl_address_peer(char out[DL_PEER_MAX], int fd);
/* The number of its host, as dl_address.host has it; DL_NO when fd is not
 * tcp. */
int dl_address_host(char out[256], int fd);

#endif
