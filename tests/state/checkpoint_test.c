/* Checkpoints: what is packed comes back, and nothing else does. */
#include "state/checkpoint.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "../tap.h"
#include "base/file.h"
#include "base/num.h"
#include "state/store_write.h"

static const char layout_text[] =
	"# name\tdtype\tshape\telements\tfragment\trule\n"
	"# format\t1\n"
	"a\tF32\t3x2\t6\t0\trda\n"
	"b\tBF16\t5\t5\t1\tmean\n"
	"z\tI32\t2\t2\t2\tlast\n";
enum { P = 3, MOST = 6, ENTRIES = 3 + 2 * P + 1 };

static const int64_t made = INT64_C(1700000000123456789);

static struct dl_layout layout;
static char folder[] = "/tmp/dl-checkpoint-XXXXXX";
static const char *store, *good, *bad, *made_of; /* paths in it */

static void must(int rc, const struct dl_err *e, const char *what)
{
	if (!rc)
		return;
	printf("Bail out! %s: %d %s\n", what, rc, e->text);
	exit(1);
}

static void remove_tree(const char *path)
{
	char *command = dl_sprintf("rm -rf '%s'", path);

	if (system(command))
		exit(1);
	free(command);
}

static const float *array(int kind, uint32_t p, uint64_t n)
{
	static float v[3][MOST];

	for (uint32_t i = 0; i < MOST; i++)
		v[kind][i] = kind && !n ? 0
					: (float)(1000 * kind + (int)(100 * n) +
						  10 * (int)p + (int)i);
	return v[kind];
}

static struct dl_sync_saved state(uint64_t n)
{
	struct dl_sync_saved v = {
		.epoch = 4, .clock = 24 * n, .fragments = P, .learners = 1};

	v.fragment = dl_alloc_array(P, sizeof *v.fragment);
	for (uint32_t p = 0; p < P; p++)
		v.fragment[p].version = (struct dl_version){4, p == 1 ? n : 0};
	v.learner = dl_alloc(sizeof *v.learner);
	strcpy(v.learner->name, "ann");
	v.learner->merged = dl_alloc_array(P, sizeof(uint64_t));
	return v;
}

static void commit(struct dl_store *s, uint64_t n)
{
	struct dl_sync_saved v = state(n);
	struct dl_err e;

	must(dl_store_commit(s, 1, array(0, 1, n), array(1, 1, n),
		     array(2, 1, n), &v, &e),
		&e, "commit");
	dl_sync_saved_release(&v);
}

static void commit_unhashed(struct dl_store *s, uint64_t n)
{
	struct dl_sync_saved v = state(n);
	struct dl_store_write w = {.p = 1,
		.content = {.data = {array(0, 1, n), array(1, 1, n),
				    array(2, 1, n)},
			.unhashed = 1}};
	struct dl_err e;

	must(dl_store_write_begin(s, &w, &v, &e), &e, "begin");
	must(dl_store_write(s, NULL, &w, &e), &e, "write");
	must(dl_store_write_end(s, &w, 1, &v, &e), &e, "end");
	dl_store_write_tidy(s, &w, 1);
	dl_sync_saved_release(&v);
}

/* A new store of run demo. */
static struct dl_store *make_empty(void)
{
	const struct dl_store_run run = {"demo", 24};
	struct dl_sync_saved v = state(0);
	float first[P][MOST];
	const float *values[P];
	struct dl_store *s;
	struct dl_err e;

	remove_tree(store);
	for (uint32_t p = 0; p < P; p++)
		values[p] = memcpy(first[p], array(0, p, 0), sizeof first[p]);
	must(dl_store_create(store, &run, &layout, &v, values, &e), &e,
		"create");
	dl_sync_saved_release(&v);
	must(dl_store_open(&s, store, DL_STORE_OWN, &e), &e, "open");
	return s;
}

/* After one merge of fragment 1. */
static struct dl_store *make_store(void)
{
	struct dl_store *s = make_empty();

