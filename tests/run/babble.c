/*
 * babble PATH TEXT: listens at a unix socket, says TEXT to whoever comes, and
 * hears them out; without TEXT it hangs up at once.
 */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void answer(int fd, const char *text)
{
	char heard[4096];

	if (*text && write(fd, text, strlen(text)) > 0)
		while (read(fd, heard, sizeof heard) > 0)
			;
	close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (argc < 2 || fd < 0)
		return 1;
	strncpy(a.sun_path, argv[1], sizeof a.sun_path - 1);
	if (bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 8))
		return 1;
	for (;;)
		answer(accept(fd, NULL, NULL), argc > 2 ? argv[2] : "");
}
