// Reports of misuse: one function for each kind. Each prints one sentence without allocating and ends the
// process, unless the option continue_on_misuse asks to ignore the call; then it returns.
#pragma once

#include <cstddef>

#include "base/compiler.h"

namespace ebb {

// `p` was given to `operation`, but is not the start of a live block of Ebb's.
EBB_COLD void report_invalid_pointer(const char* operation, const void* p);

// The block `p` was freed before.
EBB_COLD void report_double_free(const void* p);

// `heap` was given to `operation`, which cannot be done: `reason` says why.
EBB_COLD void report_heap_misuse(const char* operation, const void* heap, const char* reason);

// The block `p` was given to `operation` with a heap that it does not belong to.
EBB_COLD void report_foreign_block(const char* operation, const void* p, const void* heap);

// A sized or aligned free said something else than the allocation.
EBB_COLD void report_wrong_size(const void* p, size_t said_bytes, size_t usable_bytes);
EBB_COLD void report_wrong_alignment(const void* p, size_t said_bytes);

}  // namespace ebb
