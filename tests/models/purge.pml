/* The purge protocol: no free memory is ever forgotten, a forced purge leaves out nothing, a fork child neither.
 *
 * Models arena/purge.cc, arena/arena.cc (give, take), scavenger/scavenger.cc (run, on_armed, on_deferred,
 * after_fork_in_child) and heap/fork.cc; inlines and processes carry the names of the functions they stand for.
 * What runs under an arena's lock is one atomic step. Time passes only where the code waits for it.
 *
 * What the OS has refused is kept: no pass looks at it, and the scavenger may sleep. A forced purge tries it again once,
 * and so do some passes, which ones the model leaves open.
 *
 * Promises, checked in every reachable state where nothing can move any more (process `quiet`) or by assertions:
 *   stranded    no slice is free and dirty while the scavenger sleeps without a deadline
 *   owed        what was free when a forced purge began is with the OS when it returns
 *   half done   a fork child has no slice that is just being purged
 *
 * Sizes: ARENAS of two slices, WORKERS that free or take OPERATIONS times each, FORCED purges, a fork with FORK
 * and IN_CHILD operations there, no thread to be had with INLINE, refusals by the OS with REFUSALS. BREAK_… plants one mistake each.
 */
#ifndef ARENAS
#define ARENAS 1
#endif
#ifndef WORKERS
#define WORKERS 1
#endif
#ifndef OPERATIONS
#define OPERATIONS 3
#endif
#ifndef FORCED
#define FORCED 0
#endif
#ifndef IN_CHILD
#define IN_CHILD 1
#endif
#define SLICES 2
#ifdef FORK
#define IN_PARENT provided (!forked)
#else
#define IN_PARENT
#endif

mtype = { used, clean, young, due, kept, taken };  /* kept: refused by the OS; taken: kPurging */
mtype = { found, more, drained };
mtype = { idle, starting, running, inline_ };

typedef Arena {
  mtype slice[SLICES];
  bit list[SLICES];     /* of dirty slices: which purge list */
  bool old[6];          /* [forced * SLICES + slice]: stamped before that forced purge began */
  bit pending;
  bool armed;
  byte forcers;         /* forced purges under way */
  bool force[3];        /* force_age is at least that of this one */
  byte left[3];         /* of each forced purge: flips until its target */
  bool owed[6];         /* [forced * SLICES + slice]: ghost */
};

Arena arena[ARENAS];
bool step_lock, forked;
bool sleeping, asleep;  /* g_sleeping; in the futex */
bool rung;              /* g_armings has changed since the scavenger read it */
bool deferred;
mtype run_state = idle;
byte finished;

#define DIRTY(a, s) (arena[a].slice[s] == young || arena[a].slice[s] == due)
#define PENDING(a, s) (DIRTY(a, s) && arena[a].list[s] == arena[a].pending)
#define ANY_PENDING(a) (PENDING(a, 0) || PENDING(a, 1))
#define ANY_DIRTY(a) (DIRTY(a, 0) || DIRTY(a, 1))
#define FORCED_BY(a, s, c) (arena[a].force[c] && arena[a].old[c * SLICES + s])
#define DUE(a, s) (arena[a].slice[s] == due || FORCED_BY(a, s, 0) || FORCED_BY(a, s, 1) || FORCED_BY(a, s, 2))
#define FORGET_AGE(a, s) arena[a].old[s] = false; arena[a].old[SLICES + s] = false; arena[a].old[2 * SLICES + s] = false
#define FORGET_OWED(a, s) arena[a].owed[s] = false; arena[a].owed[SLICES + s] = false; arena[a].owed[2 * SLICES + s] = false
#define OTHER(x) (1 - (x))

/* ---- arena/arena.cc ---- */

inline give_locked(a, s, dirty) {
  if
  :: dirty ->
       /* Joined with a span that the pass has still to look at, it goes to that list. */
       arena[a].list[s] = (PENDING(a, OTHER(s)) -> arena[a].pending : OTHER(arena[a].pending));
       arena[a].slice[s] = young;
       arm = !arena[a].armed;
       arena[a].armed = true
  :: else -> arena[a].slice[s] = clean; arm = false
  fi;
  FORGET_AGE(a, s);
  FORGET_OWED(a, s)
}

