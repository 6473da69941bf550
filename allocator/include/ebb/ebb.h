/* Ebb, a general-purpose memory allocator that gives memory back to the operating system.
 *
 * All functions may be called from any thread at any time, before main and after exit began included, but
 * not from a signal handler that interrupted one of them. Sizes are bytes. A block belongs to the caller
 * until it is given to ebb_free, ebb_realloc or one of their kin; any thread may free it.
 *
 * Functions that return memory return NULL and set errno to ENOMEM when there is none, or when the size is
 * above PTRDIFF_MAX. Blocks are aligned to at least 16 bytes. */
#ifndef EBB_EBB_H
#define EBB_EBB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define EBB_API __attribute__((visibility("default")))
#define EBB_API_MALLOC __attribute__((malloc, warn_unused_result))
#else
#define EBB_API
#define EBB_API_MALLOC
#endif

/* ---- allocating ---- */

/* A block of at least `size` bytes, contents undefined. A size of 0 gives a unique block, too. */
EBB_API EBB_API_MALLOC void* ebb_malloc(size_t size);

/* A zeroed block of `count` * `size` bytes; NULL with ENOMEM when the product overflows. Memory that is known
 * to be zero is not cleared again. */
EBB_API EBB_API_MALLOC void* ebb_calloc(size_t count, size_t size);

/* Resizes `p`, which may move; contents up to the smaller usable size are kept. NULL `p`: ebb_malloc. Size 0:
 * frees `p` and returns NULL (as glibc). On failure `p` stays valid. A block stays in place while its request
 * is at least half of its usable size; shrinking below that returns the rest. */
EBB_API void* ebb_realloc(void* p, size_t size) __attribute__((warn_unused_result));

/* ebb_realloc to `count` * `size` bytes; NULL with ENOMEM, and `p` untouched, when the product overflows. */
EBB_API void* ebb_reallocarray(void* p, size_t count, size_t size) __attribute__((warn_unused_result));

/* A block whose address is a multiple of `alignment`: a power of two, else NULL with EINVAL. The size need not
 * be a multiple of the alignment. */
EBB_API EBB_API_MALLOC void* ebb_aligned_alloc(size_t alignment, size_t size);

/* As posix_memalign: 0, EINVAL (alignment not a power of two, or not a multiple of sizeof(void*)) or ENOMEM;
 * errno is untouched, *out is set on success only. */
EBB_API int ebb_posix_memalign(void** out, size_t alignment, size_t size);

/* Resizes like ebb_realloc and keeps the result aligned to `alignment`, whatever the alignment of `p`. */
EBB_API void* ebb_aligned_realloc(void* p, size_t alignment, size_t size) __attribute__((warn_unused_result));

/* ---- freeing: errno is preserved; NULL is ignored ---- */

EBB_API void ebb_free(void* p);

/* ebb_free for callers that know what they asked for; a wrong size or alignment is reported in debug builds. */
EBB_API void ebb_free_sized(void* p, size_t size);
EBB_API void ebb_free_aligned_sized(void* p, size_t alignment, size_t size);

/* ---- asking ---- */

/* Bytes that may be used of the block `p`; 0 for NULL. All of them survive ebb_realloc. */
EBB_API size_t ebb_usable_size(const void* p);

/* What ebb_usable_size would say of a block of `size`; of a thread's first blocks below 128 bytes it may say more. */
EBB_API size_t ebb_good_size(size_t size);

/* The version of the library, "major.minor.patch". */
EBB_API const char* ebb_version(void);

/* ---- memory and the operating system ---- */

/* Gives up what the calling thread keeps for reuse. With `force`, also returns when all memory that was free at
 * the call is back with the operating system. */
EBB_API void ebb_collect(bool force);

/* Around a blocking wait (epoll_wait, a condition variable): the calling thread's memory is handed to the
 * scavenger, which gives back what is free in it while the thread sleeps. Returns true when it was handed
 * over; false when there is no scavenger (option `scavenger` off): then what the thread kept for reuse was
 * given up at once. Allocating and freeing between the two calls is safe; allocating ends the park. */
EBB_API bool ebb_park_begin(void);

/* Takes the memory back; waits at most for the work on one page. Without effect when not parked. */
EBB_API void ebb_park_end(void);

/* ---- options: see docs/options.md; names as in the environment, without EBB_, in small letters ---- */

/* The value of an option; false when there is none of this name. */
EBB_API bool ebb_option_get(const char* name, int64_t* value);

/* Sets an option for the process from now on; false when there is none of this name or the value is out of
 * its range. */
