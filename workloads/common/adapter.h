// What the active allocator offers beyond malloc and free.
//
// Found once by the session, read-only afterwards, usable from every thread. The active allocator is the
// object that provides `malloc`; nothing is linked, and a symbol counts only when that same allocator
// defines it, because several allocators may be loaded at once. Where it has no such call, the adapter
// does what a user of that allocator would do, and the start event says `emulated`:
//   heap     allocates with malloc; destroying frees each block that the workload lists, deleting does nothing
//   collect  nothing: such a program has no way to ask
//   park     nothing: it just blocks
#pragma once

#include <cstddef>
#include <cstdlib>
#include <span>

namespace tidemark {

// The capabilities that a workload asks for; the others are reported as `unused`.
struct Uses {
  bool heap = false;
  // Heaps whose blocks may outlive them: an allocator that can only destroy a heap counts as one without.
  bool heap_delete = false;
  bool collect = false;
  bool park = false;
};

// Functions are null where the allocator has none.
struct Adapter {
  const char* name = "none";
  const char* malloc_object = "";

  void* (*heap_new_native)() = nullptr;
  void* (*heap_malloc_native)(void* heap, std::size_t size) = nullptr;
  void (*heap_destroy_native)(void* heap) = nullptr;
  void (*heap_delete_native)(void* heap) = nullptr;
  void (*collect_call)(bool force) = nullptr;
  bool (*park_begin_native)() = nullptr;
  void (*park_end_native)() = nullptr;

  bool heap_native() const { return heap_new_native != nullptr; }
  bool collect_native() const { return collect_call != nullptr; }
  bool park_native() const { return park_begin_native != nullptr; }

  void* heap_new() const { return heap_native() ? heap_new_native() : nullptr; }

  void* heap_malloc(void* heap, std::size_t size) const {
    return heap_native() ? heap_malloc_native(heap, size) : std::malloc(size);
  }

  // `live` are all blocks of the heap; each of them is gone afterwards.
  void heap_destroy(void* heap, std::span<void* const> live) const {
    if (heap_native()) {
      heap_destroy_native(heap);
      return;
    }
    for (void* block : live) std::free(block);
  }

  // The heap is gone, its live blocks stay valid and are freed one by one.
  void heap_delete(void* heap) const {
    if (heap_delete_native != nullptr) heap_delete_native(heap);
  }

  void drop_heaps() {
    heap_new_native = nullptr;
    heap_malloc_native = nullptr;
    heap_destroy_native = nullptr;
    heap_delete_native = nullptr;
  }

  // Gives memory back now, as far as the allocator can; `force` asks for all that is free.
  void collect(bool force) const {
    if (collect_native()) collect_call(force);
  }

  // True when someone else may sweep the thread's heaps until park_end.
  bool park_begin() const { return park_native() && park_begin_native(); }
  void park_end() const {
    if (park_native()) park_end_native();
  }
};

Adapter find_adapter();

}  // namespace tidemark
