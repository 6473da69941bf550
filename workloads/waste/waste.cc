// waste: what a request of each size really takes.
//
// For every size on a ladder of equal steps in each doubling, and for a few sizes just above a round one
// (a payload with a small header), a child process of its own allocates blocks, touches them all and
// compares what it asked for with what is usable and with what became resident. Children, because what
// one size leaves behind would hide what the next one takes. A first block of the size comes before the
// sample: the code that runs for it becomes resident, too, and is no part of what a request takes.
#include <fcntl.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/random.h"
#include "common/resident.h"
#include "common/session.h"
#include "common/table.h"

namespace {

using namespace tidemark;

constexpr std::size_t kBlocksMax = 4096;
// Above these sizes some allocators were seen to take a third more, or twice as much.
constexpr std::size_t kAwkwardSizes[] = {32 * kKiB + 32, 525'460, 32 * kMiB + 8};

struct Options {
  std::uint64_t size_min = kKiB;
  std::uint64_t size_max = 64 * kMiB;
  std::uint64_t steps = 16;
  std::uint64_t sample_kib = 4096;
  std::uint64_t seed = 1;
};

struct Ratios {
  double usable;
  double resident;
};

struct Worst {
  double ratio = 0;
  std::size_t size = 0;

  void see(double seen, std::size_t at) {
    if (seen > ratio) *this = {seen, at};
  }
};

std::size_t sample_count(std::size_t size, const Options& options) {
  const std::size_t count = options.sample_kib * kKiB / size;
  return count < 1 ? 1 : count > kBlocksMax ? kBlocksMax : count;
}

// Returns how many bytes of the block may be used.
std::size_t take(Block& block, std::size_t size, std::uint64_t tag) {
  block = {must_malloc(size), size, tag};
  const std::size_t usable = malloc_usable_size(block.address);
  if (usable < size) fail_corruption("malloc_usable_size is below what was asked for");
  touch(block.address, size, tag);
  return usable;
}

// Runs in the child.
Ratios measure(std::size_t size, const Options& options, Table<Block>& blocks) {
  const std::size_t count = sample_count(size, options);
  Random random(options.seed, size);
  take(blocks[count], size, random.next());
  resident_bytes();
  const std::uint64_t before = resident_bytes();
  std::uint64_t usable = 0;
  for (Block& block : blocks.part(0, count)) usable += take(block, size, random.next());
  const std::uint64_t after = resident_bytes();
  for (Block& block : blocks.part(0, count + 1)) check_touch(block.address, size, block.tag);
  const double asked = static_cast<double>(size) * static_cast<double>(count);
  const double grown = static_cast<double>(after > before ? after - before : 0);
  return {static_cast<double>(usable) / asked, grown / asked};
}

Ratios measure_in_child(std::size_t size, const Options& options, Table<Block>& blocks) {
  int answer[2];
  if (pipe2(answer, O_CLOEXEC) != 0) fail_broken_errno("cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) fail_broken_errno("cannot fork");
  if (child == 0) {
    const Ratios ratios = measure(size, options, blocks);
    _exit(write(answer[1], &ratios, sizeof ratios) == sizeof ratios ? 0 : kExitBroken);
  }
  close(answer[1]);
  Ratios ratios{};
  const ssize_t got = read(answer[0], &ratios, sizeof ratios);
  close(answer[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitCorruption) _exit(kExitCorruption);  // it said why
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || got != sizeof ratios) {
    fail_broken("the child that measures one size did not end well");
  }
  return ratios;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--size-min", options.size_min, kMinStampedBytes, 1 << 30, "smallest size in bytes"),
      integer("--size-max", options.size_max, kMinStampedBytes, 1 << 30, "largest size in bytes"),
      integer("--steps", options.steps, 1, 256, "sizes in each doubling"),
      integer("--sample-kib", options.sample_kib, 1, 1 << 20, "KiB to allocate of each size, at least one block"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of what is written"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Compares requests with what they take.", table, argc, argv);
  if (options.size_max < options.size_min) fail_usage("--size-max must not be below --size-min");
  Session session(TIDEMARK_WORKLOAD);
  Table<Block> blocks(kBlocksMax + 1);
  Worst usable;
  Worst resident;
  Checksum checksum;
  std::uint64_t operations = 0;
  const auto look = [&](std::size_t size) {
    const Ratios ratios = measure_in_child(size, options, blocks);
    usable.see(ratios.usable, size);
    resident.see(ratios.resident, size);
    checksum.add(size);
    operations += sample_count(size, options);
  };
  for (std::size_t octave = options.size_min; octave <= options.size_max; octave *= 2) {
    for (std::uint64_t step = 0; step < options.steps; ++step) {
      // One byte above the step: the first size that no longer fits the class below.
      const std::size_t size = octave + octave * step / options.steps + 1;
      if (size <= options.size_max) look(size);
    }
  }
  for (const std::size_t size : kAwkwardSizes) {
    if (size >= options.size_min && size <= options.size_max) look(size);
  }
  session.checkpoint(0, "round", 0);
  return session.end(checksum.value(), operations,
                     {{"usable_worst_ratio", usable.ratio},
                      {"usable_worst_size_bytes", static_cast<double>(usable.size)},
                      {"resident_worst_ratio", resident.ratio},
                      {"resident_worst_size_bytes", static_cast<double>(resident.size)}});
}
