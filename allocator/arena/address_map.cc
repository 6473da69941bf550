#include "arena/address_map.h"

#include <atomic>

#include "base/compiler.h"

namespace ebb {
namespace {

constexpr size_t kMostRanges = 1024;

struct Entry {
  std::atomic<uintptr_t> begin{0}, end{0};  // of the slices that blocks may lie in
  std::atomic<char*> table{nullptr};
  std::atomic<char*> memory{nullptr};  // of the table's first entry
  std::atomic<Arena*> arena{nullptr};

  void set(uintptr_t begin_address, uintptr_t end_address, char* table_start, char* memory_start, Arena* of_arena) {
    begin.store(begin_address, std::memory_order_release);
    end.store(end_address, std::memory_order_release);
    table.store(table_start, std::memory_order_release);
    memory.store(memory_start, std::memory_order_release);
    arena.store(of_arena, std::memory_order_release);
  }
  void copy(const Entry& from) {
    set(from.begin.load(std::memory_order_relaxed), from.end.load(std::memory_order_relaxed),
        from.table.load(std::memory_order_relaxed), from.memory.load(std::memory_order_relaxed),
        from.arena.load(std::memory_order_relaxed));
  }
};

struct Copy {
  std::atomic<size_t> count{0};
  Entry entries[kMostRanges];
};

constinit Copy g_copies[2] = {};
constinit std::atomic<uint64_t> g_version{0};  // its lowest bit says which copy is current

uintptr_t begin_of(const Arena::Range& range) {
  return reinterpret_cast<uintptr_t>(range.memory) + (uintptr_t{range.low} << kSliceShift);
}
uintptr_t end_of(const Arena::Range& range) {
  return reinterpret_cast<uintptr_t>(range.memory) + (uintptr_t{range.high} << kSliceShift);
}

struct Found {
  Slice* slice = nullptr;
  Arena* arena = nullptr;
};

Found find_in(const Copy& copy, uintptr_t address) {
  size_t low = 0, high = copy.count.load(std::memory_order_acquire);
  while (low < high) {
    size_t middle = (low + high) / 2;
    const Entry& entry = copy.entries[middle];
    if (address < entry.begin.load(std::memory_order_acquire)) {
      high = middle;
    } else if (address >= entry.end.load(std::memory_order_acquire)) {
      low = middle + 1;
    } else {
      uintptr_t memory = reinterpret_cast<uintptr_t>(entry.memory.load(std::memory_order_acquire));
      return {slice_at(entry.table.load(std::memory_order_acquire), (address - memory) >> kSliceShift),
              entry.arena.load(std::memory_order_acquire)};
    }
  }
  return {};
}

Found find(uintptr_t address) {
  uint64_t version = g_version.load(std::memory_order_acquire);
  for (;;) {
    Found found = find_in(g_copies[version & 1], address);
    // The copy is written to only after the version has moved on; its fields are stored with release and loaded
    // with acquire order, so whoever read such a field sees that here.
    uint64_t now = g_version.load(std::memory_order_relaxed);
    if (EBB_LIKELY(now == version)) return found;
    version = g_version.load(std::memory_order_acquire);
  }
}

}  // namespace

Slice* address_map_find(uintptr_t address) { return find(address).slice; }

Arena* address_map_find_arena(uintptr_t address) { return find(address).arena; }

bool address_map_add_locked(Arena* arena, const Arena::Range& range) {
  uint64_t version = g_version.load(std::memory_order_relaxed);
  const Copy& from = g_copies[version & 1];
  Copy& to = g_copies[(version + 1) & 1];
  size_t count = from.count.load(std::memory_order_relaxed);
  if (count == kMostRanges) return false;
  uintptr_t begin = begin_of(range);
  size_t i = 0;
  for (; i < count && from.entries[i].begin.load(std::memory_order_relaxed) < begin; ++i) {
    to.entries[i].copy(from.entries[i]);
  }
  to.entries[i].set(begin, end_of(range), range.table, range.memory, arena);
  for (; i < count; ++i) to.entries[i + 1].copy(from.entries[i]);
  to.count.store(count + 1, std::memory_order_release);
  g_version.store(version + 1, std::memory_order_release);
  return true;
}

void address_map_remove_locked(const char* start) {
  uint64_t version = g_version.load(std::memory_order_relaxed);
  const Copy& from = g_copies[version & 1];
  Copy& to = g_copies[(version + 1) & 1];
  size_t count = from.count.load(std::memory_order_relaxed);
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (from.entries[i].begin.load(std::memory_order_relaxed) == reinterpret_cast<uintptr_t>(start)) continue;
    to.entries[kept++].copy(from.entries[i]);
  }
  to.count.store(kept, std::memory_order_release);
  g_version.store(version + 1, std::memory_order_release);
}

bool address_map_overlaps_locked(uintptr_t begin, uintptr_t end) {
  const Copy& copy = g_copies[g_version.load(std::memory_order_relaxed) & 1];
  size_t count = copy.count.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    const Entry& entry = copy.entries[i];
    if (begin < entry.end.load(std::memory_order_relaxed) && entry.begin.load(std::memory_order_relaxed) < end) return true;
  }
  return false;
}

}  // namespace ebb
