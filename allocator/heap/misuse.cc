#include "heap/misuse.h"

#include "arena/cage.h"
#include "config/options.h"
#include "heap/heap.h"
#include "heap/thread.h"
#include "os/message.h"
#include "page/page.h"

namespace ebb {
namespace {

void finish(Message& message) {
  if (option(Option::k_continue_on_misuse) != 0) {
    message.text("; it is ignored").print();
    return;
  }
  message.text("; the process stops (EBB_CONTINUE_ON_MISUSE=1 would ignore the call)").print();
  os::abort_process();
}

// The heap may be about to end: its address is told, not its contents.
void describe_heap(Message& message, const Page* page) {
  const Heap* heap = page->heap.load(std::memory_order_relaxed);
  if (heap == &g_main_heap) {
    message.text(", main heap");
  } else {
    message.text(", heap ").pointer(heap);
  }
}

void describe_owner(Message& message, const Page* page) {
  OwnerId owner = page->owner.load(std::memory_order_relaxed);
  if (owner == kNoOwner) {
    message.text(", owned by no thread");
  } else {
    message.text(owner == tls_owner ? ", owned by this thread" : ", owned by another thread");
  }
}

// What Ebb knows of the place.
void describe(Message& message, const void* p) {
  const Page* page = as_page(find_span(p));
  if (page == nullptr) {
    message.text(find_slice(p) == nullptr ? "it is not in memory of this allocator"
                                          : "no block is there: it was freed before, or never allocated");
  } else if (page->kind == SliceKind::kPage) {
    message.text("it lies ").number(static_cast<size_t>(static_cast<const char*>(p) - page->start) % page->block_bytes);
    message.text(" bytes inside a block of ").number(page->block_bytes).text(" bytes, class ").number(page->cls);
    message.text(", page ").pointer(page->start);
    describe_heap(message, page);
    describe_owner(message, page);
  } else {
    message.text("the block there begins at ").pointer(page->start + page->large.offset);
    message.text(" and has ").number(page->large.usable).text(" bytes");
    describe_heap(message, page);
  }
}

}  // namespace

void report_invalid_pointer(const char* operation, const void* p) {
  Message message;
  message.text("ebb: ").text(operation).text(" of ").pointer(p).text(", which is not a live block: ");
  describe(message, p);
  finish(message);
}

void report_double_free(const void* p) {
  Message message;
  message.text("ebb: free of ").pointer(p).text(", which was freed before: ");
  describe(message, p);
  finish(message);
}

#if defined(EBB_SECURE)
void report_damaged_block(const void* block) {
  Message message;
  message.text("ebb: the free block ").pointer(block).text(" was written to after it was freed: ");
  describe(message, block);
  finish(message);
}
#endif

void report_heap_misuse(const char* operation, const void* heap, const char* reason) {
  Message message;
  message.text("ebb: ").text(operation).text(" of heap ").pointer(heap).text(": ").text(reason);
  finish(message);
}

void report_foreign_block(const char* operation, const void* p, const void* heap) {
  Message message;
  message.text("ebb: ").text(operation).text(" in heap ").pointer(heap).text(" of ").pointer(p);
  message.text(", which is not a block of it: ");
  describe(message, p);
  finish(message);
}

void report_wrong_size(const void* p, size_t said_bytes, size_t usable_bytes) {
  Message message;
  message.text("ebb: sized free of ").pointer(p).text(" says ").number(said_bytes);
  message.text(" bytes, but the block has ").number(usable_bytes);
  finish(message);
}

void report_wrong_alignment(const void* p, size_t said_bytes) {
  Message message;
  message.text("ebb: aligned free of ").pointer(p).text(" says an alignment of ").number(said_bytes);
  message.text(", which the address does not have");
  finish(message);
}

}  // namespace ebb