EBB_API bool ebb_option_set(const char* name, int64_t value);

/* ---- statistics ---- */

typedef struct ebb_stats {
  size_t live_bytes;      /* in blocks that the program holds, rounded up to their usable size */
  size_t live_blocks;     /* blocks that the program holds */
  size_t resident_bytes;  /* of Ebb's memory that is with the process, estimated from its own books */
  size_t dirty_bytes;     /* free and not yet returned to the operating system; part of resident_bytes */
  size_t committed_bytes; /* address space made accessible */
  size_t reserved_bytes;  /* address space reserved */
  size_t metadata_bytes;  /* Ebb's own structures */
  size_t page_count;      /* runs of equal blocks */
  size_t large_count;     /* blocks with a span of their own */
  size_t thread_count;    /* threads with a heap */
} ebb_stats_t;

/* Fills `stats`; `size` is sizeof(*stats), so that older callers meet newer libraries. Blocks that other running
 * threads keep for their next allocations count as live; the calling thread's do not. False for NULL or a size of
 * 0. Walks the pages: microseconds a megabyte of pages. */
EBB_API bool ebb_stats_get(ebb_stats_t* stats, size_t size);

/* The same and every counter as one JSON object. Writes at most `capacity` bytes, always terminated; returns the
 * length that the whole text has, as snprintf. Never allocates. */
EBB_API size_t ebb_stats_json(char* buffer, size_t capacity);

/* The same as text, handed line by line to `print` (NULL: standard error). Never allocates. */
EBB_API void ebb_stats_print(void (*print)(const char* line, void* arg), void* arg);

/* ---- heap profile (docs/profiling.md) ----
 *
 * Samples allocations as they are made, each byte as likely as any other, and keeps what is known of those that are
 * live. Large allocations and those of every heap count. The hooks below and a stack walk aside, a sampled block is
 * an ordinary block. */

/* Begins a profile: a thread's allocation is sampled each time it has allocated `mean_bytes` on average, at least 1
 * and at most 2^40; 524288 is a good value. Samples of an earlier profile are forgotten in the sense that
 * ebb_profile_write leaves them out; their frees are still told to the hook. False with EINVAL for another mean, with
 * ENOMEM when there is no memory at all. May allocate. Other threads notice when their lists of free blocks, some KiB
 * a size, run empty. */
EBB_API bool ebb_profile_start(size_t mean_bytes);

/* Takes no more samples. Those there are stay in the profile until their blocks are freed. */
EBB_API void ebb_profile_stop(void);

/* Writes the live samples to `fd`, in the text format that pprof and google-pprof read. Samples taken or freed during
 * the call may or may not be in it. False with the errno of write(2), with that of reading /proc/self/maps, or with
 * ENOMEM; part of it may be written then. Never uses malloc. */
EBB_API bool ebb_profile_write(int fd);

/* A sampled block. */
typedef struct ebb_sample {
  uint64_t id;         /* unique in the process: a block's address may be used again before its free is told */
  const void* block;
  size_t size_bytes;   /* usable size */
  size_t weight_bytes; /* of all that was allocated, how much this sample stands for */
  uint64_t time_ns;    /* of the allocation; monotonic clock */
  uint64_t thread;     /* that allocated it: the kernel's number */
  size_t depth;        /* frames of the stack, at most 64; 0 or 1 where there is no unwinder */
  void* const* stack;  /* return addresses, innermost first; valid during the call */
} ebb_sample_t;

/* Called with nothing held; it may allocate and free, but must return normally. */
typedef void ebb_sample_hook(const ebb_sample_t* sample, void* arg);

/* Sets what is called when a sample is taken, before the program gets the block, and when its block ends: by a free, a
 * resize (what it becomes counts as a new allocation), or the end of its heap; on the thread that does it. Each may be
 * NULL. What a hook allocates is not sampled; when it frees a sampled block, on_free is called once the hook has
 * returned. The block's contents must not be touched in on_free. A call that began before this one may still run. */
EBB_API void ebb_profile_hooks_set(ebb_sample_hook* on_alloc, ebb_sample_hook* on_free, void* arg);

/* ---- heaps (docs/heaps.md) ----
 *
 * A heap is a set of blocks that can end together. Any thread may use any heap at any time, also one that another
 * thread made; blocks are freed by ebb_free, whatever their heap. Each thread of a heap has lists of its own in it.
 *
 * A function that gets a handle which is no live heap (sub-process, arena) does nothing and says so: false, NULL or
 * 0, with errno EINVAL. That is found out for any address, but by ebb_heap_malloc and ebb_heap_strdup, which only notice
 * NULL and a heap that has ended. Debug and secure builds stop with a report instead. */