	commit(s, 1);
	return s;
}

static void make_good(void)
{
	struct dl_store *s = make_store();
	struct dl_pin *pin = dl_store_pin(s);
	struct dl_err e;

	must(dl_checkpoint_write(pin, made, good, &e), &e, "write");
	dl_store_unpin(s, pin);
	dl_store_close(s);
}

/* As after one merge of fragment 1. */
static int holds(const char *path)
{
	struct dl_store *s;
	struct dl_err e;
	int same = !dl_store_open(&s, path, DL_STORE_OWN, &e);

	for (uint32_t p = 0; same && p < P; p++) {
		size_t size = layout.fragment[p].elements * sizeof(float);
		float got[3][MOST];

		same = !dl_store_load(s, p, got[0], got[1], &e) &&
		       !memcmp(got[0], array(0, p, p == 1), size) &&
		       !memcmp(got[1], array(1, p, p == 1), size) &&
		       dl_store_load_error(s, p, got[2], &e) ==
			       (p == 1 ? 0 : DL_NO) &&
		       (p != 1 || !memcmp(got[2], array(2, 1, 1), size));
	}
	same = same && dl_store_saved(s)->clock == 24 &&
	       !strcmp(dl_store_run(s)->name, "demo");
	dl_store_close(s);
	return same;
}

static uint64_t epoch_of(const char *path)
{
	struct dl_store *s;
	struct dl_err e;
	uint64_t epoch;

	must(dl_store_open(&s, path, DL_STORE_LOOK, &e), &e, "open");
	epoch = dl_store_saved(s)->epoch;
	dl_store_close(s);
	return epoch;
}

static int unpack_at(int64_t now)
{
	struct dl_err e;
	int rc;

	remove_tree(made_of);
	rc = dl_checkpoint_unpack(good, made_of, now, &e);
	if (rc)
		printf("# %s\n", e.text);
	return rc;
}

static int same_values(const char *path)
{
	struct dl_layout l;
	float **values;
	struct dl_err e;
	int same = !dl_checkpoint_read(path, &l, &values, &e) &&
		   !strcmp(l.hash, layout.hash);

	for (uint32_t p = 0; values && p < l.fragments; p++) {
		size_t size = l.fragment[p].elements * sizeof(float);

		same = same && values[p] &&
		       !memcmp(values[p], array(0, p, p == 1), size);
		if (values[p])
			dl_big_free(values[p], size);
	}
	free(values);
	dl_layout_release(&l);
	return same;
}

static void test_round_trip(void)
{
	struct dl_checkpoint_info i;
	struct dl_err e;

	ok(!dl_checkpoint_check(good, &i, &e) && !strcmp(i.run.name, "demo") &&
			i.run.h == 24 && i.epoch == 4 && i.clock == 24 &&
			i.fragments == P && i.made == made &&
			i.bytes == 4 * (2 * (6 + 5 + 2) + 5),
		"it is sound, and of what was packed");
	ok(dl_checkpoint_is(good) && !dl_checkpoint_is(store) &&
			!dl_checkpoint_is(layout_text),
		"it is known for what it is");
	ok(!unpack_at(made + 1) && holds(made_of) && epoch_of(made_of) == 4,
		"a store comes out of it");
	ok(dl_checkpoint_unpack(good, made_of, made, &e) == DL_CANTCREAT,
		"once: %s", e.text);
	ok(!unpack_at(made + 7 * DL_SECOND / 2000) && epoch_of(made_of) == 7,
		"the epoch rises by whole milliseconds");
	ok(!unpack_at(made - DL_SECOND) && epoch_of(made_of) == 4,
		"and never falls");
	ok(same_values(good), "values and layout come out of it");
}

