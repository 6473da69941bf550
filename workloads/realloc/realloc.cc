// realloc: blocks that grow and shrink.
//
// Four shapes: `random` resizes one of many blocks to a random size, half the time larger; `vector`
// grows one block by eight bytes at a time; `doubling` doubles a block from 4 KiB up, again and again;
// `shrink` cuts large, touched blocks down to a sixty-fourth and keeps them. The bytes that survive a resize are
// checked each time.
#include <cstdint>
#include <cstdlib>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/random.h"
#include "common/session.h"
#include "common/settle.h"
#include "common/table.h"

namespace {

using namespace tidemark;

constexpr const char* kShapes[] = {"random", "vector", "doubling", "shrink"};
enum Shape : std::uint64_t { kRandom, kVector, kDoubling, kShrink };

constexpr std::size_t kVectorStepBytes = 8;
constexpr std::size_t kDoublingStartBytes = 4 * kKiB;
constexpr std::size_t kShrinkFactor = 64;

struct Options {
  std::uint64_t shape = kRandom;
  std::uint64_t iterations = 100'000;
  std::uint64_t repeats = 1;
  std::uint64_t slots = 64;
  std::uint64_t size_max_kib = 256;
  std::uint64_t settle_ms = 200;
  std::uint64_t seed = 1;
};

void* must_realloc(void* block, std::size_t size) {
  void* moved = std::realloc(block, size);
  if (moved == nullptr) fail_broken("the allocator refuses to resize a block");
  return moved;
}

// The block is stamped before and after. What must survive is the first word and the last one of what both
// sizes have in common, which for a block that shrinks gets a mark of its own.
void resize(Block& block, std::size_t size) {
  check_stamp(block.address, block.size, block.tag);
  const std::size_t common = size < block.size ? size : block.size;
  const std::size_t last = common - sizeof block.tag;
  store_word(block.address, last, ~block.tag);
  block.address = must_realloc(block.address, size);
  check_word(block.address, size, 0, block.tag);
  check_word(block.address, size, last, ~block.tag);
  block.size = size;
  stamp(block.address, size, block.tag);
}

// Sizes spread evenly over the powers of two, as those of strings and vectors do.
std::size_t random_size(Random& random, const Options& options) {
  const std::uint64_t limit = options.size_max_kib * kKiB;
  std::uint64_t octave = kMinStampedBytes;
  for (std::uint64_t steps = random.below(64 - static_cast<std::uint64_t>(__builtin_clzll(limit / octave))); steps != 0;
       --steps) {
    octave *= 2;
  }
  const std::uint64_t size = octave + random.below(octave);
  return size < limit ? size : limit;
}

std::uint64_t resize_randomly(const Options& options, Checksum& checksum, Table<Block>& slots) {
  Random random(options.seed);
  for (std::uint64_t step = 0; step < options.iterations; ++step) {
    Block& block = slots[random.below(slots.size())];
    const std::size_t size = random_size(random, options);
    if (block.address == nullptr) {
      block = make_stamped(size, random.next());
    } else {
      resize(block, size);
    }
    checksum.add(block.tag ^ block.size);
  }
  for (Block& block : slots) {
    if (block.address != nullptr) free_stamped(block);
  }
  return options.iterations;
}

std::uint64_t grow_vector(const Options& options, Checksum& checksum) {
  const std::size_t limit = options.size_max_kib * kKiB;
  std::uint64_t operations = 0;
  for (std::uint64_t repeat = 0; repeat < options.repeats; ++repeat) {
    void* vector = nullptr;
    for (std::size_t size = kVectorStepBytes; size <= limit; size += kVectorStepBytes) {
      vector = must_realloc(vector, size);
      store_word(vector, size - kVectorStepBytes, mix(size));
      ++operations;
    }
    for (std::size_t size = kVectorStepBytes; size <= limit; size += kVectorStepBytes) {
      check_word(vector, limit, size - kVectorStepBytes, mix(size));
    }
    checksum.add(limit ^ repeat);
    std::free(vector);
  }
  return operations;
}

std::uint64_t double_up(const Options& options, Checksum& checksum, Session& session) {
  const std::size_t limit = options.size_max_kib * kKiB;
  std::uint64_t operations = 0;
  for (std::uint64_t repeat = 0; repeat < options.repeats; ++repeat) {
    Block block = {must_malloc(kDoublingStartBytes), kDoublingStartBytes, mix(repeat)};
    touch(block.address, block.size, block.tag);
    for (; block.size * 2 <= limit; ++operations) {
      const std::size_t half = block.size;
      block.size *= 2;
      block.address = must_realloc(block.address, block.size);
      check_touch(block.address, half, block.tag);
      touch(block.address, block.size, block.tag);
      checksum.add(block.tag ^ block.size);
    }
    session.checkpoint(repeat, "peak", block.size);
    std::free(block.address);
  }
  return operations;
}

// The tails of all blocks are free afterwards; `shrunk` is looked at when a purge has had its time.
std::uint64_t shrink(const Options& options, Checksum& checksum, Table<Block>& slots, Session& session) {
  const std::size_t size = options.size_max_kib * kKiB;
  const std::size_t kept = size / kShrinkFactor;
  for (Block& block : slots) {
    const std::uint64_t tag = mix(static_cast<std::uint64_t>(&block - slots.begin()));
    block = {must_malloc(size), size, tag};
    touch(block.address, size, tag);
  }
  session.checkpoint(0, "peak", size * slots.size());
  for (Block& block : slots) {
    block.address = must_realloc(block.address, kept);
    block.size = kept;
  }
  settle(options.settle_ms);
  session.checkpoint(0, "shrunk", kept * slots.size());
  for (Block& block : slots) {
    check_touch(block.address, kept, block.tag);
    checksum.add(block.tag ^ kept);
    std::free(block.address);
  }
  return slots.size();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      choice("--shape", options.shape, kShapes, "how blocks are resized"),
      integer("--iterations", options.iterations, 1, 10'000'000'000, "resizes of random"),
      integer("--repeats", options.repeats, 1, 1'000'000, "times that vector and doubling are done"),
      integer("--slots", options.slots, 1, 1 << 20, "blocks of random and shrink"),
      integer("--size-max-kib", options.size_max_kib, 4, 1 << 22, "largest size in KiB"),
      integer("--settle-ms", options.settle_ms, 0, 60'000, "least milliseconds of rest after shrinking; 0 for none"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Grows and shrinks blocks.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD);
  Table<Block> slots(options.slots);
  Checksum checksum;
  std::uint64_t operations = 0;
  session.begin_region();
  switch (options.shape) {
    case kVector:
      operations = grow_vector(options, checksum);
      break;
    case kDoubling:
      operations = double_up(options, checksum, session);
      break;
    case kShrink:
      operations = shrink(options, checksum, slots, session);
      break;
    default:
      operations = resize_randomly(options, checksum, slots);
      break;
  }
  session.end_region();
  session.checkpoint(0, "freed", 0);
  return session.end(checksum.value(), operations);
}