typedef struct ebb_heap ebb_heap_t;

/* A new heap of the calling thread's sub-process; NULL with ENOMEM when out of memory. It takes about 3 KiB and a
 * page for each size class that it uses. */
EBB_API ebb_heap_t* ebb_heap_new(void);

/* The heap that malloc uses unless something else was set: it never ends. */
EBB_API ebb_heap_t* ebb_heap_main(void);

/* The like of ebb_malloc and its kin, from `heap`. NULL with ENOMEM also when the heap's limit is reached. `text` must
 * not be NULL. */
EBB_API EBB_API_MALLOC void* ebb_heap_malloc(ebb_heap_t* heap, size_t size);
EBB_API EBB_API_MALLOC void* ebb_heap_calloc(ebb_heap_t* heap, size_t count, size_t size);
EBB_API EBB_API_MALLOC void* ebb_heap_aligned_alloc(ebb_heap_t* heap, size_t alignment, size_t size);
EBB_API EBB_API_MALLOC char* ebb_heap_strdup(ebb_heap_t* heap, const char* text);

/* ebb_realloc of a block of `heap`, which stays in that heap. A block of another heap or sub-process is refused:
 * NULL with EINVAL, and it stays as it was. (ebb_realloc takes blocks of any heap; one that moves goes to the
 * calling thread's default heap.) */
EBB_API void* ebb_heap_realloc(ebb_heap_t* heap, void* p, size_t size) __attribute__((warn_unused_result));

/* The heap of the live block that `p` points into; NULL when there is none, though in a page of small blocks also free
 * ones answer. Any pointer is allowed; the first address of a block is fastest, one deep in a large block takes a step
 * for each 64 KiB in front of it. */
EBB_API ebb_heap_t* ebb_heap_of(const void* p);
EBB_API bool ebb_heap_contains(const ebb_heap_t* heap, const void* p);
EBB_API bool ebb_is_owned(const void* p);

/* Gives up what the calling thread keeps for reuse in `heap`. With `force`, also returns all free memory of the
 * process to the operating system, as ebb_collect(true). */
EBB_API void ebb_heap_collect(ebb_heap_t* heap, bool force);

/* Ends `heap`; its live blocks stay valid and belong to the main heap of its sub-process. Other threads may free
 * blocks of it meanwhile, but must not allocate from it. False, and nothing has happened, when it is a main heap,
 * no heap, or another thread's default. The calling thread's default becomes the main heap. */
EBB_API bool ebb_heap_delete(ebb_heap_t* heap);

/* Ends `heap` and all its blocks. No other thread may use any of them from the call on. False as above. */
EBB_API bool ebb_heap_destroy(ebb_heap_t* heap);

/* What ebb_malloc of the calling thread allocates from. Returns the heap before; NULL when it can't be set. */
EBB_API ebb_heap_t* ebb_heap_set_default(ebb_heap_t* heap);

/* Called when an allocation from a limited heap was refused, on that thread, with nothing held: it may allocate
 * and free, also in `heap`. The allocation returns NULL all the same. `wanted_bytes`: the request, rounded up to
 * its usable size. */
typedef void ebb_heap_limit_reached(ebb_heap_t* heap, size_t wanted_bytes, void* arg);

/* Limits the memory handed out to a heap: what its pages have been cut into so far, whether or not it is free by
 * now, and large blocks. 0: no limit. `reached` may be NULL. What is over a new limit stays. False for a main heap
 * of the process. */
EBB_API bool ebb_heap_set_limit(ebb_heap_t* heap, size_t bytes, ebb_heap_limit_reached* reached, void* arg);

typedef struct ebb_heap_stats {
  size_t live_bytes;    /* in blocks that the program holds, rounded up to their usable size */
  size_t live_blocks;
  size_t charged_bytes; /* what counts towards the limit; 0 for the main heap of the process */
  size_t limit_bytes;   /* 0: none */
  size_t span_bytes;    /* address space of its pages and large blocks */
  size_t page_count;
  size_t large_count;
  size_t thread_count;  /* threads that have lists in it; 0 for the main heap of the process */
  size_t metadata_bytes;
} ebb_heap_stats_t;

/* As ebb_stats_get, of one heap. False with EINVAL when `stats` is NULL or `size` is 0. */
EBB_API bool ebb_heap_stats_get(ebb_heap_t* heap, ebb_heap_stats_t* stats, size_t size);

