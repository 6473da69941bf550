// What debug builds look at before a block goes back: is it a block, and is it not free already.
//
// A freed block carries a mark in its second word. A block that is freed with the mark may still be a live one
// that nobody wrote to since it was allocated, so the lists decide. Called by the page's owner only.
#pragma once

#include "page/page.h"

namespace ebb {

#if defined(EBB_DEBUG)
// False, after a report, when p must not be freed.
bool may_release(Page* page, void* p);
#else
inline bool may_release(Page*, void*) { return true; }
#endif

}  // namespace ebb
