/* Blocks freed by threads that do not own their page: one atomic word a page.
 *
 * Models page/remote.h (push, take, try_claim, try_release), page_release of heap/shared_pages.cc and
 * release_claimed of heap/release.cc; inlines carry the names of the functions they stand for. A compare-and-swap
 * compares values, so a word that went through other values and back is taken for unchanged, as in the machine.
 *
 * Promises, numbered as the invariants of page/remote.h:
 *   1  a page has at most one owner or claimer (`holder`), and only that one changes its plain fields
 *   2  a pushed block stays in the list until the owner takes it: each is taken once, and the count is right
 *   3  an ownerless page waits for at least 1 and at most `live` more frees, so that the free that empties it claims it:
 *      when nothing can move any more, a page without a live block has been given back
 *
 * BLOCKS of the page, FREES by each of two other threads; the owner may hand a block out again; an adopter may
 * claim the page. BREAK_… plants one mistake each.
 */
#ifndef BLOCKS
#define BLOCKS 3
#endif
#ifndef FREES
#define FREES 2
#endif

mtype = { live, freeing, pushed, free_ };

typedef Word { byte head, count, remaining; bool ownerless };  /* head: 0 none, else block + 1 */

Word word;
mtype block[BLOCKS];
byte next_[BLOCKS];
byte countdown = BLOCKS;
byte holder = 1;    /* ghost: who has the page; 0 nobody. 1 is the thread that made it */
bool retired;
byte again = 1;     /* how often a block may still be handed out anew */

#define SAME(w) (word.head == w.head && word.count == w.count && word.remaining == w.remaining && word.ownerless == w.ownerless)

inline load(w) {
  d_step { w.head = word.head; w.count = word.count; w.remaining = word.remaining; w.ownerless = word.ownerless }
}

inline live_blocks(n) {
  d_step {
    n = 0; k = 0;
    do
    :: k < BLOCKS -> if :: block[k] == live || block[k] == freeing -> n++ :: else fi; k++
    :: else -> break
    od;
    k = 0
  }
}

/* What the code compares when it swaps is checked by `compare`; `ok` says whether it swapped. */
inline push(me, b) {
  load(w);
  do
  ::
     next_[b] = w.head;
     atomic {
       if
       :: SAME(w) ->
            assert(!retired);
            word.head = b + 1;
            word.count++;
            block[b] = pushed;
            claimed = false;
            if
            :: word.ownerless ->
                 word.remaining--;
#ifndef BREAK_LAST_PUSH_CLAIMS_NOT
                 if
                 :: word.remaining == 0 ->
                      word.ownerless = false;
                      assert(holder == 0);  /* 1 */
                      holder = me;
                      claimed = true
                 :: else
                 fi
#endif
            :: else
            fi;
            break
       :: else -> load(w)
       fi
     }
  od
}

inline take(me) {
  assert(holder == me);
#ifdef BREAK_TAKES_WITHOUT_EXCHANGE
  load(w);
#endif
  atomic {
#ifndef BREAK_TAKES_WITHOUT_EXCHANGE
    load(w);
#endif
    word.head = 0; word.count = 0;
    n = 0;
    do
    :: w.head != 0 ->
         assert(block[w.head - 1] == pushed);  /* 2 */
         block[w.head - 1] = free_;
         w.head = next_[w.head - 1];
         n++
    :: else -> break
    od;
    assert(n == w.count);  /* 2 */
    countdown = countdown - n;
    n = 0
  }
}

inline try_claim(me) {
  load(w);
  claimed = false;
  do
  :: w.ownerless ->
#ifdef BREAK_CLAIMS_WITHOUT_SWAP
       atomic { word.ownerless = false; assert(holder == 0); holder = me; claimed = true; break }
#else
       atomic {
         if
         :: SAME(w) -> word.ownerless = false; word.remaining = 0; assert(holder == 0); holder = me; claimed = true; break
         :: else -> load(w)
         fi
       }
#endif
  :: !w.ownerless -> break
  od
}

inline page_release(me) {
  assert(holder == me);
  load(w);
  n = countdown - w.count;
  do
  ::
#ifndef BREAK_RELEASES_BY_STALE_COUNT
     n = countdown - w.count;
#endif
     if
     :: n == 0 ->
          atomic {
            assert(SAME(w));
            live_blocks(n);
            assert(n == 0 && !retired);
            retired = true;
            break
          }
     :: else
     fi;
#ifdef BREAK_WAITS_FOR_ONE_TOO_MANY
     select (remaining : 1 .. n + 1);
#else
     select (remaining : 1 .. n);
#endif
     atomic {
       if
#ifdef BREAK_RELEASES_WITHOUT_REREADING
       :: true ->
            word.head = w.head; word.count = w.count;
#else
       :: SAME(w) ->
#endif
            word.ownerless = true; word.remaining = remaining;
            holder = 0;
            live_blocks(n);
            assert(remaining >= 1 && remaining <= n);  /* 3 */
            break
#ifndef BREAK_RELEASES_WITHOUT_REREADING
       :: else -> load(w)
#endif
       fi
     }
  od;
  atomic { remaining = 0; n = 0 }
}

/* What somebody who has the page may do before giving it up: take the list, hand a block out again. */
inline use(me) {
  if
  :: skip
  :: take(me);
     if
     :: skip
     :: atomic {
          again > 0 && block[0] == free_ -> again--; block[0] = live; countdown++
        }
     fi
  fi
}

#define LOCALS Word w; byte n, k, remaining; bool claimed

proctype owner() { LOCALS; use(1); page_release(1) }

proctype adopter() { LOCALS; try_claim(2); if :: claimed -> use(2); page_release(2) :: else fi }

proctype freer(byte me) {
  LOCALS; byte i, b;
  do
  :: i < FREES ->
       if
       :: atomic { block[0] == live -> block[0] = freeing; b = 0 }
       :: atomic { block[1] == live -> block[1] = freeing; b = 1 }
#if BLOCKS > 2
       :: atomic { block[2] == live -> block[2] = freeing; b = 2 }
#endif
       :: break
       fi;
       push(me, b);
       if :: claimed -> use(me); page_release(me) :: else fi;
       i++
  :: i == FREES -> break
  od
}

init {
  byte n, k;
  atomic {
    do :: k < BLOCKS -> block[k] = live; k++ :: else -> break od;
    k = 0;
    run owner(); run adopter(); run freer(3); run freer(4)
  }
  timeout;
  live_blocks(n);
  assert(retired == (n == 0));
  assert(n == 0 || (holder == 0 && word.ownerless && word.remaining <= n))
}