/* An area of equal blocks, or of one large block. */
typedef struct ebb_heap_area {
  const void* start;
  size_t bytes;       /* of address space */
  size_t block_bytes; /* usable size of its blocks */
  size_t live_blocks;
} ebb_heap_area_t;

/* Called for each area with `block` NULL, then for each of its live blocks. Returns whether to go on. It must not
 * allocate from the heap or free blocks of it. */
typedef bool ebb_heap_visitor(ebb_heap_t* heap, const ebb_heap_area_t* area, void* block, void* arg);

/* Visits all blocks of a heap. No other thread that has used it may use it or begin to park meanwhile: live blocks might
 * be left out, and debug and secure builds might take what they see for damage. False when the visitor ended it; with
 * EINVAL when it is NULL. */
EBB_API bool ebb_heap_visit(ebb_heap_t* heap, ebb_heap_visitor* visitor, void* arg);

/* ---- arenas: memory for heaps of a kind of its own (docs/heaps.md) ---- */

typedef struct ebb_arena* ebb_arena_t;

/* Flags of an arena. */
#define EBB_ARENA_COMMITTED 1u /* adopted memory is readable and writable already */
#define EBB_ARENA_PINNED 2u    /* its memory is never given back to the operating system */
#define EBB_ARENA_ZERO 4u      /* adopted memory reads as zero */
#define EBB_ARENA_EXCLUSIVE 8u /* it serves only the heaps made in it */
#define EBB_ARENA_NODE(node) (((unsigned)(node) + 1u) << 16) /* memory of this NUMA node is preferred */

/* An arena of `size` bytes of fresh address space, rounded up to 64 KiB, at least 1 MiB. False with ENOMEM when
 * that is refused, with EINVAL for a flag or a node that does not exist. */
EBB_API bool ebb_arena_reserve(size_t size, unsigned flags, ebb_arena_t* arena);

/* An arena in the program's own memory [start, start + size): private and anonymous unless it is pinned; both
 * multiples of the OS page, at least 1 MiB. A small part at the start holds the arena's own data; nothing outside
 * the range is touched, and nothing of it is ever unmapped. Memory that is not committed is made accessible, when it
 * is zero only as it is needed. False
 * with EINVAL for anything else, or when it overlaps what is Ebb's already; with ENOMEM when that is refused. */
EBB_API bool ebb_arena_adopt(void* start, size_t size, unsigned flags, ebb_arena_t* arena);

/* Where an arena is; `size` may be NULL. NULL for an arena that was released. */
EBB_API void* ebb_arena_area(ebb_arena_t arena, size_t* size);
EBB_API bool ebb_arena_contains(ebb_arena_t arena, const void* p);

/* Ends an arena. Reserved memory goes back to the operating system; adopted memory is the program's again, with
 * arbitrary contents. False with EBUSY while a heap made in it exists or a block or page of any heap is there; with
 * EINVAL when it was released before. */
EBB_API bool ebb_arena_release(ebb_arena_t arena);

/* A heap whose blocks all lie in this arena: NULL with ENOMEM from its allocations when that is full. NULL with
 * EINVAL when the arena was released, or belongs to another sub-process than the calling thread is in. */
EBB_API ebb_heap_t* ebb_heap_new_in(ebb_arena_t arena);

/* ---- sub-processes: worlds that share no block memory (docs/heaps.md) ---- */

typedef struct ebb_subproc ebb_subproc_t;

/* A new sub-process, with a main heap and arenas of its own; NULL with ENOMEM when out of memory. */
EBB_API ebb_subproc_t* ebb_subproc_new(void);

/* The calling thread is in `subproc` from now on: its malloc uses the main heap there, and the heaps and arenas
 * that it makes belong there. NULL: back to the process's own world. False, and nothing has changed, when it can't. */
EBB_API bool ebb_subproc_enter(ebb_subproc_t* subproc);

/* What the calling thread is in; NULL: the process's own world. */
EBB_API ebb_subproc_t* ebb_subproc_current(void);

/* Ends a sub-process with all its heaps, blocks and arenas, and returns all its memory. Nobody else may be using
 * any of it. False with EBUSY, and nothing has happened, when another thread is in it, or has a heap of it as its
 * default. The calling thread leaves it. */
EBB_API bool ebb_subproc_destroy(ebb_subproc_t* subproc);

/* The sum over the heaps of a sub-process; `charged_bytes` and `limit_bytes` of its main heap alone. */
EBB_API bool ebb_subproc_stats_get(ebb_subproc_t* subproc, ebb_heap_stats_t* stats, size_t size);

#ifdef __cplusplus
}
#endif

#endif