/* What of it is packed after another commit is good. */
static int packs_same(struct dl_store *s)
{
	struct dl_pin *pin = dl_store_pin(s);
	struct dl_buf first = DL_BUF_INIT, second = DL_BUF_INIT;
	struct dl_err e;
	int fd = open(bad, O_RDWR | O_CREAT | O_TRUNC, 0666), same;

	commit(s, 2);
	must(dl_checkpoint_pack(pin, made, fd, &e), &e, "pack");
	close(fd);
	dl_store_unpin(s, pin);
	dl_store_close(s);
	must(dl_read_file(good, SIZE_MAX, &first, &e), &e, "read");
	must(dl_read_file(bad, SIZE_MAX, &second, &e), &e, "read");
	same = first.len == second.len &&
	       !memcmp(first.data, second.data, first.len);
	dl_buf_free(&first);
	dl_buf_free(&second);
	return same;
}

static void test_same_bytes(void)
{
	struct dl_store *s;

	ok(packs_same(make_store()),
		"same HEAD and time, same bytes, whatever came since");
	s = make_empty();
	commit_unhashed(s, 1);
	ok(packs_same(s), "also when HEAD does not have all hashes yet");
}

static void test_failures(void)
{
	struct dl_store *s = make_store();
	struct dl_pin *pin = dl_store_pin(s);
	char *file = dl_sprintf("%s/momentum/2.4.0", store);
	int full = open("/dev/full", O_WRONLY);
	struct dl_err e;
	int fd;

	ok(dl_checkpoint_pack(pin, made, full, &e) == DL_IOERR,
		"a full disk: %s", e.text);
	close(full);
	fd = open(file, O_RDWR);
	if (fd < 0 || pwrite(fd, "x", 1, 90) != 1)
		exit(1);
	close(fd);
	unlink(bad);
	ok(dl_checkpoint_write(pin, made, bad, &e) == DL_DATA &&
			strstr(e.text, file) && access(bad, F_OK),
		"a store that is damaged is not packed: %s", e.text);
	dl_checkpoint_abandon(pin);
	ok(dl_checkpoint_write(pin, made, bad, &e) == DL_TEMPFAIL &&
			access(bad, F_OK),
		"nor is what nobody wants: %s", e.text);
	dl_store_unpin(s, pin);
	dl_store_close(s);
	free(file);
}

/* ---- others: what a tar can hold otherwise ------------------------------ */

struct item {
	char name[100];
	struct dl_buf data;
	unsigned type; /* AE_IFREG, ... */
	int linked;    /* to another entry: a hard link */
	int sparse;
};

static struct item item[ENTRIES + 2];
static size_t items;

static void drop_items(void)
{
	for (size_t i = 0; i < items; i++)
		dl_buf_free(&item[i].data);
	items = 0;
}

static void read_items(void)
{
	struct archive *a = archive_read_new();
	struct archive_entry *entry;

	drop_items();
	archive_read_support_format_tar(a);
	archive_read_support_filter_zstd(a);
	if (archive_read_open_filename(a, good, 10240))
		exit(1);
	while (!archive_read_next_header(a, &entry)) {
		struct item *i = &item[items++];
		size_t n = (size_t)archive_entry_size(entry);

		*i = (struct item){.type = archive_entry_filetype(entry)};
		strcpy(i->name, archive_entry_pathname(entry));
		dl_buf_reserve(&i->data, n);
		i->data.len = n;
		if (archive_read_data(a, i->data.data, n) != (la_ssize_t)n)
			exit(1);
	}
	archive_read_free(a);
}

static void write_item(struct archive *a, const struct item *i)
{
	struct archive_entry *entry = archive_entry_new();

	archive_entry_set_pathname(entry, i->name);
	archive_entry_set_filetype(entry, i->type);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_size(entry, (la_int64_t)i->data.len);
	if (i->type == AE_IFLNK)
		archive_entry_set_symlink(entry, "../../etc/passwd");
	if (i->type == AE_IFCHR)
		archive_entry_set_rdev(entry, 1);
	if (i->linked)
		archive_entry_set_hardlink(entry, item[1].name);
	if (i->sparse)
		archive_entry_sparse_add_entry(entry, 4, 8);
	if (archive_write_header(a, entry))
		exit(1);
	if (i->type == AE_IFREG && !i->linked)
		archive_write_data(a, i->data.data, i->data.len);
	archive_entry_free(entry);
}

