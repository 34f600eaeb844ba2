/* This process on the board: the process's places, and what the process reads of other processes. */
#include "layout.h"

#include "base/extremes.h"
#include "base/identity.h"
#include "base/proc.h"
#include "gpu/topology/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number of processes to look for in /proc, each time a place is taken. */
#define QUESTIONS 8

/* Time until the next attempt to take a place, when there was no place, or a place was taken away. */
#define RETRY_NS UINT64_C(100000000)

/* Boards that came up at once become a single board soon: each pause between two searches is SEARCH_MORE times as
 * long as the pause before. */
#define SEARCH_FIRST_NS UINT64_C(20000000)
#define SEARCH_LAST_NS UINT64_C(10000000000)
#define SEARCH_MORE 6

#define NOWHERE (-1)

#define NO_PROC "/proc is not mounted: other programs cannot be found"

static struct {
	struct board_file file;
	struct board_search search;
	uint64_t pause_ns; /* until the next search; 0: there was no look yet */
	uint64_t searched; /* the time when the last search began, or of the first look */
	struct board_owner self;
	/* The GPUs of the process, and the place for each GPU. */
	struct own {
		struct pci_address pci;
		int place; /* or NOWHERE */
	} own[TOPOLOGY_GPUS_MAX];
	unsigned int count;
	bool is_wanted;     /* board_join was called */
	bool may_ask;       /* /proc shows the processes of this namespace */
	unsigned int asked; /* the next place whose owner to look for */
	uint64_t missed;    /* the time when there was no place, or a place was lost; 0: has all places */
} board;

/* --- names of processes ------------------------------------------------------------------------------------------- */

/* The number of this process in /proc, perhaps of another namespace; 0 without /proc. */
static pid_t shown_as(void)
{
	char text[16];

	proc_read_link(text, sizeof text, "/proc/self");
	return (pid_t)strtol(text, NULL, 10);
}

static pid_t pid_of(uint64_t who)
{
	return (pid_t)(who & ((UINT64_C(1) << BOARD_PID_BITS) - 1));
}

static bool is_self(struct board_owner owner)
{
	return owner.who == board.self.who && owner.namespace == board.self.namespace;
}

/* --- marks of used places ----------------------------------------------------------------------------------------- */

static _Atomic uint64_t *used_word(int place)
{
	return &board.file.memory->used[place / 64];
}

static uint64_t used_bit(int place)
{
	return UINT64_C(1) << place % 64;
}

static void mark(int place)
{
	if (!(atomic_load_explicit(used_word(place), memory_order_relaxed) & used_bit(place)))
		atomic_fetch_or(used_word(place), used_bit(place));
}

static struct board_place *place_at(int place)
{
	return &board.file.memory->places[place];
}

/* The mark goes first: only a new owner of the place may set the mark again. */
static void free_place(int place, uint64_t who)
{
	atomic_fetch_and(used_word(place), ~used_bit(place));
	if (!atomic_compare_exchange_strong(&place_at(place)->who, &who, 0) && who != 0)
		mark(place);
}

/* --- places of dead owners ---------------------------------------------------------------------------------------- */

static bool is_apart(uint64_t a, uint64_t b, uint64_t ns)
{
	return (a > b ? a - b : b - a) > ns;
}

/* A process that cannot be read, as without a descriptor to spare, may still exist. */
static bool is_gone(uint64_t who)
{
	char stat[PROC_STAT_TEXT];

	errno = 0;
	proc_stat_read(pid_of(who), stat);
	bool is_missing = errno == ENOENT || errno == ESRCH;
	uint64_t start = proc_stat_field(stat, PROC_STAT_START);
	char state = proc_state(pid_of(who), stat);

	return start != 0 ? state == 'Z' || state == 'X' || board_who((uint64_t)pid_of(who), start) != who : is_missing;
}

/* Whether a process of the same namespace has gone, or the pid belongs to a new process. The namespace of an owner is
 * unknown before the owner's first claim. */
static bool has_gone(uint64_t who, const struct board_owner *owner, unsigned int *questions)
{
	bool asks = board.may_ask && *questions > 0 && (!owner || owner->namespace == board.self.namespace);

	*questions -= asks;
	return asks && is_gone(who);
}

