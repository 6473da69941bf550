#include "heap/sampling.h"

#include "base/exponential.h"
#include "heap/alloc.h"
#include "heap/large.h"
#include "heap/parts.h"
#include "heap/refill.h"
#include "heap/sample_list.h"
#include "heap/thread.h"
#include "os/os.h"
#include "stats/counters.h"

namespace ebb {

constinit std::atomic<bool> g_sampling{false};

namespace {

constinit std::atomic<size_t> g_mean_bytes{0};
constinit std::atomic<uint32_t> g_session{0};
constinit std::atomic<uint64_t> g_test_seed{0};

// splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
uint64_t next_random(uint64_t* state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

uint64_t seed() {
  uint64_t test = g_test_seed.load(std::memory_order_relaxed);
  return (test != 0 ? g_test_seed.fetch_add(1, std::memory_order_relaxed) : os::entropy()) | 1;
}

void draw(SampleCountdown* countdown) {
  if (countdown->random == 0) countdown->random = seed();
  double mean = static_cast<double>(g_mean_bytes.load(std::memory_order_relaxed));
  countdown->left_bytes = static_cast<uint64_t>(exponential_wait(next_random(&countdown->random), mean));
}

SampleCountdown* countdown_of(Thread* thread) {
  // Acquire: partner of the store in sampling_start, so that the mean is of this session or a later one.
  uint32_t session = g_session.load(std::memory_order_acquire);
  SampleCountdown* countdown = &thread->sampling;
  if (countdown->session != session) {
    countdown->session = session;
    draw(countdown);
  }
  return countdown;
}

// The marks of an earlier session, or of another heap that was in the same structure, are void.
SampleMarks* marks_of(ThreadHeap* heap, uint32_t session) {
  uint64_t serial = heap->heap->is_main() ? 0 : first_class(heap->heap)->serial.load(std::memory_order_relaxed);
  uint64_t life = (uint64_t{session} << 40) + serial;
  if (heap->samples.life != life) {
    heap->samples = {};
    heap->samples.life = life;
  }
  return &heap->samples;
}

size_t weight_of(size_t size, size_t mean) {
  double bytes = static_cast<double>(size);
  return static_cast<size_t>(bytes / share_below(bytes / static_cast<double>(mean)) + 0.5);
}

// Takes the list of the class's page, up to the block that is to be a sample.
void take_counted_list(SampleCountdown* countdown, SampleMarks* marks, ThreadHeap* heap, size_t cls) {
  Page* page = heap->active[cls];
  uint64_t blocks = static_cast<uint32_t>(page->carved - page->hole_blocks) - page->countdown;
  uint64_t before = countdown->left_bytes / class_bytes(cls);  // the sample
  heap->free[cls] = page_take_list(page);
  if (before >= blocks) {
    countdown->left_bytes -= blocks * class_bytes(cls);
    return;
  }
  Block* rest = heap->free[cls];
  Block* last = nullptr;
  // A list that was damaged (secure build) may be shorter.
  for (; before > 0 && rest != nullptr; --before) {
    last = rest;
    rest = rest->next;
  }
  if (last == nullptr) {
    heap->free[cls] = nullptr;
  } else {
    last->next = nullptr;
  }
  page_put_list(page, rest);
  marks->set(cls);
  draw(countdown);
}

// A block of the thread's list, which is filled when it is empty; `due`: no block, as the next one is to be a sample.
Block* pop_counted(Thread* thread, ThreadHeap* heap, size_t cls, bool* fresh, bool* due) {
  if (fresh != nullptr) *fresh = false;
  if (heap->free[cls] == nullptr) {
    SampleCountdown* countdown = countdown_of(thread);
    SampleMarks* marks = marks_of(heap, countdown->session);
    if (!marks->has(cls)) {
      if (refill_page(heap, cls, fresh) == nullptr) return nullptr;
      take_counted_list(countdown, marks, heap, cls);
    }
    if (heap->free[cls] == nullptr) {
      marks->clear(cls);
      *due = true;
      return nullptr;
    }
  }
  Block* block = heap->free[cls];
  heap->free[cls] = block->next;
  return hand_out(block);
}

// Makes the block of a page a sample, unless there is no memory for that.
void begin(Page* page, const void* caller) {
  size_t mean;
  uint32_t session = sampling_session(&mean);
  if (!sample_begin(page, session, weight_of(page->large.usable, mean), caller)) count(Counter::k_samples_lost);
}

// A block with a span of its own; null when there is no memory for that.
void* take_sample(Heap* heap, size_t cls, bool* fresh, const void* caller) {
  SampleTaking taking;
  bool zero = false;
  void* p = large_allocate_small(heap, class_bytes(cls), &zero);
  if (p == nullptr) {
    count(Counter::k_samples_lost);
    return nullptr;
  }
  if (fresh != nullptr) *fresh = zero;
  begin(as_page(find_slice(p)), caller);
  return p;
}

}  // namespace

void sampling_start(size_t mean_bytes) {
  g_mean_bytes.store(mean_bytes, std::memory_order_relaxed);
  g_session.fetch_add(1, std::memory_order_release);
  g_sampling.store(true, std::memory_order_relaxed);
}

void sampling_stop() { g_sampling.store(false, std::memory_order_relaxed); }

uint32_t sampling_session(size_t* mean_bytes) {
  uint32_t session = g_session.load(std::memory_order_acquire);
  *mean_bytes = g_mean_bytes.load(std::memory_order_relaxed);
  return session;
}

void sampling_seed_for_test(uint64_t seed) { g_test_seed.store(seed, std::memory_order_relaxed); }

void* take_block_counted(Heap* from, size_t cls, bool* fresh, const void* caller) {
  Thread* thread = thread_self();
  if (thread == nullptr || is_taking_sample()) return take_block(from, cls, fresh);
  Block* block = nullptr;
  bool due = false;
  {
    Gate gate(thread);
    if (!gate.is_open()) return nullptr;
    ThreadHeap* heap = from == nullptr ? thread->current : part_get(thread, from);
    if (heap == nullptr) return nullptr;
    from = heap->heap;
    block = pop_counted(thread, heap, cls, fresh, &due);
  }
  run_deferred();
  if (due) block = static_cast<Block*>(take_sample(from, cls, fresh, caller));
  // What can't be had so may be had without counting, or somebody has to be told that it can't.
  return block != nullptr ? block : take_block(from, cls, fresh);
}

void count_large(Page* page, const void* caller) {
  Thread* thread = thread_self();
  if (thread == nullptr || is_taking_sample()) return;
  SampleCountdown* countdown = countdown_of(thread);
  if (countdown->left_bytes >= page->large.usable) {
    countdown->left_bytes -= page->large.usable;
    return;
  }
  draw(countdown);
  SampleTaking taking;
  begin(page, caller);
}

}  // namespace ebb
