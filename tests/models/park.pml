/* The gate of a thread: who may touch its heaps when, over parking, sweeping, waking, ending and fork.
 *
 * Models heap/thread.h (Gate), heap/thread.cc (enter_slow, thread_unpark, thread_forget), scavenger/park.cc,
 * scavenger/sweep.cc (sweep_step), scavenger/scavenger.cc (run, on_armed) and heap/fork.cc (thread_freeze, thread_thaw, child);
 * inlines and processes carry the names of the functions they stand for. A thread's heaps are `has`: pages of two
 * classes that it keeps in reserve.
 *
 * Promises:
 *   exclusion   the thread itself, the sweep and the fork never work on its heaps at a time (`inside`), and its
 *               fast paths leave them alone while somebody else may (`fast_path`)
 *   lifetime    nobody touches the structure of a thread that has ended (`TOUCH`)
 *   no sleeper  whoever waits for a sweep or a fork is woken: nobody waits in a state where nothing can move
 *   swept       a thread that stays parked keeps nothing (process `init`, behind `timeout`)
 *
 * OPERATIONS of the thread; FORK: another thread, parked or not, forks. BREAK_… plants one mistake each.
 */
#ifndef OPERATIONS
#define OPERATIONS 2
#endif
#define CLASSES 2
#define OWNER 0
#define FORKER 1

#ifdef FORK
#define THREADS 2
#define IN_PARENT provided (!in_child)
#else
#define THREADS 1
#define IN_PARENT
#endif

mtype = { running, busy, parked, sweeping, frozen, frozen_parked };

typedef Thread {
  mtype gate;
  bool wants_back, touched, due;
  byte sweep_class;
  bool has[CLASSES];
  bool owns;            /* tls_owner is the thread's, tls_heap its own */
  bool linked, gone;    /* in the registry; its memory given back */
  bool asleep;          /* in the futex of its gate */
  byte inside;          /* ghost: who works on its heaps */
  bool done;
};

Thread thread[2];
bool registry;           /* g_thread_lock */
bool in_child;
bool rung, sleeping, asleep;  /* as in purge.pml */

#define TOUCH(t) assert(!thread[t].gone)

inline on_armed() {
  rung = true;
  if :: sleeping -> asleep = false :: else fi
}

/* The first half of malloc or free, or a signal handler that calls one. */
inline fast_path(t) {
  if
  :: thread[t].owns -> assert(thread[t].gate != sweeping && thread[t].gate != parked)
  :: else
  fi
}

inline thread_unpark(t) {
#ifdef BREAK_UNPARKS_BLINDLY
  thread[t].gate = running;
#else
  do
  :: atomic { thread[t].gate == parked -> thread[t].gate = running; break }
  :: thread[t].gate == running -> break
  :: atomic { thread[t].gate == sweeping || thread[t].gate == frozen_parked -> seen = thread[t].gate };
     thread[t].wants_back = true;
     /* os::wait, without the limit that it has in the code. */
     atomic { if :: thread[t].gate == seen -> thread[t].asleep = true :: else fi; seen = 0 };
     !thread[t].asleep
  od;
  thread[t].wants_back = false;
#endif
  fast_path(t);
  thread[t].owns = true
}

inline enter(t) {
  do
  :: atomic { thread[t].gate == running -> thread[t].gate = busy; break }
  :: thread[t].gate == parked || thread[t].gate == sweeping || thread[t].gate == frozen_parked -> thread_unpark(t)
  :: thread[t].gate == frozen -> thread[t].gate != frozen
  od;
  atomic { thread[t].touched = true; thread[t].inside++; assert(thread[t].inside == 1) }
}

inline leave(t) {
  atomic { thread[t].inside--; thread[t].gate = running }
}

inline slow_path(t) {
  enter(t);
  if :: thread[t].has[0] = true :: thread[t].has[1] = true fi;
  leave(t)
}

/* A signal handler allocates between the two halves of park_begin. */
inline handler(t) {
  if
  :: skip
  :: atomic { thread[t].gate == running -> thread[t].gate = busy };
     atomic { thread[t].touched = true; thread[t].has[1] = true; thread[t].gate = running }
  fi
}

inline park_begin(t) {
  has_work = thread[t].touched || thread[t].sweep_class != 0;
#ifndef BREAK_OWNS_WHILE_PARKED
  thread[t].owns = false;
#endif
  handler(t);
  atomic { thread[t].gate == running -> thread[t].gate = parked };
  fast_path(t);
#ifdef BREAK_OWNS_WHILE_PARKED
  thread[t].owns = false;
#endif
#ifndef BREAK_READS_TOUCHED_EARLY
  has_work = has_work || thread[t].touched;
#endif
  if
#ifdef BREAK_WAKES_SLEEPERS_ONLY
  :: has_work && sleeping -> on_armed()
#else
  :: has_work -> on_armed()
#endif
  :: else
  fi;
  has_work = false
}

inline park_end(t) {
  if :: !thread[t].owns -> thread_unpark(t) :: else fi
}

/* heap/process.cc */
inline on_thread_end(t) {
  enter(t);
  atomic { thread[t].owns = false; thread[t].has[0] = false; thread[t].has[1] = false };
  leave(t);
  atomic { !registry -> registry = true };
  atomic { thread[t].linked = false; registry = false };
  thread[t].gone = true
}

inline operate(t) {
  if
  :: slow_path(t)
  :: fast_path(t)
  :: park_begin(t);
     if
     :: skip
     :: slow_path(t)  /* allocates while parked */
     fi;
     park_end(t)
  fi
}

