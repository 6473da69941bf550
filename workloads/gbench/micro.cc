// micro: each entry of the malloc API over the size classes, one thread, one call at a time.
//
// The figure is the latency of a call (or of a pair) in the best case: the same size again and again,
// blocks kept in a small ring so that an allocator must do more than hand the last block back. Realistic
// mixes are the other workloads' business.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kRing = 32;
constexpr std::int64_t kSmallest = 16;
constexpr std::int64_t kLargest = 1 << 20;

// One of each power of four from 16 bytes to 1 MiB: small, medium and large paths.
void sizes(benchmark::internal::Benchmark* bench) { bench->RangeMultiplier(4)->Range(kSmallest, kLargest); }

// Replaces the oldest of a ring of blocks by a new one each iteration.
template <typename Allocate, typename Release>
void run_ring(benchmark::State& state, Allocate allocate, Release release) {
  std::array<void*, kRing> ring;
  for (void*& block : ring) block = allocate();
  std::size_t next = 0;
  for (auto _ : state) {
    void*& place = ring[next++ % kRing];
    release(place);
    place = allocate();
    benchmark::DoNotOptimize(place);
    if (place == nullptr) {
      state.SkipWithError("the allocator returned no memory");
      break;
    }
  }
  for (void* block : ring) release(block);
}

std::size_t size_of(const benchmark::State& state) { return static_cast<std::size_t>(state.range(0)); }

void malloc_free(benchmark::State& state) {
  const std::size_t size = size_of(state);
  run_ring(
      state, [size] { return std::malloc(size); }, [](void* block) { std::free(block); });
}
BENCHMARK(malloc_free)->Apply(sizes);

void calloc_free(benchmark::State& state) {
  const std::size_t size = size_of(state);
  run_ring(
      state, [size] { return std::calloc(1, size); }, [](void* block) { std::free(block); });
}
BENCHMARK(calloc_free)->Apply(sizes);

void aligned_alloc_free(benchmark::State& state) {
  const std::size_t size = size_of(state) < 64 ? 64 : size_of(state);
  run_ring(
      state, [size] { return std::aligned_alloc(64, size); }, [](void* block) { std::free(block); });
}
BENCHMARK(aligned_alloc_free)->Apply(sizes);

void posix_memalign_free(benchmark::State& state) {
  const std::size_t size = size_of(state);
  const auto allocate = [size] {
    void* block = nullptr;
    return posix_memalign(&block, 64, size) == 0 ? block : nullptr;
  };
  run_ring(state, allocate, [](void* block) { std::free(block); });
}
BENCHMARK(posix_memalign_free)->Apply(sizes);

void new_delete(benchmark::State& state) {
  const std::size_t size = size_of(state);
  run_ring(
      state, [size] { return ::operator new(size); }, [](void* block) { ::operator delete(block); });
}
BENCHMARK(new_delete)->Apply(sizes);

void new_delete_sized(benchmark::State& state) {
  const std::size_t size = size_of(state);
  run_ring(
      state, [size] { return ::operator new(size); }, [size](void* block) { ::operator delete(block, size); });
}
BENCHMARK(new_delete_sized)->Apply(sizes);

void new_delete_aligned(benchmark::State& state) {
  constexpr std::align_val_t kAlignment{64};
  const std::size_t size = size_of(state);
  run_ring(
      state, [size] { return ::operator new(size, kAlignment); },
      [](void* block) { ::operator delete(block, kAlignment); });
}
BENCHMARK(new_delete_aligned)->Apply(sizes);

// Back and forth between a size and a half more, as a string that is edited.
void realloc_grow_shrink(benchmark::State& state) {
  const std::size_t size = size_of(state);
  void* block = std::malloc(size);
  std::size_t next = size + size / 2;
  for (auto _ : state) {
    void* moved = std::realloc(block, next);
    if (moved == nullptr) {
      state.SkipWithError("the allocator returned no memory");
      break;
    }
    block = moved;
    next = next == size ? size + size / 2 : size;
    benchmark::DoNotOptimize(block);
  }
  std::free(block);
}
BENCHMARK(realloc_grow_shrink)->Apply(sizes);

void usable_size(benchmark::State& state) {
  void* block = std::malloc(size_of(state));
  for (auto _ : state) benchmark::DoNotOptimize(malloc_usable_size(block));
  std::free(block);
}
BENCHMARK(usable_size)->Apply(sizes);

}  // namespace
