/* Sparse pages: none that waits for its holes to be punched is ever forgotten.
 *
 * Models page_release and count_sparse of heap/shared_pages.cc, punch_next and punch_sparse_pages of
 * scavenger/sweep.cc, scavenger_pass and run of scavenger/scavenger.cc, and the fork of a puncher; inlines and
 * processes carry the names of the functions they stand for. A page is `wanted` (ghost) while it has memory that a
 * punch would return; the lists are walked in one order, which the heap's lock allows.
 *
 * Promises:
 *   forgotten   no ownerless page is wanted while the scavenger sleeps without a deadline
 *   owed        what waited when a forced collect began has been punched, or taken into use, when it returns
 *
 * PAGES; USES of pages by each of two threads; FORCED collects; FORK. BREAK_… plants one mistake each.
 */
#ifndef PAGES
#define PAGES 2
#endif
#ifndef USES
#define USES 2
#endif
#ifndef FORCED
#define FORCED 0
#endif

#ifdef FORK
#define IN_PARENT provided (!in_child)
#else
#define IN_PARENT
#endif

typedef Page {
  bool ownerless, sparse;  /* of the remote word: kOwnerless, kSparse */
  bool flag;               /* kFlagSparse, the owner's */
  bool wanted;             /* ghost */
  bool punching, owed      /* ghost: claimed for a punch; to be punched for the forced collect */
};

Page page[PAGES];
byte sparse_pages;         /* g_sparse_pages: 0, 1, 2 for more */
bool step_lock;            /* g_sweep_step_lock */
bool rung, sleeping, asleep, in_child;
byte finished;

inline announce_armed() {
  rung = true;
  if :: sleeping -> asleep = false :: else fi
}

inline count_sparse() {
  atomic { first = sparse_pages == 0; sparse_pages = 1 };
  if :: first -> announce_armed() :: else fi;
  first = false
}

/* `becomes`: fewer of its blocks are live than when it was last punched. */
inline page_release(p, becomes) {
#ifdef BREAK_COUNTS_FIRST_TIME_ONLY
  counts = becomes && !page[p].flag;
#endif
  atomic { page[p].flag = page[p].flag || becomes; page[p].wanted = page[p].wanted || becomes };
#ifdef BREAK_COUNTS_BEFORE_RELEASE
  if :: page[p].flag -> count_sparse() :: else fi;
  atomic { page[p].sparse = page[p].flag; page[p].ownerless = true }
#else
  atomic {
#ifndef BREAK_COUNTS_FIRST_TIME_ONLY
    counts = page[p].flag;
#endif
    page[p].sparse = page[p].flag; page[p].ownerless = true
  };
  if :: counts -> count_sparse() :: else fi;
  counts = false
#endif
}

/* A claim and the punch of one page. */
inline punch_next(p) {
#ifndef BREAK_CLAIMS_OUTSIDE_STEP
  atomic { !step_lock -> step_lock = true };
#endif
  claimed = false;
  atomic { if :: page[p].ownerless && page[p].sparse -> page[p].ownerless = false; page[p].sparse = false; claimed = true; page[p].punching = true :: else fi };
#ifdef BREAK_CLAIMS_OUTSIDE_STEP
  atomic { !step_lock -> step_lock = true };
#endif
  if
  :: claimed -> page[p].flag = false; atomic { page[p].wanted = false; page[p].owed = false; page[p].punching = false }
  :: else
  fi;
  step_lock = false
}

inline punch_sparse_pages(all) {
#ifdef BREAK_LOOKS_BEFORE_ZERO
  any = sparse_pages != 0;
#else
  atomic { any = sparse_pages != 0; sparse_pages = 0 };
#endif
#ifndef BREAK_FORCED_GOES_BY_COUNT
  any = any || all;
#endif
  p = 0;
  do
  :: any && p < PAGES ->
       punch_next(p);
       if :: claimed -> page_release(p, false) :: else fi;
       p++
  :: else -> break
  od;
#ifdef BREAK_LOOKS_BEFORE_ZERO
  sparse_pages = 0;
#endif
  atomic { p = 0; any = false; claimed = false }
}

#define LOCALS byte p; bool claimed, any, first, counts

inline run_() {
  do
  :: rung = false;
     if :: sparse_pages != 0 -> punch_sparse_pages(false) :: else fi;
     if
     :: sparse_pages != 0  /* a tick later */
     :: else ->
          sleeping = true;
          atomic { if :: !rung -> asleep = true :: else fi };
          !asleep;
          sleeping = false
     fi
  od
}

proctype run_thread() IN_PARENT { LOCALS; run_() }

/* A thread that adopts a page, or whose free claims it; more of its blocks are free when it gives it up. */
proctype user() IN_PARENT {
  LOCALS; byte i;
  do
  :: i < USES ->
       if
       :: atomic { page[0].ownerless -> page[0].ownerless = false; page[0].sparse = false; page[0].owed = false; p = 0 }
#if PAGES > 1
       :: atomic { page[1].ownerless -> page[1].ownerless = false; page[1].sparse = false; page[1].owed = false; p = 1 }
#endif
       :: break
       fi;
       if :: page_release(p, true) :: page_release(p, false) fi;
       i++
  :: else -> break
  od;
  atomic { i = 0; p = 0; finished++ }
}

/* ebb_collect(true) */
proctype forced() IN_PARENT {
  LOCALS;
  atomic {
    do :: p < PAGES -> page[p].owed = page[p].wanted && (page[p].ownerless || page[p].punching); p++ :: else -> break od;
    p = 0
  };
  punch_sparse_pages(true);
  atomic {
    do :: p < PAGES -> assert(!page[p].owed); p++ :: else -> break od;
    p = 0
  };
  finished++
}

#ifdef FORK
proctype run_thread_in_child() { LOCALS; run_() }

proctype forker() {
  LOCALS;
  atomic { !step_lock -> step_lock = true };
  in_child = true;
  atomic {
    step_lock = false; sleeping = false; asleep = false;
    rung = false
  };
  /* release_orphans: what threads that are gone had claimed, owned, or released without counting it yet */
  do
  :: p < PAGES ->
       if
       :: !page[p].ownerless -> page_release(p, false)
       :: else ->
#ifndef BREAK_FORK_TRUSTS_COUNT
            if :: page[p].sparse -> count_sparse() :: else fi
#else
            skip
#endif
       fi;
       p++
  :: else -> break
  od;
  atomic { p = 0; finished = 255; run run_thread_in_child() }
}
#endif

init {
  byte i;
  atomic {
    do :: i < PAGES -> page[i].ownerless = true; i++ :: else -> break od;
    i = 0;
    run run_thread(); run user(); run user();
    do :: i < FORCED -> run forced(); i++ :: else -> break od;
    i = 0
#ifdef FORK
    ; run forker()
#endif
  }
  timeout;
  assert(finished == 255 || (!in_child && finished == 2 + FORCED));
  do
  :: i < PAGES -> assert(!(page[i].ownerless && page[i].wanted)); i++  /* forgotten */
  :: else -> break
  od
}