static bool is_abandoned(const struct board_place *place, uint64_t who, uint64_t now, unsigned int *questions)
{
	struct board_entry entry;
	bool is_known = board_place_read(place, &entry);
	bool is_elsewhere = is_known && entry.owner.namespace != board.self.namespace;

	return who != 0 && ((is_elsewhere && is_apart(entry.claim.written, now, BOARD_LAPSE_NS)) ||
	                    has_gone(who, is_known ? &entry.owner : NULL, questions));
}

/* Frees the places of dead owners, as far as the questions suffice. */
static void sweep(uint64_t now)
{
	unsigned int questions = QUESTIONS, from = board.asked;

	for (unsigned int i = 0; i < BOARD_PLACES && questions > 0; i++) {
		int place = (int)((from + i) % BOARD_PLACES);
		uint64_t who = atomic_load(&place_at(place)->who);

		if (is_abandoned(place_at(place), who, now, &questions))
			free_place(place, who);
		board.asked = (unsigned int)place + 1;
	}
}

/* --- the process's own places ------------------------------------------------------------------------------------- */

/* GPUs only come. NULL if there are more GPUs than a machine has. */
static struct own *own_on(struct pci_address pci)
{
	struct own *own = (struct own *)pci_address_find(pci, board.own, board.count, sizeof board.own[0]);

	if (!own && board.count < TOPOLOGY_GPUS_MAX) {
		own = &board.own[board.count++];
		*own = (struct own){.pci = pci, .place = NOWHERE};
	}
	return own;
}

static bool has_place(const struct own *own)
{
	return own->place != NOWHERE && atomic_load(&place_at(own->place)->who) == board.self.who;
}

static void take_free_place(struct own *own)
{
	for (int place = 0; place < BOARD_PLACES && own->place == NOWHERE; place++) {
		uint64_t nobody = 0;

		if (atomic_load(&place_at(place)->who) == 0 &&
		    atomic_compare_exchange_strong(&place_at(place)->who, &nobody, board.self.who))
			own->place = place;
	}
}

/* A hostile process took a lost place away, and may do so again at once: the next attempt waits. */
static void take_place(struct own *own, uint64_t now)
{
	bool was_lost = own->place != NOWHERE;

	if (board.missed != 0 && !is_apart(board.missed, now, RETRY_NS))
		return;
	own->place = NOWHERE;
	sweep(now);
	take_free_place(own);
	board.missed = was_lost || own->place == NOWHERE ? now : 0;
}

/* NOWHERE if there is no place. */
static int place_for(struct pci_address pci, uint64_t now)
{
	struct own *own = own_on(pci);

	if (own && !has_place(own))
		take_place(own, now);
	return own && has_place(own) ? own->place : NOWHERE;
}

bool board_claim(const struct board_claim *claim)
{
	int saved = errno, place = board.file.memory ? place_for(claim->pci, claim->written) : NOWHERE;

	if (place != NOWHERE) {
		board_place_write(place_at(place), board.self, claim);
		mark(place);
	}
	errno = saved;
	return place != NOWHERE;
}

