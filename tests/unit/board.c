/*
 * The board: processes that find each other, on a clock of this file's own where time matters; those that die, are
 * stopped, or are hostile. In namespaces of its own where that is permitted, so that no other program's board is found.
 */
#include "../cases.h"
#include "process.h"

#include "../alone.h"
#include "base/clock.h"
#include "base/identity.h"
#include "base/proc.h"
#include "gpu/topology/topology.h"
#include "state/board/board.h"
#include "state/board/layout.h"

#include <sys/mount.h>
#include <sys/ptrace.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define NOW (1000 * SECOND) /* of the tests' clock */

#define KILLS (SANITIZED ? 100 : 1000)
#define READS (SANITIZED ? 5000 : 100000)
#define OTHER_USER 65534
#define THIRD_USER 65533

static const struct pci_address gpu = {.domain = 0, .bus = 0x3b}, other_gpu = {.domain = 0, .bus = 0x86};
static const struct tpcset tpcs = {{5, 0, 0, UINT64_C(1) << 63}};
static struct board_peer peers[BOARD_PLACES]; /* that were read last */

/* --- a process of the test ---------------------------------------------------------------------------------------- */

static struct board_claim claim_at(struct pci_address pci, uint64_t now)
{
	return (struct board_claim){.pci = pci, .tpcs = tpcs, .priority = 70, .weight = 300, .lend_us = 2000,
	                            .is_suspended = true, .group = 12, .served_ns = 123, .segment = 50, .inode = 4711,
	                            .written = now};
}

static void claim_on(struct pci_address pci)
{
	struct board_claim claim = claim_at(pci, NOW);

	must(board_claim(&claim));
}

/* On a GPU without a claim of the process: a place is taken, and the places of the dead are freed. */
static void claim_further(uint64_t now)
{
	static uint16_t domain;
	struct board_claim claim = claim_at((struct pci_address){.domain = ++domain}, now);

	must(board_claim(&claim));
}

