// reload: a table is built a second time beside the first, again and again, and a few blocks survive.
//
// Like a service that reloads its configuration or index: a steady heap stays; every round builds a copy
// of small mixed blocks, keeps one in `--survive-every` and frees the rest. The survivors stand alone on
// pages that were full. Live bytes grow by the survivors only; resident memory should follow them, and
// not grow by a page for each.
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/random.h"
#include "common/resident.h"
#include "common/session.h"
#include "common/settle.h"
#include "common/table.h"

namespace {

using namespace tidemark;

constexpr std::size_t kSizeMin = 16;
constexpr std::size_t kSizeMax = 512;

struct Options {
  std::uint64_t steady_mib = 300;
  std::uint64_t table_mib = 300;
  std::uint64_t survive_every = 500;
  std::uint64_t rounds = 20;
  std::uint64_t settle_ms = 150;
  std::uint64_t seed = 1;
};

std::size_t block_count(std::uint64_t mib) { return mib * kMiB / ((kSizeMin + kSizeMax) / 2); }

class Reload {
 public:
  Reload(Session& session, const Options& options)
      : session_(session),
        options_(options),
        random_(options.seed),
        steady_(block_count(options.steady_mib)),
        table_(block_count(options.table_mib)),
        survivors_(options.rounds * (table_.size() / options.survive_every + 1)) {}

  Checksum run() {
    for (Block& block : steady_) acquire(block);
    session_.begin_region();
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      for (Block& block : table_) acquire(block);
      session_.checkpoint(round, "peak", live_bytes_);
      for (std::size_t index = 0; index < table_.size(); ++index) {
        if (index % options_.survive_every == 0) {
          survivors_[survivor_count_++] = table_[index];
        } else {
          release(table_[index]);
        }
      }
      settle(options_.settle_ms);
      session_.checkpoint(round, "round", live_bytes_);
    }
    session_.end_region();
    for (Block& block : survivors_.part(0, survivor_count_)) release(block);
    for (Block& block : steady_) release(block);
    return checksum_;
  }

  std::uint64_t operations() const { return options_.rounds * table_.size(); }

 private:
  void acquire(Block& block) {
    block = make_filled(random_.between(kSizeMin, kSizeMax), random_.next());
    live_bytes_ += block.size;
  }

  void release(Block& block) {
    checksum_.add(block.tag ^ block.size);
    live_bytes_ -= block.size;
    free_filled(block);
  }

  Session& session_;
  const Options options_;
  Random random_;
  Table<Block> steady_;
  Table<Block> table_;
  Table<Block> survivors_;
  std::size_t survivor_count_ = 0;
  Checksum checksum_;
  std::uint64_t live_bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--steady-mib", options.steady_mib, 1, 1 << 20, "MiB that stay"),
      integer("--table-mib", options.table_mib, 1, 1 << 20, "MiB that each round builds"),
      integer("--survive-every", options.survive_every, 1, 1'000'000, "one block in so many survives its round"),
      integer("--rounds", options.rounds, 1, 10'000, "rounds"),
      integer("--settle-ms", options.settle_ms, 0, 60'000,
              "least milliseconds of rest before a round's point; 0 for none"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Builds a table again and again; a few blocks survive.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD);
  Reload workload(session, options);
  const Checksum checksum = workload.run();
  return session.end(checksum.value(), workload.operations());
}
