// Finding the active allocator and its calls; see adapter.h.
#include "common/adapter.h"

#include <dlfcn.h>

#include <cstring>

#include "common/exits.h"

namespace tidemark {
namespace {

Dl_info object_of(void* symbol) {
  Dl_info info{};
  if (symbol == nullptr || dladdr(symbol, &info) == 0) return Dl_info{};
  return info;
}

// The object that provides malloc, and look-ups confined to it.
struct ActiveObject {
  Dl_info info = object_of(dlsym(RTLD_DEFAULT, "malloc"));

  template <typename Function>
  Function* find(const char* symbol) const {
    void* address = dlsym(RTLD_DEFAULT, symbol);
    if (address == nullptr || object_of(address).dli_fbase != info.dli_fbase) return nullptr;
    return reinterpret_cast<Function*>(address);
  }
};

bool has_ebb(const ActiveObject& active, Adapter& adapter) {
  if (active.find<void()>("ebb_version") == nullptr) return false;
  adapter.name = "ebb";
  adapter.heap_new_native = active.find<void*()>("ebb_heap_new");
  adapter.heap_malloc_native = active.find<void*(void*, std::size_t)>("ebb_heap_malloc");
  adapter.heap_destroy_native = active.find<void(void*)>("ebb_heap_destroy");
  adapter.heap_delete_native = active.find<void(void*)>("ebb_heap_delete");
  adapter.collect_call = active.find<void(bool)>("ebb_collect");
  adapter.park_begin_native = active.find<bool()>("ebb_park_begin");
  adapter.park_end_native = active.find<void()>("ebb_park_end");
  return true;
}

bool has_mimalloc(const ActiveObject& active, Adapter& adapter) {
  adapter.collect_call = active.find<void(bool)>("mi_collect");
  if (!adapter.collect_native()) return false;
  adapter.name = "mimalloc";
  adapter.heap_new_native = active.find<void*()>("mi_heap_new");
  adapter.heap_malloc_native = active.find<void*(void*, std::size_t)>("mi_heap_malloc");
  adapter.heap_destroy_native = active.find<void(void*)>("mi_heap_destroy");
  adapter.heap_delete_native = active.find<void(void*)>("mi_heap_delete");
  return true;
}

// jemalloc: a heap is an arena made and destroyed through mallctl. The handle is the arena's index plus
// one, so that it is never null.
namespace jemalloc {

constexpr int kTcacheNone = 1 << 8;       // MALLOCX_TCACHE_NONE
constexpr int kArenaShift = 20;           // MALLOCX_ARENA(a) is (a + 1) << 20
constexpr std::size_t kAllArenas = 4096;  // MALLCTL_ARENAS_ALL
constexpr std::size_t kMibLength = 3;     // "arena", index, verb

int (*mallctl)(const char*, void*, std::size_t*, void*, std::size_t);
int (*mallctlbymib)(const std::size_t*, std::size_t, void*, std::size_t*, void*, std::size_t);
int (*mallctlnametomib)(const char*, std::size_t*, std::size_t*);
void* (*mallocx)(std::size_t, int);
std::size_t destroy_mib[kMibLength];
std::size_t purge_mib[kMibLength];
std::size_t decay_mib[kMibLength];

void* heap_new() {
  unsigned arena = 0;
  std::size_t size = sizeof arena;
  if (mallctl("arenas.create", &arena, &size, nullptr, 0) != 0) fail_broken("jemalloc refuses a new arena");
  return reinterpret_cast<void*>(std::uintptr_t{arena} + 1);
}

void* heap_malloc(void* heap, std::size_t size) {
  const auto arena_plus_one = static_cast<int>(reinterpret_cast<std::uintptr_t>(heap));
  return mallocx(size, (arena_plus_one << kArenaShift) | kTcacheNone);
}

void heap_destroy(void* heap) {
  std::size_t mib[kMibLength] = {destroy_mib[0], reinterpret_cast<std::uintptr_t>(heap) - 1, destroy_mib[2]};
  if (mallctlbymib(mib, kMibLength, nullptr, nullptr, nullptr, 0) != 0) {
    fail_broken("jemalloc refuses to destroy an arena");
  }
}

void collect(bool force) {
  // The thread's cache first: what it holds is in use as far as the arenas know. Without a cache the
  // call fails, and there is nothing to flush.
  (void)mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
  const std::size_t* verb = force ? purge_mib : decay_mib;
  std::size_t mib[kMibLength] = {verb[0], kAllArenas, verb[2]};
  if (mallctlbymib(mib, kMibLength, nullptr, nullptr, nullptr, 0) != 0) fail_broken("jemalloc refuses to purge");
}

bool resolve(const char* name, std::size_t* mib) {
  std::size_t length = kMibLength;
  return mallctlnametomib(name, mib, &length) == 0;
}

}  // namespace jemalloc

bool has_jemalloc(const ActiveObject& active, Adapter& adapter) {
  jemalloc::mallctl = active.find<int(const char*, void*, std::size_t*, void*, std::size_t)>("mallctl");
  jemalloc::mallctlbymib =
      active.find<int(const std::size_t*, std::size_t, void*, std::size_t*, void*, std::size_t)>("mallctlbymib");
  jemalloc::mallctlnametomib = active.find<int(const char*, std::size_t*, std::size_t*)>("mallctlnametomib");
  jemalloc::mallocx = active.find<void*(std::size_t, int)>("mallocx");
  if (jemalloc::mallctl == nullptr || jemalloc::mallctlbymib == nullptr || jemalloc::mallctlnametomib == nullptr ||
      jemalloc::mallocx == nullptr) {
    return false;
  }
  adapter.name = "jemalloc";
  if (jemalloc::resolve("arena.0.destroy", jemalloc::destroy_mib)) {
    adapter.heap_new_native = jemalloc::heap_new;
    adapter.heap_malloc_native = jemalloc::heap_malloc;
    adapter.heap_destroy_native = jemalloc::heap_destroy;
  }
  if (jemalloc::resolve("arena.0.purge", jemalloc::purge_mib) &&
      jemalloc::resolve("arena.0.decay", jemalloc::decay_mib)) {
    adapter.collect_call = jemalloc::collect;
  }
  return true;
}

void (*tcmalloc_release)();

bool has_tcmalloc(const ActiveObject& active, Adapter& adapter) {
  tcmalloc_release = active.find<void()>("MallocExtension_ReleaseFreeMemory");
  if (tcmalloc_release == nullptr) return false;
  adapter.name = "tcmalloc";
  adapter.collect_call = [](bool) { tcmalloc_release(); };
  return true;
}

// oneTBB splits in two: the proxy provides malloc, its dependency the calls.
int (*tbb_command)(int command, void* argument);

bool has_tbb(const ActiveObject& active, Adapter& adapter) {
  if (active.info.dli_fname == nullptr || std::strstr(active.info.dli_fname, "libtbbmalloc") == nullptr) {
    return false;
  }
  adapter.name = "tbbmalloc";
  void* address = dlsym(RTLD_DEFAULT, "scalable_allocation_command");
  const Dl_info owner = object_of(address);
  if (owner.dli_fname == nullptr || std::strstr(owner.dli_fname, "libtbbmalloc") == nullptr) return true;
  tbb_command = reinterpret_cast<int (*)(int, void*)>(address);
  constexpr int kCleanAllBuffers = 0;  // TBBMALLOC_CLEAN_ALL_BUFFERS
  adapter.collect_call = [](bool) { tbb_command(kCleanAllBuffers, nullptr); };
  return true;
}

// Scudo gives memory back through mallopt.
int (*scudo_mallopt)(int parameter, int value);

bool has_scudo(const ActiveObject& active, Adapter& adapter) {
  if (active.find<void()>("__scudo_print_stats") == nullptr &&
      active.find<void()>("__scudo_get_error_info") == nullptr) {
    return false;
  }
  adapter.name = "scudo";
  scudo_mallopt = active.find<int(int, int)>("mallopt");
  constexpr int kPurge = -101;  // M_PURGE
  if (scudo_mallopt != nullptr) adapter.collect_call = [](bool) { scudo_mallopt(kPurge, 0); };
  return true;
}

// glibc, and whatever else brings glibc's call along.
int (*trim)(std::size_t keep_bytes);

void find_trim(const ActiveObject& active, Adapter& adapter) {
  if (active.find<const char*()>("gnu_get_libc_version") != nullptr) adapter.name = "glibc";
  trim = active.find<int(std::size_t)>("malloc_trim");
  if (trim != nullptr) adapter.collect_call = [](bool) { trim(0); };
}

}  // namespace

Adapter find_adapter() {
  const ActiveObject active;
  if (active.info.dli_fname == nullptr) fail_broken("cannot tell which object provides malloc");
  Adapter adapter;
  adapter.malloc_object = active.info.dli_fname;
  if (has_ebb(active, adapter) || has_mimalloc(active, adapter) || has_jemalloc(active, adapter) ||
      has_tcmalloc(active, adapter) || has_tbb(active, adapter) || has_scudo(active, adapter)) {
    return adapter;
  }
  find_trim(active, adapter);
  return adapter;
}

}  // namespace tidemark
