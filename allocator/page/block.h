// A free block: its first word links it to the next one of its list, which is always a block of the same page.
//
// In the secure build the link is encoded with a key of the process and sealed by a second word. Reading it checks the
// seal, so a free block that was written to is found before it, or what it would lead to, is handed out. Who can read
// free blocks can work the keys out: this is against stray writes, and writers that are blind.
//
// Thread safety: that of the list. A block on a list is written by nobody.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/compiler.h"
#include "base/units.h"

namespace ebb {

struct Block;

#if defined(EBB_SECURE)

struct LinkKeys {
  uintptr_t mask;
  uintptr_t seal;
  uintptr_t factor;  // odd
};
EBB_HIDDEN extern LinkKeys g_link_keys;

// The free block was written to after it was freed, or the list leads to a live one. Ends the process, or returns where
// the option asks for that; then what is left of the list is given up. Defined by heap/misuse.cc.
EBB_COLD void report_damaged_block(const void* block);

class Link {
 public:
  Link() = delete;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  operator Block*() const {
    uintptr_t next = word_ ^ mask();
    if (EBB_UNLIKELY(seal_of(next) != seal_)) return damaged();
    return reinterpret_cast<Block*>(next);
  }
  Link& operator=(Block* next) {
    word_ = reinterpret_cast<uintptr_t>(next) ^ mask();
    seal_ = seal_of(reinterpret_cast<uintptr_t>(next));
    return *this;
  }
  void erase() { word_ = seal_ = 0; }

 private:
  // Both depend on the place: a link that is copied to another block is none.
  uintptr_t place() const { return reinterpret_cast<uintptr_t>(this) << 16; }
  uintptr_t mask() const { return g_link_keys.mask ^ place(); }
  uintptr_t seal_of(uintptr_t next) const { return (next ^ g_link_keys.seal) * g_link_keys.factor + place(); }
  EBB_COLD Block* damaged() const {
    report_damaged_block(this);
    return nullptr;
  }

  uintptr_t word_;
  uintptr_t seal_;
};

// A bit for each kBlockAlign bytes of a slice: set where a block begins that the program has.
struct LiveBits {
  std::atomic<uint64_t> words[kSliceBytes / kBlockAlign / 64];
};

// Draws the keys; before the first list is made.
void choose_link_keys();

// A number that follows from the place and the keys.
inline uint64_t unforeseen_number(const void* place) {
  uint64_t product = (reinterpret_cast<uintptr_t>(place) ^ g_link_keys.seal) * g_link_keys.factor;
  return product ^ product >> 31;
}

#else

using Link = Block*;
struct LiveBits {};
inline void choose_link_keys() {}
inline uint64_t unforeseen_number(const void*) { return 0; }

#endif

struct Block {
  Link next;
};
static_assert(sizeof(Block) <= kBlockAlign, "the smallest block holds it");

}  // namespace ebb