/* The items as a file at bad, compressed by that filter of libarchive. */
static void write_items(int filter)
{
	struct archive *a = archive_write_new();

	archive_write_set_format_pax(a);
	archive_write_add_filter(a, filter);
	if (archive_write_open_filename(a, bad))
		exit(1);
	for (size_t i = 0; i < items; i++)
		write_item(a, &item[i]);
	if (archive_write_close(a))
		exit(1);
	archive_write_free(a);
}

static void replace(struct item *i, const char *from, const char *to)
{
	char *text = dl_strdup(dl_buf_cstr(&i->data));
	char *at = strstr(text, from);

	if (!at)
		exit(1);
	dl_buf_clear(&i->data);
	dl_buf_add(&i->data, text, (size_t)(at - text));
	dl_buf_str(&i->data, to);
	dl_buf_str(&i->data, at + strlen(from));
	free(text);
}

/* What is at bad is refused, with that text, and nothing is unpacked of it. */
static void refused(const char *what, const char *text)
{
	struct dl_checkpoint_info info;
	struct dl_err e = {.text = "taken"};
	int rc = dl_checkpoint_check(bad, &info, &e);

	remove_tree(made_of);
	ok(rc == DL_DATA && strstr(e.text, bad) && strstr(e.text, text) &&
			dl_checkpoint_unpack(bad, made_of, made, &e) ==
				DL_DATA &&
			access(made_of, F_OK) && !same_values(bad),
		"%s: %s", what, e.text);
}

/* The number of that entry. */
static size_t find(const char *name)
{
	size_t i = 0;

	while (i < items && strcmp(item[i].name, name))
		i++;
	if (i == items)
		exit(1);
	return i;
}

static void remove_item(size_t i)
{
	dl_buf_free(&item[i].data);
	memmove(item + i, item + i + 1, (--items - i) * sizeof *item);
}

static void insert(size_t at, const char *name)
{
	memmove(item + at + 1, item + at, (items++ - at) * sizeof *item);
	item[at] = (struct item){.type = AE_IFREG};
	strcpy(item[at].name, name);
	dl_buf_str(&item[at].data, "x");
}

static void test_as_they_are(void)
{
	struct dl_checkpoint_info info;
	struct dl_err e = {.text = "taken"};

	read_items();
	ok(items == ENTRIES && !strcmp(item[0].name, "manifest.json") &&
			!strcmp(item[6].name, "momentum/1.4.1") &&
			!strcmp(item[7].name, "error/1.4.1"),
		"another reader sees its entries");
	write_items(ARCHIVE_FILTER_ZSTD);
	ok(!dl_checkpoint_check(bad, &info, &e),
		"another writer's tar of the same is taken: %s", e.text);
	write_items(ARCHIVE_FILTER_NONE);
	ok(!dl_checkpoint_check(bad, &info, &e),
		"also when it is not compressed: %s", e.text);
	write_items(ARCHIVE_FILTER_GZIP);
	refused("gzip", "not a checkpoint");
	write_items(ARCHIVE_FILTER_XZ);
	refused("xz", "not a checkpoint");
	write_items(ARCHIVE_FILTER_COMPRESS);
	refused("compress", "not a checkpoint");
}

