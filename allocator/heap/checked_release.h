// What debug and secure builds look at before a block goes back or is resized: is it a block, and is it not free
// already.
//
// Debug: a freed block carries a mark in its second word. A block that is freed with the mark may still be a live one
// that nobody wrote to since it was allocated, so the lists decide. Called by the page's owner.
// Secure: the bits of live blocks know (page/live_blocks.h), for every thread and at any time.
#pragma once

#include "page/live_blocks.h"
#include "page/page.h"

namespace ebb {

#if defined(EBB_DEBUG)

// False, after a report, when p must not be freed: for the page's owner, and for others.
bool may_release(Page* page, void* p);
bool may_release_remotely(Page* page, void* p);
// False when p is no block of the page, or one that is known to be free.
inline bool may_be_used(const Page* page, const void* p) { return page_is_block(page, p); }

#elif defined(EBB_SECURE)

EBB_COLD bool refuse_release(Page* page, void* p);
EBB_INLINE bool may_release(Page* page, void* p) { return EBB_LIKELY(take_back(page, p)) || refuse_release(page, p); }
EBB_INLINE bool may_release_remotely(Page* page, void* p) { return may_release(page, p); }
EBB_INLINE bool may_be_used(const Page* page, const void* p) { return is_live(page, p); }

#else

inline bool may_release(Page*, void*) { return true; }
inline bool may_release_remotely(Page*, void*) { return true; }
inline bool may_be_used(const Page*, const void*) { return true; }

#endif

// The page of a live block, wherever it is; null when p is seen to be none.
EBB_INLINE Page* page_of_block(const void* p) {
  Slice* slice = find_slice(p);
  if (EBB_UNLIKELY(slice == nullptr)) return nullptr;
  Page* page = page_head(slice);
  if (page->kind == SliceKind::kPage && !may_be_used(page, p)) return nullptr;
  if (EBB_LIKELY(page->kind == SliceKind::kPage)) return page;
  return page->kind == SliceKind::kLarge && p == page->start + page->large.offset ? page : nullptr;
}

}  // namespace ebb
