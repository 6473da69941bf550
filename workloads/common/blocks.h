// Blocks that a workload holds: allocation that cannot fail silently, contents by tag.
//
// Called by every workload, from any thread; a Block belongs to whoever holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/exits.h"
#include "common/pattern.h"

namespace tidemark {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * 1024;
// Smallest block that carries a stamp at both ends.
constexpr std::size_t kMinStampedBytes = 16;

// malloc, or the end of the process with a sentence.
inline void* must_malloc(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) [[unlikely]]
    fail_broken("the allocator returned no memory for a small request");
  return block;
}

struct Block {
  void* address;
  std::size_t size;
  std::uint64_t tag;
};

// A block with a stamp at both ends; `size` is at least kMinStampedBytes.
inline Block make_stamped(std::size_t size, std::uint64_t tag) {
  Block block{must_malloc(size), size, tag};
  stamp(block.address, size, tag);
  return block;
}

// A block whose every byte is written.
inline Block make_filled(std::size_t size, std::uint64_t tag) {
  Block block{must_malloc(size), size, tag};
  fill(block.address, size, tag);
  return block;
}

inline void free_stamped(Block& block) {
  check_stamp(block.address, block.size, block.tag);
  std::free(block.address);
  block.address = nullptr;
}

inline void free_filled(Block& block) {
  check(block.address, block.size, block.tag);
  std::free(block.address);
  block.address = nullptr;
}

}  // namespace tidemark