/* ---- scavenger/scavenger.cc ---- */

inline on_armed() {
  rung = true;
  if
  :: run_state == running ->
       if
       :: sleeping -> asleep = false  /* os::wake */
       :: else
       fi
  :: else -> deferred = true
  fi
}

inline begin_generation() {
  atomic {
    g = 0;
    do
    :: g < ARENAS ->
         if :: arena[g].slice[0] == young -> arena[g].slice[0] = due :: else fi;
         if :: arena[g].slice[1] == young -> arena[g].slice[1] = due :: else fi;
         g++
    :: else -> break
    od;
    g = 0
  }
}

/* ---- arena/purge.cc ---- */

inline retry_kept_locked(a) {
  if :: arena[a].slice[0] == kept -> arena[a].slice[0] = due; arena[a].list[0] = OTHER(arena[a].pending) :: else fi;
  if :: arena[a].slice[1] == kept -> arena[a].slice[1] = due; arena[a].list[1] = OTHER(arena[a].pending) :: else fi
}

inline next_step_locked(a) {
  if
  :: PENDING(a, 0) -> s = 0
  :: PENDING(a, 1) -> s = 1
  :: else -> s = SLICES
  fi;
  if
  :: s == SLICES -> look = drained
  :: s < SLICES && DUE(a, s) -> arena[a].slice[s] = taken; look = found
  :: s < SLICES && !DUE(a, s) -> arena[a].list[s] = OTHER(arena[a].pending); look = more
  fi
}

inline purge_step(a) {
  atomic { !step_lock -> step_lock = true };
  atomic { arm = false; next_step_locked(a) };
  if
  :: look == found ->
       atomic {
         /* run_step: the OS was called without the arena's lock. */
         refused = false;
#ifdef REFUSALS
         if :: refused = false :: refused = true fi;
#endif
         give_locked(a, s, false);
#ifdef REFUSALS
         if :: refused -> arena[a].slice[s] = kept :: else fi;
#endif
         s = 0; refused = false
       }
  :: else
  fi;
  step_lock = false;
  if :: arm -> on_armed(); arm = false :: else fi
}

inline flip_locked(a) {
  arena[a].pending = OTHER(arena[a].pending);
  if :: arena[a].left[0] > 0 -> arena[a].left[0]-- :: else fi;
  if :: arena[a].left[1] > 0 -> arena[a].left[1]-- :: else fi;
  if :: arena[a].left[2] > 0 -> arena[a].left[2]-- :: else fi
}

inline purge_due(a) {
  atomic {
#ifndef BREAK_DISARM_LATE
    arena[a].armed = false;
#endif
#ifdef REFUSALS
    if :: retry_kept_locked(a) :: skip fi;
#endif
    if :: !ANY_PENDING(a) -> flip_locked(a) :: else fi
  };
  do
  :: purge_step(a);
     if :: look == drained -> break :: else fi
  od;
#ifdef BREAK_DISARM_LATE
  remains = remains || ANY_DIRTY(a);
  arena[a].armed = false
#else
#ifdef BREAK_REPUBLISH_SKIPPED
  skip
#else
  atomic {
    arena[a].armed = ANY_DIRTY(a);
    remains = remains || arena[a].armed
  }
#endif
#endif
}

/* Takes the age for all arenas; what is owed is what is free now. */
inline begin_forced_purge(me) {
  atomic {
    do
    :: a < ARENAS ->
         s = 0;
         do
         :: s < SLICES ->
              arena[a].old[me * SLICES + s] = DIRTY(a, s);
              arena[a].owed[me * SLICES + s] = DIRTY(a, s) || arena[a].slice[s] == taken || arena[a].slice[s] == kept;
              s++
         :: else -> s = 0; break
         od;
         a++
    :: else -> a = 0; break
    od
  }
}

