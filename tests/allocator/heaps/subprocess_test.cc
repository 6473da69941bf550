// Sub-processes: worlds that share no block memory.
#include <errno.h>

#include <thread>

#include "arena/adopted.h"
#include "arena/cage.h"
#include "base/units.h"
#include "heap/shared_pages.h"
#include "heaps/contents.h"
#include "heaps/worker.h"
#include "os/os.h"

namespace ebb::test {
namespace {

TEST(Subprocess, HasHeapsAndArenasOfItsOwn) {
  ebb_subproc_t* world = ebb_subproc_new();
  EXPECT_EQ(ebb_subproc_current(), nullptr);
  ASSERT_TRUE(ebb_subproc_enter(world));
  EXPECT_EQ(ebb_subproc_current(), world);
  ebb_heap_t* main = ebb_heap_main();
  void* small = ebb_malloc(100);
  void* large = ebb_malloc(300000);
  EXPECT_EQ(ebb_heap_of(small), main);
  EXPECT_EQ(ebb_heap_of(large), main);
  ebb_heap_t* heap = ebb_heap_new();
  std::vector<Held> all = hold_many(heap, 1000);
  ASSERT_TRUE(ebb_subproc_enter(nullptr));
  EXPECT_NE(ebb_heap_main(), main);
  void* outside = ebb_malloc(100);
  EXPECT_EQ(ebb_heap_of(outside), ebb_heap_main());
  // No slice is shared: each of its blocks lies in an arena of the sub-process.
  expect_intact(all);
  for (const Held& held : all) EXPECT_EQ(arena_of(find_slice(held.bytes))->group(), static_cast<ArenaGroup>(world));
  EXPECT_EQ(arena_of(find_slice(outside))->group(), nullptr);
  ebb_heap_stats_t stats;
  ASSERT_TRUE(ebb_subproc_stats_get(world, &stats, sizeof(stats)));
  EXPECT_EQ(stats.live_blocks, all.size() + 2);
  ASSERT_TRUE(ebb_subproc_destroy(world));
  ebb_free(outside);
}

TEST(Subprocess, ReturnsAllItsMemory) {
  ebb_subproc_destroy(ebb_subproc_new());
  size_t before = span_bytes_in_use();
  for (int round = 0; round < 5; ++round) {
    ebb_subproc_t* world = ebb_subproc_new();
    ASSERT_TRUE(ebb_subproc_enter(world));
    void* first = ebb_malloc(100);
    char* area = static_cast<ProgramArena*>(arena_of(find_slice(first)))->area_start;
    size_t bytes = static_cast<ProgramArena*>(arena_of(find_slice(first)))->area_bytes;
    for (int i = 0; i < 30; ++i) hold_many(ebb_heap_new(), 50, static_cast<size_t>(i));
    hold_many(ebb_heap_main(), 2000);
    ASSERT_NE(ebb_malloc(50 * MiB), nullptr);  // more than its first arena has
    EXPECT_GT(os::resident_bytes(area, bytes), MiB);
    ASSERT_TRUE(ebb_subproc_destroy(world)) << "from inside: the thread leaves it";
    EXPECT_EQ(ebb_subproc_current(), nullptr);
    EXPECT_EQ(os::resident_bytes(area, bytes), 0u);
    if (round == 0) before = span_bytes_in_use();  // metadata of so many heaps is kept
    EXPECT_EQ(span_bytes_in_use(), before);
  }
}

TEST(Subprocess, DeletedHeapsLeaveTheirBlocksToItsMainHeap) {
  ebb_subproc_t* world = ebb_subproc_new();
  ASSERT_TRUE(ebb_subproc_enter(world));
  ebb_heap_t* main = ebb_heap_main();
  ebb_heap_t* heap = ebb_heap_new();
  Worker resting;
  std::vector<Held> all = hold_many(heap, 300);
  resting.run([&] {
    std::vector<Held> more = hold_many(heap, 300, 900);
    all.insert(all.end(), more.begin(), more.end());
  });
  ASSERT_TRUE(ebb_heap_delete(heap));
  expect_intact(all);
  for (const Held& held : all) EXPECT_EQ(ebb_heap_of(held.bytes), main);
  // The resting thread still has pages to give up; they end with the sub-process, and it finds none.
  ASSERT_TRUE(ebb_subproc_destroy(world));
  resting.run([] {
    std::vector<Held> more = hold_many(ebb_heap_main(), 200);
    expect_intact(more);
    free_all(&more);
  });
}

TEST(Subprocess, StaysWhileThreadsAreInIt) {
  ebb_subproc_t* world = ebb_subproc_new();
  Worker inside;
  inside.run([world] { ASSERT_TRUE(ebb_subproc_enter(world)); });
  EXPECT_FALSE(ebb_subproc_destroy(world));
  EXPECT_EQ(errno, EBUSY);
  ASSERT_TRUE(ebb_subproc_enter(world));
  EXPECT_FALSE(ebb_subproc_destroy(world));
  EXPECT_EQ(ebb_subproc_current(), world) << "nothing has happened";
  ASSERT_TRUE(ebb_subproc_enter(nullptr));
  Held held{};
  inside.run([&] { held = hold(ebb_heap_main(), 500, 5); });
  EXPECT_TRUE(held.is_intact());
  inside.end();
  EXPECT_TRUE(ebb_subproc_destroy(world));
}

TEST(Subprocess, EndsAlsoAsTheDefaultOfAThreadThatIsNotInIt) {
  ebb_subproc_t* world = ebb_subproc_new();
  ASSERT_TRUE(ebb_subproc_enter(world));
  ebb_heap_t* heap = ebb_heap_new();
  ASSERT_TRUE(ebb_subproc_enter(nullptr));
  Worker other;
  other.run([heap] { ebb_heap_set_default(heap); });
  ebb_heap_set_default(heap);
  EXPECT_FALSE(ebb_subproc_destroy(world)) << "another thread's default is in it";
  void* p = ebb_malloc(10);
  EXPECT_EQ(ebb_heap_of(p), heap) << "nothing has happened";
  other.end();
  EXPECT_TRUE(ebb_subproc_destroy(world));
  void* q = ebb_malloc(10);
  EXPECT_EQ(ebb_heap_of(q), ebb_heap_main());
  ebb_free(q);
}

TEST(Subprocess, ItsArenasEndWithIt) {
  ebb_subproc_t* world = ebb_subproc_new();
  ASSERT_TRUE(ebb_subproc_enter(world));
  ebb_arena_t arena;
  ASSERT_TRUE(ebb_arena_reserve(2 * MiB, EBB_ARENA_EXCLUSIVE, &arena));
  ebb_heap_t* heap = ebb_heap_new_in(arena);
  EXPECT_TRUE(ebb_arena_contains(arena, ebb_heap_malloc(heap, 100)));
  ASSERT_TRUE(ebb_subproc_enter(nullptr));
#if !defined(EBB_DEBUG) && !defined(EBB_SECURE)
  errno = 0;
  EXPECT_EQ(ebb_heap_new_in(arena), nullptr) << "it is another world's";
  EXPECT_EQ(errno, EINVAL);
#endif
  ASSERT_TRUE(ebb_subproc_destroy(world));
  EXPECT_EQ(ebb_arena_area(arena, nullptr), nullptr);
}

TEST(Subprocess, ManyAtOnce) {
  constexpr size_t kWorlds = 20;
  std::vector<std::thread> threads;
  for (size_t w = 0; w < kWorlds; ++w) {
    threads.emplace_back([w] {
      ebb_subproc_t* world = ebb_subproc_new();
      ASSERT_TRUE(ebb_subproc_enter(world));
      std::vector<Held> all = hold_many(ebb_heap_main(), 300, w);
      expect_intact(all);
      for (const Held& held : all) ASSERT_EQ(ebb_heap_of(held.bytes), ebb_heap_main());
      ASSERT_TRUE(ebb_subproc_destroy(world));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ebb::test
