// 44: A thread leaves live blocks and exits, and a new thread gets the same identity (the same thread
// control block); it must not be taken for the old owner when it frees the blocks.
#include "case.h"

enum { kBlocks = 10000 };

static unsigned char* blocks[kBlocks];
static const size_t kSizes[] = {16, 48, 200, 1000};
static pthread_barrier_t together;

static size_t size_of(int i) { return kSizes[i % 4]; }

static void* leave_blocks(void* identity) {
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = (unsigned char*)malloc(size_of(i));
    EXPECT(blocks[i], "no memory");
    fill_pattern(blocks[i], size_of(i));
  }
  *(pthread_t*)identity = pthread_self();
  return NULL;
}

static void free_part(int first) {
  for (int i = first; i < kBlocks; i += 2) {
    check_pattern(blocks[i], size_of(i));
    free(blocks[i]);
  }
}

static void* free_even(void* identity) {
  *(pthread_t*)identity = pthread_self();
  pthread_barrier_wait(&together);
  free_part(0);
  return NULL;
}

static void* free_odd(void* unused) {
  (void)unused;
  pthread_barrier_wait(&together);
  free_part(1);
  return NULL;
}

static void* allocate_same_sizes(void* unused) {
  (void)unused;
  static unsigned char* mine[kBlocks];
  pthread_barrier_wait(&together);
  for (int i = 0; i < kBlocks; ++i) {
    mine[i] = (unsigned char*)malloc(size_of(i));
    EXPECT(mine[i], "no memory");
    fill_pattern(mine[i], size_of(i));
  }
  for (int i = 0; i < kBlocks; ++i) {
    check_pattern(mine[i], size_of(i));
    free(mine[i]);
  }
  return NULL;
}

int main(void) {
  arm_watchdog(60);
  int reused = 0;
  for (int round = 0; round < 25; ++round) {
    pthread_t old_identity, new_identity, first, second, third;
    pthread_barrier_init(&together, NULL, 3);
    pthread_create(&first, NULL, leave_blocks, &old_identity);
    pthread_join(first, NULL);
    pthread_create(&first, NULL, free_even, &new_identity);
    pthread_create(&second, NULL, free_odd, NULL);
    pthread_create(&third, NULL, allocate_same_sizes, NULL);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    pthread_join(third, NULL);
    reused += pthread_equal(old_identity, new_identity) != 0;
  }
  EXPECT(reused > 0, "no round reused a thread's identity, so nothing was tried");
  return 0;
}
