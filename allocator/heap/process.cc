#include "heap/process.h"

#include <atomic>

#include "arena/cage.h"
#include "config/options.h"
#include "heap/parts.h"
#include "heap/thread.h"
#include "os/message.h"
#include "os/os.h"
#include "page/block.h"

namespace ebb {
namespace {

enum StartState : int { kNotStarted, kReady, kHopeless };

constinit std::atomic<int> g_state{kNotStarted};
constinit Lock g_start_lock{LockRank::kThreadRegistry};
constinit bool g_sees_thread_ends = false;

// Ends the calling thread's part of the allocator. Destructors of other keys and of thread_local objects may
// run later and allocate: they find an empty heap and make the thread a new Thread, which asks for this call
// again; the libc repeats PTHREAD_DESTRUCTOR_ITERATIONS times.
void on_thread_end(void* value) {
  Thread* thread = static_cast<Thread*>(value);
  if (thread == nullptr || tls_thread != thread) return;
  {
    Gate gate(thread);
    if (!gate.is_open()) return;  // the libc cannot call this from inside the slow path
    tls_heap = &g_empty_heap;
    tls_owner = kNobodyHere;
    tls_thread = nullptr;
    thread_release_pages(thread, false);
    parts_leave(thread);
  }
  thread_forget(thread);
  run_deferred();
}

void complain(const char* variable, const char* value) {
  int index = option_find(variable);
  const OptionInfo& info = option_info(static_cast<size_t>(index));
  Message message;
  message.text("ebb: EBB_").text(variable).text("=").text(value).text(" is not usable; give a number from ");
  message.number(static_cast<uint64_t>(info.low)).text(" to ").number(static_cast<uint64_t>(info.high));
  message.text(", the default is kept (variable names are in capitals)").print();
}

void describe_start() {
  Message message;
  message.text("ebb: ").number(g_cage.size >> 30).text(" GiB of addresses reserved at ").pointer(g_cage.base);
  message.text(", OS pages of ").number(os::page_bytes()).text(" bytes, scavenger ");
  message.number(static_cast<uint64_t>(option(Option::k_scavenger))).text(", huge pages ");
  message.number(static_cast<uint64_t>(option(Option::k_thp))).print();
}

}  // namespace

bool process_start() {
  int state = g_state.load(std::memory_order_acquire);
  if (EBB_LIKELY(state == kReady)) return true;
  if (state == kHopeless) return false;
  {
    LockGuard guard(g_start_lock);
    state = g_state.load(std::memory_order_relaxed);
    if (state != kNotStarted) return state == kReady;
    // A set-user-ID program must not be steered by its caller's environment.
    if (!os::is_privileged_execution()) options_load(os::environment(), complain);
    choose_link_keys();
    bool ready = cage_initialise();
    if (ready && option(Option::k_verbose) != 0) describe_start();
    if (ready) g_sees_thread_ends = os::watch_thread_ends(on_thread_end);
    if (ready) process_connect_scavenger();
    g_state.store(ready ? kReady : kHopeless, std::memory_order_release);
    if (!ready) return false;
  }
  // Last, as the registration may allocate.
  process_watch_fork();
  return true;
}

void process_watch_thread_end(Thread* thread) {
  // Where the libc has no room for that (all 1024 keys are in use) the pages of ended threads stay theirs; frees of
  // their blocks still work, as those are remote.
  if (g_sees_thread_ends) os::watch_this_thread(thread);
}

}  // namespace ebb
