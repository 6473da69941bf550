#include "worker.h"

#include <cstring>

#include "ebb/ebb.h"

namespace ebb::test {

namespace {

// Contents: words that depend on the block's seed and on where they stand, so that a block that overlaps another,
// or was copied short or shifted, is told. Compared and written eight bytes at a time; the rest byte by byte.
uint64_t word_at(uint32_t seed, size_t index) { return (uint64_t{seed} + index + 1) * 0x9E3779B97F4A7C15u; }

}  // namespace

Held Exchange::swap(size_t slot, const Held& block) {
  std::lock_guard guard(mutex_);
  Held other = slots_[slot % kSlots];
  slots_[slot % kSlots] = block;
  return other;
}

std::vector<Held> Exchange::drain() {
  std::lock_guard guard(mutex_);
  std::vector<Held> left;
  for (Held& slot : slots_) {
    if (slot.p != nullptr) left.push_back(slot);
    slot = {};
  }
  return left;
}

bool Worker::step() {
  ++operations_;
  if (held_.empty() || (held_bytes_ < limits_.live_bytes && held_.size() < 6000 && below(16) < 9)) return allocate();
  size_t index = below(held_.size());
  switch (below(8)) {
    case 0: case 1:
      return reallocate(held_[index]);
    case 2: case 3:
      return hand_over(index);
    default: {
      Held block = held_[index];
      forget(index);
      return check_and_free(block);
    }
  }
}

bool Worker::finish() {
  bool good = true;
  for (Held& block : held_) good = check_and_free(block) && good;
  held_.clear();
  held_bytes_ = 0;
  return good;
}

// Mostly small, all magnitudes.
size_t Worker::any_size() {
  switch (below(32)) {
    case 0: return below(16);
    case 1: case 2: return below(64 << 10);
    case 3: return below(8) == 0 ? below(1 << 20) : below(32 << 10);
    case 4: return below(64) == 0 ? below(limits_.huge_bytes) : below(16 << 10);
    case 5: case 6: case 7: case 8: return below(4096);
    default: return below(512);
  }
}

bool Worker::allocate() {
  Held block;
  block.size = any_size();
  block.seed = static_cast<uint32_t>(random_());
  bool zero = false;
  switch (below(8)) {
    case 0:
      // Up to 2 MiB, seldom more than a page.
      block.alignment = size_t{16} << below(below(4) == 0 ? 18 : 9);
      block.p = static_cast<unsigned char*>(ebb_aligned_alloc(block.alignment, block.size));
      break;
    case 1:
      zero = true;
      block.p = static_cast<unsigned char*>(ebb_calloc(1, block.size));
      break;
    default:
      block.p = static_cast<unsigned char*>(ebb_malloc(block.size));
  }
  if (block.p == nullptr) return fail("no memory", block);
  if (!check_new(block, zero)) return false;
  fill(block);
  held_.push_back(block);
  held_bytes_ += block.size;
  return true;
}

bool Worker::check_new(const Held& block, bool zero) {
  if (reinterpret_cast<uintptr_t>(block.p) % block.alignment != 0) return fail("not aligned", block);
  if (ebb_usable_size(block.p) < block.size) return fail("smaller than asked for", block);
  if (!zero || block.size == 0) return true;
  bool is_zero = block.p[0] == 0 && memcmp(block.p, block.p + 1, block.size - 1) == 0;
  return is_zero || fail("calloc gave memory that is not zero", block);
}

bool Worker::reallocate(Held& block) {
  if (!is_intact(block, block.size)) return fail("contents were changed before realloc", block);
  size_t size = below(3) == 0 ? block.size + block.size / 4 + 1 : any_size() + 1;
  bool keeps_alignment = block.alignment > 16;
  void* p = keeps_alignment ? ebb_aligned_realloc(block.p, block.alignment, size) : ebb_realloc(block.p, size);
  if (p == nullptr) return fail("no memory for realloc", block);
  held_bytes_ += size - block.size;
  block.p = static_cast<unsigned char*>(p);
  // What was shortened may end in the middle of an old word, so its whole words are compared.
  bool shortened = size < block.size;
  bool intact = is_intact(block, shortened ? size / 8 * 8 : block.size);
  block.size = size;
  if (!intact) return fail("realloc lost contents", block);
  if (!check_new(block, false)) return false;
  block.seed = static_cast<uint32_t>(random_());
  fill(block);
  return true;
}

// Another thread will check and free this block; this one takes over what was left there.
bool Worker::hand_over(size_t index) {
  Held block = held_[index];
  forget(index);
  Held other = exchange_.swap(random_(), block);
  return other.p == nullptr || check_and_free(other);
}

void Worker::forget(size_t index) {
  held_bytes_ -= held_[index].size;
  held_[index] = held_.back();
  held_.pop_back();
}

bool Worker::check_and_free(Held& block) {
  if (!is_intact(block, block.size)) return fail("contents were changed", block);
  if (block.size % 3 == 0 && block.alignment > 16) {
    ebb_free_aligned_sized(block.p, block.alignment, block.size);
  } else if (block.size % 3 == 0) {
    ebb_free_sized(block.p, block.size);
  } else {
    ebb_free(block.p);
  }
  return true;
}

bool Worker::fail(const std::string& what, const Held& block) {
  if (!error_.empty()) return false;
  char where[128];
  snprintf(where, sizeof(where), ": block %p of %zu bytes at alignment %zu, seed %u", static_cast<void*>(block.p),
           block.size, block.alignment, block.seed);
  error_ = what + where;
  return false;
}

void Worker::fill(Held& block) {
  size_t words = block.size / 8;
  for (size_t i = 0; i < words; ++i) {
    uint64_t word = word_at(block.seed, i);
    memcpy(block.p + 8 * i, &word, 8);
  }
  for (size_t i = 8 * words; i < block.size; ++i) block.p[i] = static_cast<unsigned char>(word_at(block.seed, i));
}

// The first `size` bytes of what fill() wrote: all of it, or a number of whole words.
bool Worker::is_intact(const Held& block, size_t size) const {
  size_t words = size / 8;
  for (size_t i = 0; i < words; ++i) {
    uint64_t word = word_at(block.seed, i);
    if (memcmp(block.p + 8 * i, &word, 8) != 0) return false;
  }
  for (size_t i = 8 * words; i < size; ++i) {
    if (block.p[i] != static_cast<unsigned char>(word_at(block.seed, i))) return false;
  }
  return true;
}

}  // namespace ebb::test