inline purge_all(a, me) {
  atomic {
    arena[a].forcers++;
    arena[a].force[me] = true;
#ifndef BREAK_FORCED_LEAVES_KEPT
    retry_kept_locked(a);
#endif
    arena[a].left[me] = 2
#ifdef BREAK_FORCED_ONE_LIST
    ; arena[a].left[me] = 0
#endif
  };
#ifdef BREAK_FORCED_DROPPED
  if
  :: step_lock -> goto dropped  /* somebody is at it */
  :: else
  fi;
#endif
  do
  :: purge_step(a);
     if
     :: look == drained ->
#ifdef BREAK_FORCED_LEAVES_STEP
          atomic {
#else
          atomic { !step_lock -> step_lock = true };  /* nobody's step is in flight, or was when the list was seen empty */
          atomic {
            step_lock = false;
#endif
            if
            :: ANY_PENDING(a)
            :: !ANY_PENDING(a) && arena[a].left[me] == 0 ->
                 arena[a].forcers--;
                 if
#ifdef BREAK_FORCED_ENDS_OTHERS
                 :: true ->
#else
                 :: arena[a].forcers == 0 ->
#endif
                      arena[a].force[0] = false; arena[a].force[1] = false; arena[a].force[2] = false
#ifndef BREAK_FORCED_ENDS_OTHERS
                 :: else
#endif
                 fi;
                 break
            :: else -> flip_locked(a)
            fi
          }
     :: else
     fi
  od;
#ifdef BREAK_FORCED_DROPPED
dropped:
#endif
  atomic {
    s = 0;
    do :: s < SLICES -> assert(!arena[a].owed[me * SLICES + s]); s++ :: else -> s = 0; break od
  }
}

/* ---- the scavenger's thread ---- */

inline scavenger_pass() {
  remains = false;
  a = 0;
  do :: a < ARENAS -> purge_due(a); a++ :: else -> a = 0; break od
}

inline run_() {
  run_state = running;
  do
  ::
#ifndef BREAK_LISTENS_LATE
     rung = false;  /* seen = g_armings */
#endif
     scavenger_pass();
#ifdef BREAK_LISTENS_LATE
     rung = false;
#endif
     if
     :: remains -> begin_generation()
     :: else ->
          sleeping = true;
#ifdef BREAK_SLEEPS_BLINDLY
          asleep = true;
#else
          atomic { if :: !rung -> asleep = true :: else fi };  /* os::wait(g_armings, seen) */
#endif
          !asleep;
          sleeping = false
     fi
  od
}

proctype run_thread() IN_PARENT {
  byte a, s, g; mtype look; bool arm, remains, refused;
  run_()
}

#ifdef FORK
proctype run_thread_in_child() {
  byte a, s, g; mtype look; bool arm, remains, refused;
  run_()
}
#endif

/* The end of a slow path: run_deferred, on_deferred, start. */
inline on_deferred() {
  if
  :: deferred ->
#ifdef INLINE
       begin_generation();
#ifndef BREAK_FORGETS_BEHIND_PASS
       deferred = false;
#endif
       scavenger_pass();
#ifdef BREAK_FORGETS_BEHIND_PASS
       if :: !remains -> deferred = false :: else fi
#else
       if :: remains -> deferred = true :: else fi
#endif
#else
       deferred = false;
       atomic {
         if
         :: run_state == idle ->
              run_state = starting;
#ifdef FORK
              if :: forked -> run run_thread_in_child() :: else -> run run_thread() fi
#else
              run run_thread()
#endif
         :: else
         fi
       }
#endif
  :: else
  fi
}

inline operate() {
  atomic {
    select (a : 0 .. ARENAS - 1);
    select (s : 0 .. SLICES - 1);
    arm = false;
    if
    :: arena[a].slice[s] == used -> give_locked(a, s, true)
    :: arena[a].slice[s] == clean || arena[a].slice[s] == kept || DIRTY(a, s) ->
         /* Arena::take */
         arena[a].slice[s] = used;
         FORGET_AGE(a, s);
         FORGET_OWED(a, s)
    :: arena[a].slice[s] == taken
    fi;
    a = 0; s = 0
  };
  if :: arm -> on_armed(); arm = false :: else fi;
  on_deferred()
}

proctype worker() IN_PARENT {
  byte a, s, g, i; mtype look; bool arm, remains, refused;
  do :: i < OPERATIONS -> operate(); i++ :: break od;
  atomic { i = 0; finished++ }
}

/* ebb_collect(true) of one thread. */
proctype forced(byte me) IN_PARENT {
  byte a, s; mtype look; bool arm, refused;
  begin_forced_purge(me);
  do
  :: a < ARENAS -> purge_all(a, me); a++
  :: else -> break
  od;
  finished++
}

#ifdef FORK
inline after_fork_in_child() {
  atomic {
    run_state = idle;
    sleeping = false;
    asleep = false;
#ifdef BREAK_FORK_TELLS_LATE
    deferred = false
#else
    deferred = false;
    do :: a < ARENAS -> deferred = deferred || ANY_DIRTY(a); a++ :: else -> break od;
    a = 0
#endif
  }
}

/* heap/fork.cc: prepare, and what goes on in the child. Without `forked` nothing happened. */
proctype forker() {
  byte a, s, g, i; mtype look; bool arm, remains, refused;
#ifndef BREAK_FORK_WITHOUT_GUARD
  atomic { !step_lock -> step_lock = true };
#endif
  forked = true;
  atomic {
    step_lock = false;
    do
    :: a < ARENAS ->
         assert(arena[a].slice[0] != taken && arena[a].slice[1] != taken);  /* half done */
         a++
    :: else -> break
    od;
    a = 0
  };
  atomic {
    /* unlock_after_fork(child) */
    do
    :: a < ARENAS ->
#ifndef BREAK_FORK_STAYS_ARMED
         arena[a].armed = false;
#endif
         arena[a].forcers = 0;
         arena[a].force[0] = false; arena[a].force[1] = false; arena[a].force[2] = false;
         FORGET_OWED(a, 0);
         FORGET_OWED(a, 1);
         arena[a].left[0] = 0; arena[a].left[1] = 0; arena[a].left[2] = 0;
         a++
    :: else -> break
    od;
    a = 0
  };
#ifndef BREAK_FORK_TELLS_LATE
  after_fork_in_child();
#endif
  /* Pages of threads that are gone are given up: some of them are empty. */
  do
  :: a < ARENAS && arena[a].slice[0] == used ->
       atomic { give_locked(a, 0, true) };
       if :: arm -> on_armed(); arm = false :: else fi;
       a++
  :: a < ARENAS -> a++
  :: a == ARENAS -> break
  od;
  a = 0;
#ifdef BREAK_FORK_TELLS_LATE
  after_fork_in_child();
#endif
  do
  :: i < IN_CHILD -> operate(); i++
  :: i > 0 -> break
  od;
  atomic { i = 0; finished = 255 }
}
#endif

init {
  byte i;
  atomic {
    do :: i < ARENAS -> arena[i].slice[0] = used; arena[i].slice[1] = used; i++ :: else -> break od;
#ifdef INLINE
    run_state = inline_;
#endif
    i = 0;
    do :: i < WORKERS -> run worker(); i++ :: else -> break od;
    i = 0;
    do :: i < FORCED -> run forced(i); i++ :: else -> break od;
    i = 0
#ifdef FORK
    ; run forker()
#endif
  }
  /* quiet: nobody can move any more. */
  timeout;
  assert(finished == 255 || (!forked && finished == WORKERS + FORCED));
  do
  :: i < ARENAS ->
#ifdef INLINE
       assert(deferred || !ANY_DIRTY(i));  /* the next slow path goes on */
#else
       assert(!ANY_DIRTY(i));              /* stranded */
#endif
       i++
  :: else -> break
  od
}