/* One entry is of another kind. */
static void test_kinds(void)
{
	static const struct {
		const char *what;
		unsigned type;
	} kinds[] = {{"a symlink", AE_IFLNK}, {"a device", AE_IFCHR},
		{"a fifo", AE_IFIFO}, {"a folder", AE_IFDIR}};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		read_items();
		item[find("global/1.4.1")].type = kinds[i].type;
		write_items(ARCHIVE_FILTER_ZSTD);
		refused(kinds[i].what, "global/1.4.1");
		read_items();
		item[0].type = kinds[i].type;
		dl_buf_clear(&item[0].data);
		write_items(ARCHIVE_FILTER_ZSTD);
		refused(kinds[i].what, "manifest.json");
	}
	read_items();
	item[find("momentum/0.4.0")].linked = 1;
	write_items(ARCHIVE_FILTER_ZSTD);
	refused("a hard link", "momentum/0.4.0: not a regular file");
	read_items();
	item[find("momentum/0.4.0")].sparse = 1;
	write_items(ARCHIVE_FILTER_ZSTD);
	refused("a sparse file", "momentum/0.4.0: not a regular file");
}

static void test_entries(void)
{
	struct item swapped;

	read_items();
	remove_item(find("momentum/1.4.1"));
	write_items(ARCHIVE_FILTER_ZSTD);
	refused("one is missing", "momentum/1.4.1: missing, there is error/1");
	read_items();
	remove_item(items - 1);
	write_items(ARCHIVE_FILTER_ZSTD);
	refused("the last is missing", "momentum/2.4.0: missing");
	read_items();
	insert(items, "more");
	write_items(ARCHIVE_FILTER_ZSTD);
	refused("one too many", "more: not in its manifest");
	read_items();
	insert(4, "../../x\n\"y");
	write_items(ARCHIVE_FILTER_ZSTD);
	refused("a way out", "../../x\\x0a\\x22y: not in its manifest");
	read_items();
	insert(4, "/etc/x");
	write_items(ARCHIVE_FILTER_ZSTD);
	refused("another way out", "/etc/x: not in its manifest");
	read_items();
	insert(5, "global/0.4.0");
	write_items(ARCHIVE_FILTER_ZSTD);
	refused("one comes twice", "global/0.4.0: comes twice");
	read_items();
	insert(items, "manifest.json");
	write_items(ARCHIVE_FILTER_ZSTD);
	refused("the manifest comes twice", "manifest.json: comes twice");
	read_items();
	strcpy(item[5].name, "global/1.4.2");
	write_items(ARCHIVE_FILTER_ZSTD);
	refused("one has another name", "global/1.4.2: not in its manifest");
	read_items();
	swapped = item[3];
	item[3] = item[4];
	item[4] = swapped;
	write_items(ARCHIVE_FILTER_ZSTD);
	refused("two are swapped", "global/0.4.0: missing, there is mom");
	read_items();
	swapped = item[0];
	item[0] = item[1];
	item[1] = swapped;
	write_items(ARCHIVE_FILTER_ZSTD);
	refused("the manifest is not first", "manifest.json does not come");
	drop_items();
	write_items(ARCHIVE_FILTER_ZSTD);
	refused("an empty tar", "not a checkpoint");
}

static void test_contents(void)
{
	for (size_t i = 1; i < ENTRIES; i++) {
		read_items();
		item[i].data.data[item[i].data.len / 2] ^= 1;
		write_items(ARCHIVE_FILTER_ZSTD);
		refused("a bit of it", item[i].name);
		read_items();
		item[i].data.len--;
		write_items(ARCHIVE_FILTER_ZSTD);
		refused("a byte less", item[i].name);
		read_items();
		dl_buf_byte(&item[i].data, 0);
		write_items(ARCHIVE_FILTER_ZSTD);
		refused("a byte more", item[i].name);
	}
}

static void altered(const char *from, const char *to, const char *text)
{
	read_items();
	replace(&item[0], from, to);
	write_items(ARCHIVE_FILTER_ZSTD);
	refused(to, text);
}