static void become(uid_t user)
{
	must(setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
}

static int descriptor_of(pid_t pid);

/* Looks at all processes, as soon as the pause after the last search allows. */
static void look(void)
{
	static uint64_t now = NOW;

	board_look(now);
	now += 10 * SECOND;
	while (board_look(now))
		;
}

/* 0: forgets what it has inherited, and joins; the others as they are called. */
static void obey(char order)
{
	switch (order) {
	case 0:
		board_after_fork();
		must(descriptor_of(getpid()) < 0 && board_join(NULL) == 0);
		break;
	case 'c':
		claim_on(gpu);
		break;
	case 'o':
		claim_on(other_gpu);
		break;
	case 'l':
		board_leave();
		break;
	case 's':
		look();
		break;
	case 'u':
		become(OTHER_USER);
		break;
	default:
		_exit(2);
	}
}

/* --- looking at it ------------------------------------------------------------------------------------------------ */

static int descriptor_of(pid_t pid)
{
	int directory = open(text_of("/proc/%d/fd", (int)pid), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(directory >= 0);
	int number = memfd_next(directory, 0, BOARD_LINK, NULL);

	close(directory);
	return number;
}

static ino_t board_at(pid_t pid, int descriptor)
{
	struct stat status = {.st_ino = 0};

	return stat(text_of("/proc/%d/fd/%d", (int)pid, descriptor), &status) == 0 ? status.st_ino : 0;
}

/* The number of the board that a process holds; 0: of none. */
static ino_t board_of(pid_t pid)
{
	return board_at(pid, descriptor_of(pid));
}

static struct board_memory *memory; /* of the board that was looked at last: of the own one, after join */

static void unmap(void)
{
	if (memory)
		munmap(memory, sizeof *memory);
	memory = NULL;
}

static void map_board_of(pid_t pid)
{
	int file = open(text_of("/proc/%d/fd/%d", (int)pid, descriptor_of(pid)), O_RDWR | O_CLOEXEC);

	unmap();
	memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	close(file);
}

static int places_of(pid_t pid)
{
	int count = 0;

	for (int i = 0; i < BOARD_PLACES; i++) {
		uint64_t who = atomic_load(&memory->places[i].who);

		count += who != 0 && (pid == 0 || (pid_t)(who & ((1 << BOARD_PID_BITS) - 1)) == pid);
	}
	return count;
}

static uint64_t start_of(pid_t pid)
{
	char text[PROC_STAT_TEXT];

	proc_stat_read(pid, text);
	return proc_stat_field(text, 22);
}

static uint64_t who_is(pid_t pid)
{
	return board_who((uint64_t)pid, start_of(pid));
}

static void join(void)
{
	struct error error = {.reason = ""};

	assert_done(board_join(&error));
	assert_true(descriptor_of(getpid()) >= 0);
	map_board_of(getpid());
}

static void claim_own(uint64_t now)
{
	struct board_claim claim = claim_at(gpu, now);

	assert_true(board_claim(&claim));
}

static void assert_claims(struct pci_address pci, unsigned int expected)
{
	assert_int_equal(board_read(pci, peers), expected);
}

/* Reads the one claim that there is. */
static struct board_claim the_claim(void)
{
	assert_claims(gpu, 1);
	return peers[0].claim;
}

/* Reads so many claims, and none of their owners lives. */
static void assert_dead(unsigned int expected)
{
	assert_claims(gpu, expected);
	for (unsigned int i = 0; i < expected; i++)
		assert_false(board_is_alive(peers[i].pid, peers[i].start));
}

FIXTURE(leave)
{
	processes_end();
	unmap();
	board_leave();
}

TEST(alone)
{
	int before = count_descriptors();
	struct board_claim claim = claim_at(gpu, NOW);

	assert_true(descriptor_of(getpid()) < 0);
	assert_false(board_claim(&claim));
	assert_claims(gpu, 0);
	assert_false(board_look(NOW));
	assert_true(descriptor_of(getpid()) < 0);
	errno = EDOM;
	join();
	assert_int_equal(errno, EDOM);
	assert_int_equal(count_descriptors(), before + 1);
	assert_true(descriptor_of(getpid()) >= 48);
	assert_int_equal(fcntl(descriptor_of(getpid()), F_GETFD), FD_CLOEXEC);
	join();
	claim_own(NOW);
	assert_claims(gpu, 0);
	look();
	assert_int_equal(errno, EDOM);
	assert_int_equal(count_descriptors(), before + 1);
	board_leave();
	board_leave();
	assert_int_equal(errno, EDOM);
	assert_int_equal(count_descriptors(), before);
	assert_false(board_claim(&claim));
}

TEST(two)
{
	struct process other = process_start(obey);
	struct board_claim claim;

	join();
	assert_int_equal(board_of(getpid()), board_of(other.pid));
	assert_claims(gpu, 0);
	process_order(&other, 'c');
	claim_own(NOW);
	claim = the_claim();
	assert_each(claim.priority, 70, claim.weight, 300, claim.lend_us, 2000, claim.group, 12, claim.served_ns, 123);
	assert_each(claim.segment, 50, claim.inode, 4711, claim.written, NOW);
	assert_true(claim.is_suspended && !claim.is_client);
	assert_each((uint64_t)peers[0].pid, (uint64_t)other.pid, peers[0].start, start_of(other.pid));
	assert_true(pci_address_equal(claim.pci, gpu));
	assert_true(tpcset_equal(&claim.tpcs, &tpcs));
	assert_claims(other_gpu, 0);
	process_order(&other, 'o');
	assert_claims(other_gpu, 1);
	process_order(&other, 'l');
	assert_claims(other_gpu, 0);
	assert_claims(gpu, 0);
}

static void obey_nothing(char order)
{
}

/* More than one part of a search looks at. */
TEST(many_processes)
{
	for (int i = 0; i < 100; i++)
		process_start(obey_nothing);
	struct process other = process_start(obey);

	join();
	assert_int_equal(board_of(getpid()), board_of(other.pid));
}

TEST(alive)
{
	struct process other = process_start(obey);
	uint64_t start = start_of(other.pid);
	bool is_alive;

	errno = EDOM;
	assert_true(board_is_alive(other.pid, start));
	assert_false(board_is_alive(other.pid, start + 1));
	with_limit(RLIMIT_NOFILE, 0, is_alive = board_is_alive(other.pid, start));
	assert_true(is_alive);
	kill(other.pid, SIGSTOP);
	process_wait(&other, WSTOPPED);
	assert_false(board_is_alive(other.pid, start));
	kill(other.pid, SIGCONT);
	process_wait(&other, WCONTINUED);
	assert_true(board_is_alive(other.pid, start));
	if (ptrace(PTRACE_SEIZE, other.pid, NULL, NULL) == 0 && ptrace(PTRACE_INTERRUPT, other.pid, NULL, NULL) == 0) {
		process_wait(&other, WSTOPPED);
		assert_false(board_is_alive(other.pid, start));
	}
	kill(other.pid, SIGKILL);
	process_wait(&other, WEXITED);
	assert_int_equal(start_of(other.pid), start);
	assert_false(board_is_alive(other.pid, start));
	process_end(&other);
	assert_false(board_is_alive(other.pid, start));
	assert_int_equal(errno, EDOM);
}

/* One that cannot be asked for, without a descriptor to spare, keeps its place. */
TEST(own_limits)
{
	struct process other = process_start(obey);
	struct board_claim claim = claim_at(gpu, NOW);
	bool is_written;

	join();
	process_order(&other, 'c');
	with_limit(RLIMIT_NOFILE, 0, is_written = board_claim(&claim));
	assert_true(is_written);
	the_claim();
}

/* A claim holds as long as it stands there, however old it is. */
TEST(dead_owner)
{
	struct process other = process_start(obey);

	join();
	process_order(&other, 'c');
	kill(other.pid, SIGSTOP);
	process_wait(&other, WSTOPPED);
	assert_dead(1);
	process_end(&other);
	assert_dead(1);
	assert_int_equal(peers[0].claim.priority, 70);
}

/* A place of a namespace whose processes cannot be asked for. */
static struct board_place *put_stranger(int number, uint64_t who, uint64_t namespace, uint64_t when)
{
	struct board_place *place = &memory->places[number];
	struct board_claim claim = claim_at(gpu, when);

	atomic_store(&place->who, who);
	board_place_write(place, (struct board_owner){.who = who, .namespace = namespace}, &claim);
	atomic_fetch_or(&memory->used[number / 64], UINT64_C(1) << number % 64);
	return place;
}

TEST(lapse)
{
	struct board_place *place;

	join();
	place = put_stranger(0, board_who(4000000, 1), 1, NOW);
	claim_own(NOW + BOARD_LAPSE_NS);
	assert_int_equal(atomic_load(&place->who), board_who(4000000, 1));
	claim_further(NOW + BOARD_LAPSE_NS + 1);
	assert_int_equal(atomic_load(&place->who), who_is(getpid()));
	/* One of this namespace is asked for, and lives. */
	struct process living = process_start(obey_nothing);

	put_stranger(0, who_is(living.pid), identity_own().namespace, NOW);
	claim_further(NOW + BOARD_LAPSE_NS + 1);
	assert_int_equal(atomic_load(&place->who), who_is(living.pid));
}

/* --- places ------------------------------------------------------------------------------------------------------- */

TEST(places_are_used_again)
{
	join();
	for (int i = 0; i < 20; i++) {
		struct process other = process_start(obey);

		process_order(&other, 'c');
		assert_int_equal(places_of(other.pid), 1);
		assert_int_equal(atomic_load(&memory->places[0].who), who_is(other.pid));
		process_end(&other);
	}
	/* A pid of a living process that started at another time is another process's. */
	struct process living = process_start(obey_nothing);

	put_stranger(0, who_is(living.pid) + (UINT64_C(1) << BOARD_PID_BITS), identity_own().namespace, NOW);
	put_stranger(1, who_is(living.pid), identity_own().namespace, NOW);
	claim_own(NOW);
	assert_int_equal(atomic_load(&memory->places[0].who), who_is(getpid()));
	assert_int_equal(atomic_load(&memory->places[1].who), who_is(living.pid));
}

/* Nobody has waited for it yet; its parent may never do so. */
TEST(ended_owner)
{
	struct process other = process_start(obey);

	join();
	process_order(&other, 'c');
	kill(other.pid, SIGKILL);
	process_wait(&other, WEXITED);
	claim_own(NOW);
	assert_int_equal(atomic_load(&memory->places[0].who), who_is(getpid()));
}

static void end_first_thread(char order)
{
	if (order == 'e')
		process_end_first_thread();
}

TEST(owner_without_its_first_thread)
{
	struct process other = process_start(end_first_thread);

	join();
	put_stranger(0, who_is(other.pid), identity_own().namespace, NOW);
	process_order_end_of_first_thread(&other, 'e');
	claim_own(NOW);
	assert_int_equal(atomic_load(&memory->places[0].who), who_is(other.pid));
	assert_true(board_is_alive(other.pid, start_of(other.pid)));
	kill(other.pid, SIGSTOP);
	process_wait(&other, WSTOPPED);
	assert_false(board_is_alive(other.pid, start_of(other.pid)));
}

/* Only of those who have gone: a place stays that a new owner has taken since, and its mark. */
TEST(burial)
{
	struct process other = process_start(obey), next = process_start(obey_nothing);
	struct board_peer peer;

	join();
	process_order(&other, 'c');
	the_claim();
	peer = peers[0];
	board_bury(&peer);
	kill(other.pid, SIGSTOP);
	process_wait(&other, WSTOPPED);
	board_bury(&peer);
	assert_int_equal(places_of(other.pid), 1);
	kill(other.pid, SIGKILL);
	process_wait(&other, WEXITED);
	put_stranger((int)peer.place, who_is(next.pid), identity_own().namespace, NOW);
	errno = EDOM;
	board_bury(&peer);
	assert_int_equal(errno, EDOM);
	assert_int_equal(places_of(next.pid), 1);
	assert_int_equal(the_claim().priority, 70);
	put_stranger((int)peer.place, who_is(other.pid), identity_own().namespace, NOW);
	board_bury(&peer);
	assert_int_equal(places_of(0), 0);
	assert_int_equal(atomic_load(&memory->used[0]), 0);
}

_Static_assert(BOARD_PLACES >= 400, "50 programs on each of 8 GPUs");

TEST(full)
{
	struct process other = process_start(obey);
	struct board_claim claim = claim_at(gpu, NOW);

	join();
	for (int i = 0; i < BOARD_PLACES; i++)
		put_stranger(i, who_is(other.pid), identity_own().namespace, NOW);
	assert_false(board_claim(&claim));
	assert_claims(gpu, BOARD_PLACES);
	process_end(&other);
	/* Not at once, but soon. */
	claim = claim_at(gpu, NOW + 99 * MS);
	assert_false(board_claim(&claim));
	claim_own(NOW + 101 * MS);
	claim_own(NOW + 101 * MS);
}

/* More GPUs than any machine has are more than a process may have places for. */
TEST(all_gpus)
{
	struct board_claim claim = claim_at(gpu, NOW);

	join();
	for (uint16_t i = 0; i < TOPOLOGY_GPUS_MAX; i++) {
		claim.pci.bus = i;
		assert_true(board_claim(&claim));
	}
	claim.pci.bus = TOPOLOGY_GPUS_MAX;
	assert_false(board_claim(&claim));
}

/* Others may write what they like: a place that was taken away is left to who took it, and not found anew all the
 * time. */
TEST(place_taken_away)
{
	struct board_claim claim = claim_at(gpu, NOW);

	join();
	claim_own(NOW);
	put_stranger(0, board_who(4000000, 1), 1, NOW);
	claim_own(NOW);
	assert_int_equal(atomic_load(&memory->places[0].who), board_who(4000000, 1));
	assert_int_equal(atomic_load(&memory->places[1].who), who_is(getpid()));
	put_stranger(1, board_who(4000000, 1), 1, NOW);
	assert_false(board_claim(&claim));
	claim_own(NOW + SECOND);
	/* The mark is gone: it is put back. */
	atomic_store(&memory->used[0], 0);
	claim_own(NOW + SECOND);
	assert_int_equal(atomic_load(&memory->used[0]), 4);
	board_leave();
	assert_int_equal(atomic_load(&memory->places[1].who), board_who(4000000, 1));
	assert_int_equal(atomic_load(&memory->places[2].who), 0);
	assert_int_equal(atomic_load(&memory->used[0]), 0);
}

TEST(died_in_the_middle)
{
	struct process other = process_start(obey);

	join();
	process_order(&other, 'c');
	struct board_place *place = &memory->places[0];
	uint64_t number = atomic_load(&place->number), who = atomic_load(&place->who);

	/* Before the number is raised: the one before holds. */
	for (size_t word = 0; word < BOARD_WORDS; word++) {
		atomic_store(&place->versions[(number + 1) % BOARD_VERSIONS][word], UINT64_MAX);
		assert_int_equal(the_claim().served_ns, 123);
	}
	/* A place that was taken, where nothing is written yet: a former owner's claim is not the new one's. */
	atomic_store(&place->who, board_who((uint64_t)getppid(), 1));
	assert_claims(gpu, 0);
	atomic_store(&place->who, who);
	the_claim();
	atomic_store(&place->who, 0);
	assert_claims(gpu, 0);
}

/* A process that does this until it is killed. */
static pid_t start_doing(void (*work)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		board_after_fork();
		work();
	}
	return pid;
}

static void write_claims(void)
{
	must(board_join(NULL) == 0);
	for (struct board_claim claim = claim_at(gpu, NOW);;) {
		claim.served_ns = ++claim.group;
		claim.tpcs.words[TPCSET_WORDS - 1] = claim.served_ns;
		must(board_claim(&claim));
	}
}

TEST(no_claim_is_torn)
{
	uint64_t last = 0, changes = 0;

	join();
	pid_t writer = start_doing(write_claims);

	while (board_read(gpu, peers) == 0)
		sched_yield();
	/* Many changes, so that reads are interrupted by some of them also where the two have one processor between them. */
	for (int i = 0; i < READS || changes < 1000; i++) {
		if (board_read(gpu, peers) == 1) {
			const struct board_claim *claim = &peers[0].claim;

			assert_each(claim->group, claim->served_ns, claim->tpcs.words[TPCSET_WORDS - 1], claim->served_ns);
			assert_true(claim->served_ns >= last);
			changes += claim->served_ns != last;
			last = claim->served_ns;
		}
	}
	end_child(writer);
}

static void come_and_go(void)
{
	for (;;) {
		struct board_claim claim = claim_at(gpu, process_clock_ns());

		must(board_join(NULL) == 0);
		for (int i = 0; i < 20; i++) {
			claim.written = process_clock_ns();
			must(board_claim(&claim));
		}
		claim.pci = other_gpu;
		must(board_claim(&claim));
		board_leave();
	}
}

TEST(killed_at_any_instruction)
{
	unsigned int seed = (unsigned int)process_clock_ns();
	int status;

	print_message("# seed %u\n", seed);
	join();
	claim_own(process_clock_ns());
	for (int i = 0; i < KILLS / 2; i++) {
		pid_t pids[2] = {start_doing(come_and_go), start_doing(come_and_go)};

		usleep((useconds_t)rand_r(&seed) % 3000);
		for (int each = 0; each < 2; each++) {
			kill(pids[each], SIGKILL);
			assert_int_equal(waitpid(pids[each], &status, 0), pids[each]);
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		}
		assert_dead(board_read(gpu, peers));
		assert_true(places_of(0) <= 16);
	}
	for (int i = 1; i < TOPOLOGY_GPUS_MAX; i++)
		claim_further(process_clock_ns());
	assert_int_equal(places_of(0), TOPOLOGY_GPUS_MAX);
}

/* --- hostile files ------------------------------------------------------------------------------------------------ */

/* What is wrong with a file that is called as a board. */
enum wrong {
	SMALL, LARGE, NO_SEALS, HALF_SEALED, NO_MAGIC, OTHER_VERSION, OTHER_SIZE, OPEN_TO_ALL, READ_ONLY, NOTHING_WRONG
};

static void put_high(int file)
{
	must(file >= 0 && fcntl(file, F_DUPFD, 300) >= 300);
	close(file);
}

static int offer(enum wrong wrong)
{
	int file = memfd_create(BOARD_NAME, MFD_ALLOW_SEALING);
	uint64_t header[3] = {wrong == NO_MAGIC ? 1 : BOARD_MAGIC, BOARD_VERSION + (wrong == OTHER_VERSION),
	                      sizeof(struct board_memory) + (wrong == OTHER_SIZE)};
	int seals = wrong == NO_SEALS ? 0 : wrong == HALF_SEALED ? F_SEAL_GROW : F_SEAL_SHRINK | F_SEAL_GROW;
	long size = (long)sizeof(struct board_memory) - (wrong == SMALL) + (wrong == LARGE);

	must(fchmod(file, wrong == OPEN_TO_ALL ? 0666 : BOARD_MODE) == 0 && ftruncate(file, size) == 0 &&
	     pwrite(file, header, sizeof header, 0) == sizeof header);
	must(fcntl(file, F_ADD_SEALS, seals | (wrong == READ_ONLY ? F_SEAL_WRITE : 0)) == 0);
	return file;
}

static enum wrong wrong_now;

static void obey_with_offer(char order)
{
	if (order == 0)
		put_high(offer(wrong_now));
}

TEST(files_that_are_no_boards)
{
	for (wrong_now = SMALL; wrong_now <= NOTHING_WRONG; wrong_now++) {
		struct process hostile = process_start(obey_with_offer);

		ROW("kind %d", (int)wrong_now);
		join();
		assert_int_equal(board_of(getpid()) == board_of(hostile.pid), wrong_now == NOTHING_WRONG);
		board_leave();
		process_end(&hostile);
	}
}

static void obey_with_two(char order)
{
	if (order == 0) {
		put_high(offer(NO_MAGIC));
		put_high(offer(NOTHING_WRONG));
	}
}

/* As a child has that has inherited one. */
TEST(second_file)
{
	struct process other = process_start(obey_with_two);

	join();
	assert_int_not_equal(board_at(other.pid, 301), 0);
	assert_int_equal(board_of(getpid()), board_at(other.pid, 301));
}

#define BLOCKING_PATH "/memfd:" BOARD_NAME " (deleted)"

/* A file that blocks who opens it, one with a lease, more boards than anybody has, and more files. */
static void obey_as_obstacle(char order)
{
	struct rlimit limit = {.rlim_cur = 10000, .rlim_max = 10000};

	if (order != 0)
		return;
	int fifo = open(BLOCKING_PATH, O_RDWR | O_NONBLOCK), leased = offer(NOTHING_WRONG);

	setrlimit(RLIMIT_NOFILE, &limit);
	signal(SIGIO, SIG_IGN);
	if (fifo >= 0)
		put_high(fifo);
	fcntl(leased, F_SETLEASE, F_WRLCK);
	put_high(leased);
	for (int i = 0; i < 100; i++)
		put_high(offer(NO_MAGIC));
	for (int i = 0; i < 6000; i++)
		fcntl(0, F_DUPFD, 300);
}

TEST(files_that_hold_up)
{
	if (mkfifo(BLOCKING_PATH, 0600) < 0 && geteuid() == 0)
		assert_int_equal(errno, EEXIST);
	process_start(obey_as_obstacle);
	struct process other = process_start(obey);

	unlink(BLOCKING_PATH);
	alarm(120);
	join();
	assert_int_equal(board_of(getpid()), board_of(other.pid));
	look();
	alarm(0);
}

/* tests/fuzz/board.c has any content. What is no board any more is left, and another is made. */
TEST(nonsense)
{
	join();
	memset(memory, 0x7f, sizeof *memory);
	board_read(gpu, peers);
	ino_t before = board_of(getpid());

	look();
	assert_int_not_equal(board_of(getpid()), before);
	claim_own(NOW + 100 * SECOND);
}

/* --- two boards --------------------------------------------------------------------------------------------------- */

/* Not where others find them: the board that comes first in their order, and the other one. */
#define EARLIER 20
#define LATER 21

/* 0: makes two boards; 'e' and 'l': shows the earlier, or the later. */
static void obey_with_two_hidden(char order)
{
	struct board_file a, b;

	if (order == 0) {
		must(board_file_make(&a, NULL) == 0 && board_file_make(&b, NULL) == 0);
		bool a_is_earlier = a.inode < b.inode;

		must(dup2(a.number, a_is_earlier ? EARLIER : LATER) >= 0 && dup2(b.number, a_is_earlier ? LATER : EARLIER) >= 0);
		close(a.number);
		close(b.number);
	} else {
		must(dup2(order == 'e' ? EARLIER : LATER, order == 'e' ? 300 : 301) >= 0);
	}
}

static void find_one_then_the_other(char one, char other)
{
	struct process process = process_start(obey_with_two_hidden);
	ino_t earlier = board_at(process.pid, EARLIER), later = board_at(process.pid, LATER);

	process_order(&process, one);
	join();
	assert_int_equal(board_of(getpid()), one == 'e' ? earlier : later);
	claim_own(NOW);
	process_order(&process, other);
	look();
	assert_int_equal(board_of(getpid()), earlier);
	/* No place is kept on the board that was left. */
	assert_int_equal(places_of(0), one == 'e' ? 1 : 0);
	claim_own(NOW);
	board_leave();
	process_end(&process);
}

TEST(two_become_one)
{
	find_one_then_the_other('l', 'e');
	find_one_then_the_other('e', 'l');
}

static uid_t user;

static void obey_as_user(char order)
{
	if (order == 0)
		become(user);
	obey(order);
}

TEST(users_and_root)
{
	if (geteuid() != 0)
		skip_because("needs root");
	join();
	ino_t roots = board_of(getpid());
	user = OTHER_USER;
	struct process other = process_start(obey_as_user);
	user = THIRD_USER;
	struct process third = process_start(obey_as_user);

	/* A user's programs do not see root's board, nor another user's. */
	assert_int_not_equal(board_of(other.pid), roots);
	assert_int_not_equal(board_of(third.pid), roots);
	assert_int_not_equal(board_of(third.pid), board_of(other.pid));
	process_end(&third);
	/* Nor do root's go to a user's, who would see what they say. */
	look();
	assert_int_equal(board_of(getpid()), roots);
	board_leave();
	join();
	assert_int_not_equal(board_of(getpid()), board_of(other.pid));
}

/* Who becomes another user goes to that one's. */
TEST(becoming_another_user)
{
	if (geteuid() != 0)
		skip_because("needs root");
	struct process other = process_start(obey);

	join();
	assert_int_equal(board_of(getpid()), board_of(other.pid));
	process_order(&other, 'u');
	process_order(&other, 's');
	assert_int_not_equal(board_of(other.pid), 0);
	assert_int_not_equal(board_of(other.pid), board_of(getpid()));
}

TEST(closed_descriptor)
{
	int number;

	join();
	claim_own(NOW);
	number = descriptor_of(getpid());
	/* The program has closed it, and opened something else; what is there is not ours. */
	assert_int_equal(dup2(STDIN_FILENO, number), number);
	claim_own(NOW);
	look();
	assert_true(fcntl(number, F_GETFD) >= 0);
	assert_int_not_equal(descriptor_of(getpid()), number);
	assert_int_not_equal(board_of(getpid()), 0);
	claim_own(NOW);
	close(number);
	number = descriptor_of(getpid());
	assert_int_equal(dup2(STDIN_FILENO, number), number);
	board_leave();
	assert_true(fcntl(number, F_GETFD) >= 0);
	close(number);
}

/* --- fork, exec, namespaces, privileges --------------------------------------------------------------------------- */

/* It has forgotten its parent's, and takes nothing from it. */
TEST(child)
{
	join();
	claim_own(NOW);
	struct process child = process_start(obey);

	assert_each(places_of(getpid()), 1, places_of(0), 1);
	process_order(&child, 'c');
	assert_int_equal(places_of(child.pid), 1);
	the_claim();
	claim_own(NOW);
}

/* What it had before it executed another program. */
TEST(former_places)
{
	struct process other = process_start(obey);

	map_board_of(other.pid);
	put_stranger(5, who_is(getpid()), identity_own().namespace, NOW);
	put_stranger(6, who_is(getpid()), 1, NOW);
	join();
	assert_int_equal(atomic_load(&memory->places[5].who), 0);
	assert_int_equal(atomic_load(&memory->places[6].who), who_is(getpid()));
}

static bool with_own_proc;

/* 'g': whether who is not in /proc has gone: only where /proc is of the same namespace. */
static void obey_in_there(char order)
{
	char text[16]; /* this process's number in /proc, which may be of another namespace */

	if (order != 'g') {
		obey(order);
		return;
	}
	proc_read_link(text, sizeof text, "/proc/self");
	map_board_of((pid_t)strtol(text, NULL, 10));
	put_stranger(9, board_who(4000000, 5), identity_own().namespace, NOW);
	claim_further(NOW);
	must((atomic_load(&memory->places[9].who) == 0) == with_own_proc);
	atomic_store(&memory->places[9].who, 0);
}

/* Joins in a PID namespace of its own. */
static void obey_inside(char order)
{
	static int orders[2], answers[2];

	if (order == 0) {
		must(unshare(CLONE_NEWPID | CLONE_NEWNS) == 0 && pipe(orders) == 0 && pipe(answers) == 0);
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			must(!with_own_proc || (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
			                        mount("proc", "/proc", "proc", 0, NULL) == 0));
			do {
				obey_in_there(order);
				must(write(answers[1], &order, 1) == 1);
			} while (read(orders[0], &order, 1) == 1);
			_exit(0);
		}
	} else {
		must(write(orders[1], &order, 1) == 1);
	}
	must(read(answers[0], &order, 1) == 1);
}

