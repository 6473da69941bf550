// Drives heaps, sub-processes and arenas from a few threads by random operations beside a shadow model, and compares
// them after each step. Used by the randomised test, with a seeded generator, and by the fuzzer, with its input.
//
// Threads act one at a time, so a history is repeatable; what they leave behind (lists, owned pages, parks) is what
// the next step meets. The model knows each block's heap, size and contents. Only legal calls are made, all of which
// must succeed, but for allocations that a limit or a full arena may refuse.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ebb/ebb.h"
#include "heaps/worker.h"

namespace ebb::test {

class HeapMachine {
 public:
  // Gives a number below `bound`, which is at least 1.
  using Choose = std::function<uint32_t(uint32_t bound)>;

  explicit HeapMachine(Choose choose);
  ~HeapMachine();

  // Does one operation and compares. False when the allocator and the model differ: error() says how.
  bool step();
  const std::string& error() const { return error_; }

 private:
  struct World {
    ebb_subproc_t* handle;  // null: the process's own
    ebb_heap_t* main;
  };
  struct Arena {
    ebb_arena_t handle;
    World* world;
    void* mapping;  // adopted; null: reserved
    size_t bytes;
  };
  struct Heap {
    ebb_heap_t* handle;
    World* world;
    Arena* arena;  // null: the world's
    size_t limit;  // 0: none
    bool is_main;
  };
  struct Block {
    Heap* heap;
    size_t size;
    unsigned char value;
  };
  struct Actor {
    std::unique_ptr<Worker> worker;
    World* world;
    Heap* default_heap;
    bool parked;
  };

  // operations
  void allocate();
  void allocate_by_default();
  void resize();
  void free_some();
  void free_most_of_a_heap();
  void make_heap();
  void end_heap();
  void set_default();
  void set_limit();
  void collect();
  void park();
  void exit_thread();
  void make_world();
  void enter_world();
  void end_world();
  void make_arena();
  void release_arena();

  bool fail(const std::string& what);
  void act(Actor& actor, const std::function<void()>& what);
  Actor& any_actor() { return actors_[choose_(static_cast<uint32_t>(actors_.size()))]; }
  Heap* any_heap() { return heaps_[choose_(static_cast<uint32_t>(heaps_.size()))].get(); }
  std::map<unsigned char*, Block>::iterator any_block();
  size_t any_size();
  void add_block(Heap* heap, void* p, size_t size, bool zeroed);
  bool is_default(const Heap* heap) const;
  Heap* main_heap_of(const World* world);
  void forget_heap(Heap* heap);
  void forget_blocks_of(const Heap* heap);
  bool compare();
  bool compare_heap(Heap* heap);

  Choose choose_;
  std::vector<std::unique_ptr<World>> worlds_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<std::unique_ptr<Heap>> heaps_;
  std::map<unsigned char*, Block> blocks_;
  std::vector<Actor> actors_;
  unsigned next_value_ = 1;
  unsigned steps_ = 0;
  std::string error_;
};

}  // namespace ebb::test