static void test_manifest(void)
{
	altered("\"format\":1", "\"format\":2,\"what\":[",
		"manifest.json: format 2: made by a newer dl-tools");
	altered("\"format\":1", "\"format\":0", "no such format");
	altered("\"demo\"", "\"other\"", "HEAD: not that of its manifest");
	altered("\"epoch\":4", "\"epoch\":5", "HEAD: not that of its manifest");
	altered("\"clock\":24", "\"clock\":25", "HEAD: not that");
	altered("\"made\":17", "\"made\":99999999917", "manifest.json: ");
	altered("\"made\"", "\"mode\"", "expected the key 'made'");
	altered("\"name\":\"HEAD\"", "\"name\":\"HEAP\"",
		"HEAD: missing from its manifest");
	altered("\"name\":\"global/1.4.1\"", "\"name\":\"global/../x\"",
		"global/1.4.1: missing from its manifest, but HEAD names it");
	altered("\"blake2b\":\"", "\"blake2b\":\"0", "manifest.json: ");
	altered("]}",
		",{\"name\":\"more\",\"bytes\":1,\"blake2b\":\""
		"0000000000000000000000000000000000000000000000000000000"
		"000000000\"}]}",
		"more: in its manifest, but HEAD does not name it");
}

/* Nothing is made ready for what is only announced. */
static void test_announced(void)
{
	struct dl_buf *text = &item[0].data;

	altered("\"name\":\"HEAD\",\"bytes\":",
		"\"name\":\"HEAD\",\"bytes\":9999999999", "HEAD: claims");
	altered("\"name\":\"layout.tsv\",\"bytes\":",
		"\"name\":\"layout.tsv\",\"bytes\":9999999999",
		"layout.tsv: claims");
	altered("\"name\":\"error/1.4.1\",\"bytes\":",
		"\"name\":\"error/1.4.1\",\"bytes\":9999999999",
		"bytes cannot be fragment 1");
	altered("\"name\":\"error/1.4.1\",\"bytes\":",
		"\"name\":\"error/1.4.1\",\"bytes\":99999999999999999999",
		"manifest.json: ");
	read_items();
	dl_buf_reserve(text, 80 << 20);
	memset(text->data + text->len, ' ', 80 << 20);
	text->len += 80 << 20;
	write_items(ARCHIVE_FILTER_ZSTD);
	refused("80 MB of spaces in some kB", "manifest.json: claims");
}

static void write_file(const char *path, const struct dl_buf *b)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (fd < 0 || dl_write_full(fd, b->data, b->len))
		exit(1);
	close(fd);
}

/* As it is: dl_read_file would decompress. */
static void add_file(const char *path, struct dl_buf *out)
{
	struct stat st;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st))
		exit(1);
	dl_buf_reserve(out, (size_t)st.st_size);
	out->len += (size_t)dl_read_full(
		fd, out->data + out->len, (size_t)st.st_size);
	close(fd);
}

/* The most memory that this process ever had, in kB. */
static long peak(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		exit(1);
	return usage.ru_maxrss;
}

/* What follows the end, however it is packed. */
static void test_after(void)
{
	struct dl_buf plain = DL_BUF_INIT, whole = DL_BUF_INIT;
	struct dl_output o;
	struct dl_err e;
	long before;

	must(dl_read_file(good, SIZE_MAX, &plain, &e), &e, "read");
	add_file(good, &whole);
	dl_buf_byte(&whole, 0);
	write_file(bad, &whole);
	refused("a byte after the frame", "after its last entry");
	whole.len--;
	add_file(good, &whole);
	write_file(bad, &whole);
	refused("the file twice", "manifest.json: comes twice");
	dl_buf_byte(&plain, 'x');
	write_file(bad, &plain);
	refused("a byte after a plain tar", "after its last entry");
	dl_buf_clear(&whole);
	dl_buf_reserve(&whole, 1 << 20);
	memset(whole.data, 0, 1 << 20);
	must(dl_output_open(&o, bad, &e), &e, "open");
	dl_output_compress(&o, 1);
	must(dl_output_write(&o, plain.data, plain.len - 1, &e), &e, "write");
	for (int i = 0; i < 256; i++)
		must(dl_output_write(&o, whole.data, 1 << 20, &e), &e, "write");
	must(dl_output_commit(&o, &e), &e, "commit");
	before = peak();
	refused("256 MB of nothing", "bytes after its last entry");
	ok(peak() - before < 64 << 10, "in the memory of some MB");
	dl_buf_free(&plain);
	dl_buf_free(&whole);
}