static bool may_unshare(void)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0)
		_exit(unshare(CLONE_NEWPID | CLONE_NEWNS) == 0 ? 0 : 1);
	waitpid(child, &status, 0);
	return status == 0;
}

static void check_inside(void)
{
	struct process outside = {.pid = 0}, inside = process_start(obey_inside);

	join();
	process_order(&inside, 'c');
	assert_int_equal(places_of(0), 1);
	assert_claims(gpu, 0);
	process_order(&inside, 'g');
	/* The one outside is not taken for one of the namespace, whoever has its number there. */
	board_leave();
	outside = process_start(obey);
	process_order(&outside, 'c');
	process_order(&inside, 'o');
	process_order(&inside, 'c');
	join();
	the_claim();
	assert_int_equal(peers[0].pid, outside.pid);
	process_end(&inside);
	assert_true(waitpid(-1, NULL, 0) > 0);
	/* Who is gone in there keeps its places until they lapse. */
	claim_own(NOW);
	assert_int_equal(places_of(0), 5);
	claim_further(NOW + BOARD_LAPSE_NS + 1);
	assert_int_equal(places_of(0), 3);
	the_claim();
	board_leave();
	process_end(&outside);
}

TEST(pid_namespaces)
{
	if (!may_unshare())
		skip_because("needs namespaces");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < 2; i++) {
		with_own_proc = i == 0;
		check_inside();
	}
}