bool board_has_room(void)
{
	bool has_room = true;

	for (unsigned int i = 0; board.file.memory && i < board.count; i++)
		has_room = has_room && has_place(&board.own[i]);
	return has_room;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool read_place(int place, struct pci_address pci, struct board_peer *peer)
{
	struct board_entry entry;
	bool is_there = board_place_read(place_at(place), &entry) && !is_self(entry.owner) &&
	                entry.owner.namespace == board.self.namespace && pci_address_equal(entry.claim.pci, pci) &&
	                board_place_is_sound(&entry.claim);

	if (is_there)
		*peer = (struct board_peer){.pid = pid_of(entry.owner.who),
		                            .start = entry.owner.who >> BOARD_PID_BITS,
		                            .place = (unsigned int)place,
		                            .claim = entry.claim};
	return is_there;
}

bool board_is_alive(pid_t pid, uint64_t start)
{
	int saved = errno;
	char stat[PROC_STAT_TEXT];

	errno = 0;
	proc_stat_read(pid, stat);
	char state = proc_state(pid, stat);
	bool is_limited = state == '\0' && proc_is_limit(errno);

	errno = saved;
	return is_limited ||
	       (state != '\0' && !strchr("ZXTt", state) && proc_stat_field(stat, PROC_STAT_START) == start);
}

void board_bury(const struct board_peer *peer)
{
	uint64_t who = board_who((uint64_t)peer->pid, peer->start);
	int saved = errno;

	if (board.file.memory && board.may_ask && is_gone(who))
		free_place((int)peer->place, who);
	errno = saved;
}

unsigned int board_read(struct pci_address pci, struct board_peer peers[BOARD_PLACES])
{
	unsigned int count = 0;

	for (int word = 0; board.file.memory && word < BOARD_PLACES / 64; word++) {
		uint64_t bits = atomic_load(&board.file.memory->used[word]);

		for (; bits != 0; bits &= bits - 1)
			count += read_place(word * 64 + __builtin_ctzll(bits), pci, &peers[count]);
	}
	return count;
}

/* --- coming and going --------------------------------------------------------------------------------------------- */

static void give_all_up(void)
{
	for (unsigned int i = 0; i < board.count; i++) {
		if (has_place(&board.own[i]))
			free_place(board.own[i].place, board.self.who);
		board.own[i].place = NOWHERE;
	}
}

/* Frees the places of this process from before an exec. */
static void free_former_places(void)
{
	struct board_entry entry;

	for (int place = 0; place < BOARD_PLACES; place++) {
		if (board_place_read(place_at(place), &entry) && is_self(entry.owner))
			free_place(place, entry.owner.who);
	}
}

/* Takes the file over. */
static void go_to(int file)
{
	struct board_file found;

	if (!board_file_open(&found, file))
		return;
	if (board.file.memory) {
		give_all_up();
		board_file_close(&board.file);
	}
	board.file = found;
	free_former_places();
}

static int make_board(struct error *error)
{
	if (board.search.is_blind)
		return error_set(error, NO_PROC);
	return board_file_make(&board.file, error);
}

/* Returns whether there is more to look at. */
static bool look_on(void)
{
	int file = board_search_on(&board.search, board.file.memory ? board.file.inode : 0);

	if (file >= 0)
		go_to(file);
	return board.search.position != 0;
}

/* Sets `self`. A program with more privileges than its user must not influence the user's programs. */
static int be_someone(struct error *error)
{
	if (identity_is_privileged())
		return error_set(error, "a program with more privileges than its user is on no board");
	struct identity identity = identity_own();
	pid_t shown = shown_as();
	uint64_t start = proc_started(shown);

	if (start == 0)
		return error_set(error, NO_PROC);
	board.self = (struct board_owner){.who = board_who(identity.pid, start), .namespace = identity.namespace};
	board.may_ask = shown == getpid();
	return 0;
}

/* Tries again: the reason for a failure, such as a lack of descriptors, may have passed. */
static bool takes_part(void)
{
	return board.is_wanted && (board.self.who != 0 || be_someone(NULL) == 0);
}

static void take_no_part(void)
{
	board.count = 0;
	board.is_wanted = false;
	board.self = (struct board_owner){.who = 0};
	board.search.position = 0;
	board.pause_ns = 0;
	board.missed = 0;
}

static int find_or_make(struct error *error)
{
	board.search.position = 0;
	while (look_on() && !board.file.memory)
		;
	board.search.position = 0;
	return board.file.memory ? 0 : make_board(error);
}

int board_join(struct error *error)
{
	int saved = errno, result = 0;

	board.is_wanted = true;
	if (!board.file.memory)
		result = be_someone(error) == 0 ? find_or_make(error) : -1;
	errno = saved;
	return result;
}

/* Whether a search is on or begins now. */
static bool searches(uint64_t now)
{
	bool is_on = board.search.position != 0;
	bool begins = !is_on && board.pause_ns > 0 && now - board.searched >= board.pause_ns;

	if (begins || board.pause_ns == 0) {
		board.pause_ns = begins ? min_u64(SEARCH_MORE * board.pause_ns, SEARCH_LAST_NS) : SEARCH_FIRST_NS;
		board.searched = now;
	}
	return is_on || begins;
}

static bool look_for_boards(void)
{
	int saved = errno;

	if (board.search.position == 0 && board.file.memory && !board_file_is_kept(&board.file)) {
		give_all_up();
		board_file_close(&board.file);
	}
	bool is_more = takes_part() && look_on();

	if (!is_more && takes_part() && !board.file.memory)
		make_board(NULL);
	errno = saved;
	return is_more;
}

bool board_look(uint64_t now)
{
	return board.is_wanted && searches(now) && look_for_boards();
}

void board_leave(void)
{
	int saved = errno;

	if (board.file.memory)
		give_all_up();
	board_file_close(&board.file);
	take_no_part();
	errno = saved;
}

/* The places belong to the parent. */
void board_after_fork(void)
{
	int saved = errno;

	board_file_close(&board.file);
	take_no_part();
	errno = saved;
}