proctype owner() IN_PARENT {
  byte i; mtype seen; bool has_work;
  do
  :: i < OPERATIONS -> operate(OWNER); i++
  :: break
  od;
  if
  :: park_begin(OWNER)  /* and stays */
#ifdef FORK
  :: park_begin(OWNER); park_end(OWNER)
#endif
  :: on_thread_end(OWNER)
  fi;
  atomic { i = 0; seen = 0; has_work = false; thread[OWNER].done = true }
}

/* scavenger/sweep.cc: one class of one thread. `stepped` when there was one. */
inline sweep_step() {
#ifndef BREAK_SWEEPS_WITHOUT_REGISTRY
  atomic { !registry -> registry = true };
#endif
  stepped = false;
  t = 0;
  do
  :: t < THREADS && !stepped && thread[t].linked && !thread[t].wants_back ->
       TOUCH(t);
       if
       :: atomic { thread[t].gate == parked -> thread[t].gate = sweeping };
          atomic { thread[t].inside++; assert(thread[t].inside == 1) };
          if
          :: thread[t].sweep_class != 0 || (thread[t].touched && thread[t].due) ->
#ifndef BREAK_TOUCHED_RESET_LATE
               if :: thread[t].sweep_class == 0 -> thread[t].touched = false :: else fi;
#endif
               thread[t].has[thread[t].sweep_class] = false;
               atomic {
                 thread[t].sweep_class = (thread[t].sweep_class + 1) % CLASSES;
                 if
                 :: thread[t].sweep_class == 0 ->
                      thread[t].due = false;
#ifdef BREAK_TOUCHED_RESET_LATE
                      thread[t].touched = false
#endif
                 :: else
                 fi
               };
               stepped = true
          :: else -> later = later || thread[t].touched
          fi;
          atomic { thread[t].inside--; thread[t].gate = parked };
#ifndef BREAK_WAKE_SKIPPED
          if :: thread[t].wants_back -> thread[t].asleep = false :: else fi;
#endif
          TOUCH(t)
       :: thread[t].gate != parked
       fi;
       t++
  :: t < THREADS && !stepped && (!thread[t].linked || thread[t].wants_back) -> t++
  :: t == THREADS || stepped -> break
  od;
  atomic {
    t = 0;
#ifndef BREAK_SWEEPS_WITHOUT_REGISTRY
    registry = false
#endif
  }
}

inline run_() {
  do
  :: rung = false;
     later = false;
     do
     :: sweep_step();
        if :: !stepped -> break :: else -> atomic { stepped = false; later = false } fi
     od;
     if
     :: later -> atomic { thread[0].due = true; thread[1].due = true; later = false }  /* hole_interval_ms pass */
     :: else ->
          sleeping = true;
          atomic { if :: !rung -> asleep = true :: else fi };
          !asleep;
          sleeping = false
     fi
  od
}

proctype run_thread() IN_PARENT { byte t; bool stepped, later; run_() }

#ifdef FORK
proctype run_thread_in_child() { byte t; bool stepped, later; run_() }

/* heap/fork.cc */
inline thread_freeze(t) {
  do
  :: atomic { thread[t].gate == running -> thread[t].gate = frozen; break }
  :: atomic { thread[t].gate == parked -> thread[t].gate = frozen_parked; break }
  :: thread[t].gate == busy || thread[t].gate == sweeping -> thread[t].gate == running || thread[t].gate == parked
  od
}

inline thread_thaw(t) {
  atomic { thread[t].gate = (thread[t].gate == frozen_parked -> parked : running) };
  thread[t].asleep = false
}

inline child() {
  assert(thread[FORKER].gate != sweeping && thread[FORKER].inside == 0);
  assert(thread[OWNER].inside == 0 || !thread[OWNER].linked);
  atomic {
    registry = false;
    thread[OWNER].linked = false; thread[OWNER].done = true;
    thread[OWNER].has[0] = false; thread[OWNER].has[1] = false;
    thread[OWNER].gate = running;
    sleeping = false; asleep = false; rung = false;
    run run_thread_in_child()
  };
  slow_path(FORKER);
  park_begin(FORKER)
}

proctype forker() {
  mtype seen; bool has_work;
  if
  :: skip
  :: atomic { thread[FORKER].has[0] = true; thread[FORKER].touched = true }; park_begin(FORKER)
  fi;
  /* prepare */
#ifndef BREAK_FORK_WITHOUT_REGISTRY
  atomic { !registry -> registry = true };
#endif
#ifndef BREAK_FREEZE_SKIPPED
  if :: thread[OWNER].linked -> thread_freeze(OWNER) :: else fi;
#endif
  if
  :: in_child = true; child()
  :: 
#ifndef BREAK_FREEZE_SKIPPED
     if :: thread[OWNER].linked -> thread_thaw(OWNER) :: else fi;
#endif
     registry = false
  fi;
  atomic { seen = 0; has_work = false; thread[FORKER].done = true }
}
#endif

init {
  atomic {
    thread[0].gate = running; thread[0].owns = true; thread[0].linked = true; thread[0].due = true;
#ifdef FORK
    thread[0].has[0] = true; thread[0].touched = true;
#endif
    thread[1].gate = running; thread[1].owns = true; thread[1].linked = true; thread[1].due = true;
    run owner();
    run run_thread();
#ifdef FORK
    run forker()
#else
    thread[1].done = true
#endif
  }
  timeout;
  assert(thread[0].done && thread[1].done);  /* no sleeper */
  assert(thread[0].gate != parked || !(thread[0].has[0] || thread[0].has[1]));  /* swept */
  assert(thread[1].gate != parked || !(thread[1].has[0] || thread[1].has[1]))
}
