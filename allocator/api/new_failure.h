// operator new found no memory: the new handler, std::bad_alloc, and null for the nothrow forms. Called by
// api/operator_new.cc only. Any thread, nothing held: a handler may allocate, free, throw or not return.
#pragma once

#include <cstddef>

#include "base/compiler.h"

namespace ebb {

// A block, after the new handler has found some memory. Throws what the handler throws, or std::bad_alloc when
// there is no handler (any more). `alignment`: what operator new was given, kBlockAlign for the plain forms.
EBB_COLD void* new_failed(size_t size, size_t alignment);

// The same for the forms that throw nothing: null instead.
EBB_COLD void* new_failed_nothrow(size_t size, size_t alignment) noexcept;

}  // namespace ebb
