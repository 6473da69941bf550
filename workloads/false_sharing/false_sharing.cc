// false_sharing: blocks of different threads on one cache line.
//
// Threads write to small blocks of their own as fast as they can, and replace them now and then. Two
// shapes: `active`, where each thread allocates its own blocks; `passive`, where it starts with a block
// that the main thread allocated beside the others' and frees it, so that an allocator which hands freed
// memory straight back makes the sharing last. `lines_shared` counts, at fixed points, how many threads'
// blocks stand on a line that another thread's block touches as well.
#include <atomic>
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/random.h"
#include "common/session.h"
#include "common/table.h"
#include "common/threads.h"

namespace {

using namespace tidemark;

constexpr const char* kShapes[] = {"active", "passive"};
enum Shape : std::uint64_t { kActive, kPassive };

constexpr std::size_t kLineBytes = 64;

struct Options {
  std::uint64_t shape = kActive;
  std::uint64_t threads = 2;
  std::uint64_t rounds = 100;
  std::uint64_t writes = 10'000;
  std::uint64_t size = 16;
  std::uint64_t seed = 1;
};

class FalseSharing {
 public:
  FalseSharing(Session& session, const Options& options)
      : session_(session),
        options_(options),
        blocks_(options.threads),
        sums_(options.threads),
        barrier_(options.threads + 1) {}

  Checksum run() {
    if (options_.shape == kPassive) {
      // Neighbours on purpose: this sharing is the program's own doing and is not counted.
      for (std::size_t index = 0; index < options_.threads; ++index) {
        blocks_[index] = make_stamped(options_.size, mix(options_.seed ^ index));
      }
    }
    auto body = [this](std::size_t index) { write_rounds(index); };
    team_.start(options_.threads, body);
    session_.begin_region();
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      barrier_.meet();  // every thread holds a block of its own
      lines_shared_ += count_shared();
      barrier_.meet();
      barrier_.meet();  // all have written
    }
    session_.end_region();
    team_.join();
    session_.checkpoint(0, "round", 0, {{"lines_shared", static_cast<double>(lines_shared_)}});
    Checksum all;
    for (const Checksum& sum : sums_) all.merge(sum);
    return all;
  }

  std::uint64_t lines_shared() const { return lines_shared_; }

 private:
  void write_rounds(std::size_t index) {
    Random random(options_.seed, index);
    Block& block = blocks_[index];
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      {
        const ThreadRegion region;
        if (block.address != nullptr) {
          sums_[index].add(block.tag);
          free_stamped(block);
        }
        block = make_stamped(options_.size, random.next());
      }
      barrier_.meet();
      barrier_.meet();
      {
        const ThreadRegion region;
        hammer(block);
      }
      barrier_.meet();
    }
    sums_[index].add(block.tag);
    free_stamped(block);
  }

  // Stores that the compiler may not drop: each is a turn of the line between the processors.
  void hammer(Block& block) const {
    volatile std::uint64_t* word = static_cast<volatile std::uint64_t*>(block.address);
    for (std::uint64_t write = 0; write < options_.writes; ++write) *word = block.tag + write;
    *word = block.tag;
  }

  std::uint64_t count_shared() {
    std::uint64_t shared = 0;
    for (const Block& one : blocks_) {
      for (const Block& other : blocks_) {
        if (&one != &other && share_a_line(one, other)) {
          ++shared;
          break;
        }
      }
    }
    return shared;
  }

  static bool share_a_line(const Block& one, const Block& other) {
    return first_line(one) <= last_line(other) && first_line(other) <= last_line(one);
  }
  static std::uintptr_t first_line(const Block& block) {
    return reinterpret_cast<std::uintptr_t>(block.address) / kLineBytes;
  }
  static std::uintptr_t last_line(const Block& block) {
    return (reinterpret_cast<std::uintptr_t>(block.address) + block.size - 1) / kLineBytes;
  }

  Session& session_;
  const Options options_;
  Table<Block> blocks_;
  Table<Checksum> sums_;
  Barrier barrier_;
  Team team_;
  std::uint64_t lines_shared_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      choice("--shape", options.shape, kShapes, "whose block a thread begins with"),
      integer("--threads", options.threads, 2, 64, "threads that write"),
      integer("--rounds", options.rounds, 1, 1'000'000, "blocks that each thread gets"),
      integer("--writes", options.writes, 0, 1'000'000'000, "writes to each block"),
      integer("--size", options.size, kMinStampedBytes, 1 << 20, "size of a block in bytes"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Threads write to small blocks of their own.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD);
  FalseSharing workload(session, options);
  const Checksum checksum = workload.run();
  return session.end(checksum.value(), options.threads * options.rounds,
                     {{"lines_shared", static_cast<double>(workload.lines_shared())}});
}
