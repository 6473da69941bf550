#include "heap/sample_list.h"

#include <cstring>
#include <new>

#include "arena/cage.h"
#include "base/bits.h"
#include "base/check.h"
#include "os/lock.h"
#include "os/os.h"
#include "stats/counters.h"

namespace ebb {

// Its stack stands behind it.
struct Sample {
  SampleFacts facts;
  Sample* next;
  Sample* prev;
  uint32_t session;

  void** stack() { return reinterpret_cast<void**>(this + 1); }
  size_t bytes() const { return sizeof(Sample) + facts.depth * sizeof(void*); }
};

namespace {

constinit Lock g_lock{LockRank::kSamples};
constinit Sample* g_samples = nullptr;
constinit uint64_t g_last_id = 0;
constinit SampleHooks g_hooks{};

// Zero, as it may be read in front of the thread-local variables' initialisation (api/early.cc).
struct TakingState {
  Sample* freed;  // ended meanwhile, and not told yet
  bool is_taking;
};
EBB_TLS constinit thread_local TakingState tls_taking{};

// Words of a sample's copy in front of its stack.
constexpr size_t kCopiedFacts = 2;

SampleHooks hooks_now() {
  LockGuard guard(g_lock);
  return g_hooks;
}

// Ebb's own frames are of no interest. Where it is linked into the program they are known only if the function that
// the program called has left its frame, as the plain build's do.
size_t own_frames(void* const* frames, size_t depth, const void* caller) {
  size_t own = 0;
  while (own < depth && frames[own] != caller) ++own;
  if (own == depth) own = 0;
  while (own < depth && os::is_library_code(frames[own])) ++own;
  return own;
}

struct Stack {
  void* frames[kMostFrames + 16];  // with room for Ebb's own
  size_t own, depth;

  explicit Stack(const void* caller) {
    size_t all = os::call_stack(frames, kMostFrames + 16);
    own = own_frames(frames, all, caller);
    depth = min_of(all - own, kMostFrames);
    if (depth == 0 && caller != nullptr && !os::is_library_code(caller)) {
      own = 0;
      depth = 1;
      frames[0] = const_cast<void*>(caller);
    }
  }
};

}  // namespace

void sample_hooks_set(const SampleHooks& hooks) {
  LockGuard guard(g_lock);
  g_hooks = hooks;
}

bool is_taking_sample() { return tls_taking.is_taking; }

SampleTaking::SampleTaking() : is_outermost_(!tls_taking.is_taking) { tls_taking.is_taking = true; }

SampleTaking::~SampleTaking() {
  if (!is_outermost_) return;
  while (Sample* sample = tls_taking.freed) {
    tls_taking.freed = sample->next;
    SampleHooks hooks = hooks_now();
    if (hooks.on_free != nullptr) hooks.on_free(&sample->facts, hooks.argument);
    meta_give(sample, sample->bytes());
  }
  tls_taking.is_taking = false;
}

bool sample_begin(Page* page, uint32_t session, size_t weight_bytes, const void* caller) {
  EBB_ASSERT(tls_taking.is_taking && (page->flags & kFlagSampled) == 0);
  Stack stack(caller);
  void* memory = meta_take(sizeof(Sample) + stack.depth * sizeof(void*));
  if (memory == nullptr) return false;
  Sample* sample = new (memory) Sample{};
  sample->facts.block = page->start + page->large.offset;
  sample->facts.size_bytes = page->large.usable;
  sample->facts.weight_bytes = weight_bytes;
  sample->facts.time_ns = os::monotonic_ns();
  sample->facts.thread = os::thread_number();
  sample->facts.depth = stack.depth;
  sample->facts.stack = sample->stack();
  sample->session = session;
  memcpy(sample->stack(), stack.frames + stack.own, stack.depth * sizeof(void*));
  SampleHooks hooks;
  {
    LockGuard guard(g_lock);
    sample->facts.id = ++g_last_id;
    sample->next = g_samples;
    if (g_samples != nullptr) g_samples->prev = sample;
    g_samples = sample;
    page->sample = sample;
    page->flags |= kFlagSampled;
    hooks = g_hooks;
  }
  count(Counter::k_samples_taken);
  if (hooks.on_alloc != nullptr) hooks.on_alloc(&sample->facts, hooks.argument);
  return true;
}

void sample_end(Page* page) {
  SampleTaking taking;
  Sample* sample;
  {
    LockGuard guard(g_lock);
    sample = page->sample;
    if (sample->next != nullptr) sample->next->prev = sample->prev;
    (sample->prev != nullptr ? sample->prev->next : g_samples) = sample->next;
    page->flags &= static_cast<uint8_t>(~kFlagSampled);
    page->sample = nullptr;
  }
  count(Counter::k_samples_ended);
  // Told by the outermost, which may be this: a hook is never inside another.
  sample->next = tls_taking.freed;
  tls_taking.freed = sample;
}

size_t samples_copy(uint32_t session, uint64_t* words, size_t capacity) {
  LockGuard guard(g_lock);
  size_t needed = 0;
  for (const Sample* sample = g_samples; sample != nullptr; sample = sample->next) {
    if (sample->session == session) needed += kCopiedFacts + sample->facts.depth;
  }
  if (needed > capacity) return needed;
  for (Sample* sample = g_samples; sample != nullptr; sample = sample->next) {
    if (sample->session != session) continue;
    words[0] = sample->facts.size_bytes;
    words[1] = sample->facts.depth;
    memcpy(words + kCopiedFacts, sample->stack(), sample->facts.depth * sizeof(void*));
    words += kCopiedFacts + sample->facts.depth;
  }
  return needed;
}

void samples_lock_for_fork() { g_lock.lock(); }
void samples_unlock_after_fork() { g_lock.open_after_fork(); }

}  // namespace ebb