/* 1 when it is refused, or is the same all the same. */
static int harmless(const struct dl_buf *file, unsigned *taken)
{
	struct dl_checkpoint_info info;
	struct dl_err e;
	int rc;

	write_file(bad, file);
	rc = dl_checkpoint_check(bad, &info, &e);
	if (rc)
		return rc == DL_DATA && strstr(e.text, bad);
	++*taken;
	return info.epoch == 4 && info.clock == 24 && info.made == made &&
	       same_values(bad);
}

static void test_flips(void)
{
	struct dl_buf file = DL_BUF_INIT;
	unsigned wrong = 0, taken = 0;

	add_file(good, &file);
	for (size_t i = 0; i < file.len; i++) {
		file.data[i] ^= (unsigned char)(1 << i % 8);
		if (!harmless(&file, &taken)) {
			printf("# bit %zu of byte %zu\n", i % 8, i);
			wrong++;
		}
		file.data[i] ^= (unsigned char)(1 << i % 8);
	}
	ok(!wrong && taken < file.len / 100,
		"a bit of each of %zu bytes: %u mean nothing", file.len, taken);
	dl_buf_free(&file);
}

static void test_torn(void)
{
	struct dl_buf file = DL_BUF_INIT;
	unsigned wrong = 0, taken = 0;
	size_t whole;

	add_file(good, &file);
	whole = file.len;
	for (file.len = 0; file.len < whole; file.len++)
		if (!harmless(&file, &taken))
			wrong++;
	ok(!wrong && !taken, "torn at each of its %zu bytes", whole);
	dl_buf_free(&file);
}

/* ---- while the store moves on ------------------------------------------- */

struct packer {
	struct dl_pin *pin;
	char *path;
	struct dl_err e;
	int rc;
};

static void *pack(void *ctx)
{
	struct packer *p = ctx;

	p->rc = dl_checkpoint_write(p->pin, made, p->path, &p->e);
	return NULL;
}

static void test_meanwhile(void)
{
	struct dl_store *s = make_store();
	int sound = 1;

	for (uint64_t n = 1; n < 20; n++) {
		struct packer p = {dl_store_pin(s),
			dl_sprintf("%s/meanwhile", folder), {0}, 0};
		struct dl_checkpoint_info info = {.clock = 0};
		pthread_t thread;

		if (pthread_create(&thread, NULL, pack, &p))
			exit(1);
		commit(s, n + 1);
		pthread_join(thread, NULL);
		sound = sound && !p.rc &&
			!dl_checkpoint_check(p.path, &info, &p.e) &&
			info.clock == 24 * n;
		dl_store_unpin(s, p.pin);
		free(p.path);
	}
	dl_store_close(s);
	ok(sound, "packed in a thread while the store moves on");
}

int main(void)
{
	struct dl_err e;

	if (!mkdtemp(folder))
		return 99;
	store = dl_sprintf("%s/s", folder);
	good = dl_sprintf("%s/good.tar.zst", folder);
	bad = dl_sprintf("%s/bad.tar.zst", folder);
	made_of = dl_sprintf("%s/new", folder);
	must(dl_layout_parse(&layout, layout_text, sizeof layout_text - 1, &e),
		&e, "layout");
	make_good();
	test_round_trip();
	test_same_bytes();
	test_failures();
	test_as_they_are();
	test_kinds();
	test_entries();
	test_contents();
	test_manifest();
	test_announced();
	test_after();
	test_torn();
	test_flips();
	test_meanwhile();
	drop_items();
	dl_layout_release(&layout);
	remove_tree(folder);
	return done_testing();
}