#define JOIN_ONLY "--join"
#define NOT_PRIVILEGED 3
#define REFUSED 4

/* It may not, whatever its user's programs do. */
TEST(privileged)
{
	char path[] = "/tmp/nvtaskset-board-XXXXXX";
	int file = mkstemp(path), status;
	bool is_made = geteuid() == 0 && system(text_of("cat /proc/%d/exe >%s", (int)getpid(), path)) == 0 &&
	               fchmod(file, 04755) == 0;

	close(file);
	pid_t child = is_made ? fork() : -1;

	if (child == 0) {
		become(OTHER_USER);
		execl(path, path, JOIN_ONLY, NULL);
		_exit(NOT_PRIVILEGED);
	}
	bool is_known = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);

	unlink(path);
	if (!is_known || WEXITSTATUS(status) == NOT_PRIVILEGED)
		skip_because("needs root, and a /tmp where programs can be set-user-ID");
	assert_int_equal(WEXITSTATUS(status), REFUSED);
}

int main(int count, char **arguments)
{
	if (count == 2 && strcmp(arguments[1], JOIN_ONLY) == 0)
		return !identity_is_privileged() ? NOT_PRIVILEGED : board_join(NULL) < 0 && descriptor_of(getpid()) < 0 ? REFUSED : 0;
	live_alone();
	return run_tests_in(NULL, NULL, NULL, leave);
}
