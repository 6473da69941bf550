#include "heaps/heap_machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "arena/arena_list.h"
#include "base/units.h"

namespace ebb::test {
namespace {

constexpr size_t kWorldsMost = 3, kArenasMost = 4, kHeapsMost = 12, kBlocksMost = 400, kActors = 3;

bool holds(const unsigned char* p, size_t size, unsigned char value) {
  // The ends and some bytes between: every block is looked at often.
  if (size == 0) return true;
  if (p[0] != value || p[size - 1] != value) return false;
  for (size_t at = 0; at < size; at += 509) {
    if (p[at] != value) return false;
  }
  return true;
}

}  // namespace

HeapMachine::HeapMachine(Choose choose) : choose_(std::move(choose)) {
  worlds_.push_back(std::make_unique<World>(World{nullptr, ebb_heap_main()}));
  heaps_.push_back(std::make_unique<Heap>(Heap{ebb_heap_main(), worlds_[0].get(), nullptr, 0, true}));
  for (size_t i = 0; i < kActors; ++i) {
    actors_.push_back({std::make_unique<Worker>(), worlds_[0].get(), heaps_[0].get(), false});
  }
}

HeapMachine::~HeapMachine() {
  for (Actor& actor : actors_) actor.worker->end();
  for (auto& [p, block] : blocks_) ebb_free(p);
  for (auto& heap : heaps_) {
    if (!heap->is_main) ebb_heap_destroy(heap->handle);
  }
  for (auto& world : worlds_) {
    if (world->handle != nullptr) ebb_subproc_destroy(world->handle);
  }
  ebb_collect(false);
  for (auto& arena : arenas_) {
    if (ebb_arena_area(arena->handle, nullptr) != nullptr) ebb_arena_release(arena->handle);
    if (arena->mapping != nullptr) munmap(arena->mapping, arena->bytes);
  }
}

bool HeapMachine::fail(const std::string& what) {
  if (error_.empty()) error_ = what;
  return false;
}

void HeapMachine::act(Actor& actor, const std::function<void()>& what) { actor.worker->run(what); }

bool HeapMachine::step() {
  using Operation = void (HeapMachine::*)();
  static constexpr Operation kOperations[] = {
      &HeapMachine::allocate,     &HeapMachine::allocate,  &HeapMachine::allocate,  &HeapMachine::allocate_by_default,
      &HeapMachine::resize,       &HeapMachine::free_some, &HeapMachine::free_some, &HeapMachine::free_most_of_a_heap,
      &HeapMachine::make_heap,    &HeapMachine::end_heap,  &HeapMachine::set_default, &HeapMachine::set_limit,
      &HeapMachine::collect,      &HeapMachine::park,      &HeapMachine::exit_thread, &HeapMachine::make_world,
      &HeapMachine::enter_world,  &HeapMachine::end_world, &HeapMachine::make_arena,  &HeapMachine::release_arena,
  };
  (this->*kOperations[choose_(std::size(kOperations))])();
  return error_.empty() && compare();
}

// ---- blocks ----

std::map<unsigned char*, HeapMachine::Block>::iterator HeapMachine::any_block() {
  auto at = blocks_.begin();
  std::advance(at, choose_(static_cast<uint32_t>(blocks_.size())));
  return at;
}

size_t HeapMachine::any_size() {
  static constexpr size_t kScales[] = {128, 128, 1024, 1024, 8192, 40000, 70000, 300000};
  return choose_(static_cast<uint32_t>(kScales[choose_(std::size(kScales))]));
}

void HeapMachine::add_block(Heap* heap, void* p, size_t size, bool zeroed) {
  unsigned char* bytes = static_cast<unsigned char*>(p);
  if (bytes == nullptr) {
    if (heap->limit == 0 && heap->arena == nullptr) fail("an allocation failed");
    return;
  }
  if (reinterpret_cast<uintptr_t>(p) % 16 != 0) fail("a block is not aligned");
  if (zeroed && !holds(bytes, size, 0)) fail("a zeroed block is not zero");
  if (ebb_usable_size(p) < size) fail("a block is too small");
  auto next = blocks_.lower_bound(bytes);
  if (next != blocks_.end() && next->first < bytes + std::max<size_t>(size, 1)) fail("two blocks overlap");
  if (next != blocks_.begin() && std::prev(next)->first + std::prev(next)->second.size > bytes) fail("two blocks overlap");
  unsigned char value = static_cast<unsigned char>(next_value_++);
  memset(bytes, value, size);
  blocks_[bytes] = {heap, size, value};
}

void HeapMachine::allocate() {
  if (blocks_.size() >= kBlocksMost) return free_some();
  Heap* heap = any_heap();
  Actor& actor = any_actor();
  uint32_t count = 1 + choose_(12);
  size_t size = any_size();
  uint32_t kind = choose_(4);
  size_t alignment = size_t{16} << choose_(9);
  actor.parked = false;
  act(actor, [&] {
    for (uint32_t i = 0; i < count; ++i) {
      void* p = kind == 0   ? ebb_heap_calloc(heap->handle, 1, size)
                : kind == 1 ? ebb_heap_aligned_alloc(heap->handle, alignment, size)
                            : ebb_heap_malloc(heap->handle, size);
      if (kind == 1 && reinterpret_cast<uintptr_t>(p) % alignment != 0) fail("an aligned block is not");
      add_block(heap, p, size, kind == 0);
    }
  });
}

void HeapMachine::allocate_by_default() {
  if (blocks_.size() >= kBlocksMost) return free_some();
  Actor& actor = any_actor();
  size_t size = any_size();
  actor.parked = false;
  act(actor, [&] { add_block(actor.default_heap, ebb_malloc(size), size, false); });
}

void HeapMachine::resize() {
  if (blocks_.empty()) return;
  auto at = any_block();
  unsigned char* from = at->first;
  Block block = at->second;
  Actor& actor = any_actor();
  size_t size = any_size() + 1;
  actor.parked = false;
  act(actor, [&] {
    unsigned char* to = static_cast<unsigned char*>(ebb_heap_realloc(block.heap->handle, from, size));
    if (to == nullptr) {
      if (block.heap->limit == 0 && block.heap->arena == nullptr) fail("a resize failed");
      return;
    }
    if (!holds(to, std::min(size, block.size), block.value)) fail("a resize lost contents");
    blocks_.erase(at);
    add_block(block.heap, to, size, false);
  });
}

void HeapMachine::free_some() {
  Actor& actor = any_actor();
  for (uint32_t count = 1 + choose_(20); count > 0 && !blocks_.empty(); --count) {
    auto at = any_block();
    act(actor, [&] { ebb_free(at->first); });
    blocks_.erase(at);
  }
}

void HeapMachine::free_most_of_a_heap() {
  Heap* heap = any_heap();
  Actor& actor = any_actor();
  uint32_t keep = choose_(8) + 1;
  act(actor, [&] {
    uint32_t i = 0;
    for (auto at = blocks_.begin(); at != blocks_.end();) {
      if (at->second.heap != heap || ++i % keep == 0) {
        ++at;
        continue;
      }
      ebb_free(at->first);
      at = blocks_.erase(at);
    }
  });
}

// ---- heaps ----

void HeapMachine::make_heap() {
  if (heaps_.size() >= kHeapsMost) return end_heap();
  Actor& actor = any_actor();
  Arena* arena = arenas_.empty() || choose_(2) == 0 ? nullptr : arenas_[choose_(static_cast<uint32_t>(arenas_.size()))].get();
  if (arena != nullptr && arena->world != actor.world) arena = nullptr;
  act(actor, [&] {
    ebb_heap_t* handle = arena != nullptr ? ebb_heap_new_in(arena->handle) : ebb_heap_new();
    if (handle == nullptr) {
      fail("a heap can't be made");
      return;
    }
    heaps_.push_back(std::make_unique<Heap>(Heap{handle, actor.world, arena, 0, false}));
  });
}

bool HeapMachine::is_default(const Heap* heap) const {
  return std::any_of(actors_.begin(), actors_.end(), [heap](const Actor& actor) { return actor.default_heap == heap; });
}

HeapMachine::Heap* HeapMachine::main_heap_of(const World* world) {
  for (auto& heap : heaps_) {
    if (heap->is_main && heap->world == world) return heap.get();
  }
  return nullptr;
}

void HeapMachine::forget_blocks_of(const Heap* heap) {
  std::erase_if(blocks_, [heap](const auto& entry) { return entry.second.heap == heap; });
}

void HeapMachine::forget_heap(Heap* heap) {
  std::erase_if(heaps_, [heap](const auto& each) { return each.get() == heap; });
}

void HeapMachine::end_heap() {
  Heap* heap = any_heap();
  if (heap->is_main || is_default(heap)) return;
  Actor& actor = any_actor();
  bool deletes = choose_(2) == 0;
  actor.parked = false;
  act(actor, [&] {
    bool ended = deletes ? ebb_heap_delete(heap->handle) : ebb_heap_destroy(heap->handle);
    if (!ended) fail("a heap can't end");
  });
  if (deletes) {
    Heap* target = main_heap_of(heap->world);
    for (auto& [p, block] : blocks_) {
      if (block.heap == heap) block.heap = target;
    }
  } else {
    forget_blocks_of(heap);
  }
  forget_heap(heap);
}

void HeapMachine::set_default() {
  Actor& actor = any_actor();
  Heap* heap = any_heap();
  actor.parked = false;
  act(actor, [&] {
    if (ebb_heap_set_default(heap->handle) != actor.default_heap->handle) fail("another heap was the default");
  });
  actor.default_heap = heap;
}

void HeapMachine::set_limit() {
  Heap* heap = any_heap();
  if (heap->handle == worlds_[0]->main) return;
  heap->limit = choose_(2) == 0 ? 0 : size_t{choose_(1000)} * KiB + 1;
  if (!ebb_heap_set_limit(heap->handle, heap->limit, nullptr, nullptr)) fail("a limit can't be set");
}

// ---- threads ----

void HeapMachine::collect() {
  Actor& actor = any_actor();
  Heap* heap = any_heap();
  uint32_t kind = choose_(8);
  actor.parked = false;
  act(actor, [&] { kind == 0 ? ebb_collect(true) : kind < 4 ? ebb_collect(false) : ebb_heap_collect(heap->handle, false); });
}

void HeapMachine::park() {
  Actor& actor = any_actor();
  act(actor, [&] { actor.parked ? ebb_park_end() : static_cast<void>(ebb_park_begin()); });
  actor.parked = !actor.parked;
}

void HeapMachine::exit_thread() {
  Actor& actor = any_actor();
  actor = {std::make_unique<Worker>(), worlds_[0].get(), heaps_[0].get(), false};
}

// ---- sub-processes and arenas ----

void HeapMachine::make_world() {
  if (worlds_.size() >= kWorldsMost) return end_world();
  ebb_subproc_t* handle = ebb_subproc_new();
  if (handle == nullptr) {
    fail("a sub-process can't be made");
    return;
  }
  auto world = std::make_unique<World>(World{handle, nullptr});
  act(actors_[0], [&] {
    ebb_subproc_t* before = ebb_subproc_current();
    ebb_subproc_enter(handle);
    world->main = ebb_heap_main();
    ebb_subproc_enter(before);
    ebb_heap_set_default(actors_[0].default_heap->handle);
  });
  actors_[0].parked = false;
  heaps_.push_back(std::make_unique<Heap>(Heap{world->main, world.get(), nullptr, 0, true}));
  worlds_.push_back(std::move(world));
}

void HeapMachine::enter_world() {
  Actor& actor = any_actor();
  World* world = worlds_[choose_(static_cast<uint32_t>(worlds_.size()))].get();
  actor.parked = false;
  act(actor, [&] {
    if (!ebb_subproc_enter(world->handle) || ebb_subproc_current() != world->handle) fail("a sub-process can't be entered");
    if (ebb_heap_main() != world->main) fail("a sub-process has another main heap");
  });
  actor.world = world;
  actor.default_heap = main_heap_of(world);
}

void HeapMachine::end_world() {
  if (worlds_.size() < 2) return;
  World* world = worlds_[1 + choose_(static_cast<uint32_t>(worlds_.size() - 1))].get();
  for (Actor& actor : actors_) {
    if (actor.world == world || actor.default_heap->world == world) return;
  }
  Actor& actor = any_actor();
  actor.parked = false;
  act(actor, [&] {
    if (!ebb_subproc_destroy(world->handle)) fail("a sub-process can't end");
  });
  for (size_t i = heaps_.size(); i-- > 0;) {
    if (heaps_[i]->world != world) continue;
    forget_blocks_of(heaps_[i].get());
    heaps_.erase(heaps_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::erase_if(arenas_, [&](auto& arena) {
    if (arena->world != world) return false;
    if (ebb_arena_area(arena->handle, nullptr) != nullptr) fail("an arena outlives its sub-process");
    if (arena->mapping != nullptr) munmap(arena->mapping, arena->bytes);
    return true;
  });
  std::erase_if(worlds_, [world](const auto& each) { return each.get() == world; });
}

void HeapMachine::make_arena() {
  if (arenas_.size() >= kArenasMost) return release_arena();
  Actor& actor = any_actor();
  size_t bytes = MiB + choose_(512) * 4096;
  bool adopts = choose_(2) == 0;
  unsigned flags = EBB_ARENA_EXCLUSIVE | (choose_(2) == 0 ? EBB_ARENA_PINNED : 0u);
  auto arena = std::make_unique<Arena>(Arena{nullptr, actor.world, nullptr, bytes});
  if (adopts) {
    unsigned kind = choose_(3);
    int protection = kind == 0 ? PROT_NONE : PROT_READ | PROT_WRITE;
    size_t skew = size_t{choose_(16)} * 4096;
    arena->bytes += skew;
    arena->mapping = mmap(nullptr, arena->bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (kind != 0) flags |= EBB_ARENA_COMMITTED;
    if (kind == 1) memset(arena->mapping, 0xA5, arena->bytes);
    if (kind != 1) flags |= EBB_ARENA_ZERO;
    act(actor, [&] {
      if (!ebb_arena_adopt(static_cast<char*>(arena->mapping) + skew, bytes, flags, &arena->handle)) fail("memory can't be adopted");
    });
  } else {
    act(actor, [&] {
      if (!ebb_arena_reserve(bytes, flags, &arena->handle)) fail("an arena can't be reserved");
    });
  }
  arenas_.push_back(std::move(arena));
}

void HeapMachine::release_arena() {
  if (arenas_.empty()) return;
  size_t index = choose_(static_cast<uint32_t>(arenas_.size()));
  Arena* arena = arenas_[index].get();
  bool has_heaps = std::any_of(heaps_.begin(), heaps_.end(), [&](const auto& heap) { return heap->arena == arena; });
  bool has_blocks = std::any_of(blocks_.begin(), blocks_.end(), [&](const auto& entry) {
    return ebb_arena_contains(arena->handle, entry.first);
  });
  bool released = ebb_arena_release(arena->handle);
  if (released && (has_heaps || has_blocks)) fail("an arena in use was released");
  // Pages of deleted heaps may be kept for a while by threads that have not come by.
  if (!released) return;
  if (arena->mapping != nullptr) munmap(arena->mapping, arena->bytes);
  arenas_.erase(arenas_.begin() + static_cast<std::ptrdiff_t>(index));
}

// ---- comparing ----

bool HeapMachine::compare_heap(Heap* heap) {
  struct Count {
    HeapMachine* machine;
    Heap* heap;
    size_t seen = 0;
    bool right = true;
  } count{this, heap};
  auto visit = [](ebb_heap_t*, const ebb_heap_area_t*, void* block, void* arg) {
    Count* to = static_cast<Count*>(arg);
    if (block == nullptr) return true;
    auto found = to->machine->blocks_.find(static_cast<unsigned char*>(block));
    to->right &= found != to->machine->blocks_.end() && found->second.heap == to->heap;
    ++to->seen;
    return to->right;
  };
  ebb_heap_visit(heap->handle, visit, &count);
  size_t expected = 0;
  for (const auto& [p, block] : blocks_) expected += block.heap == heap;
  if (!count.right) return fail("a visit shows a block that is not live");
  if (count.seen != expected) {
    return fail("a visit shows " + std::to_string(count.seen) + " blocks of " + std::to_string(expected));
  }
  return true;
}

bool HeapMachine::compare() {
  for (const auto& [p, block] : blocks_) {
    if (!holds(p, block.size, block.value)) return fail("a block lost its contents");
    if (ebb_heap_of(p) != block.heap->handle) return fail("a block is in another heap");
    if (block.heap->arena != nullptr && !ebb_arena_contains(block.heap->arena->handle, p)) {
      return fail("a block is outside its heap's arena");
    }
  }
  if (++steps_ % 4 != 0) return true;
  for (const auto& heap : heaps_) {
    // The process's main heap may hold blocks of other tests.
    if (heap->handle != worlds_[0]->main && !compare_heap(heap.get())) return false;
  }
  for (ebb::Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
    if (!arena->is_valid()) return fail("an arena is not valid");
  }
  return true;
}

}  // namespace ebb::test
