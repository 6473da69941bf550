// malloc in an IFUNC resolver, before the dynamic linker has filled the first thread's TLS.
//
// The linker relocates libraries before the program, and copies the initial values of thread-local variables
// last of all. A resolver of the program that allocates would find null where the empty heap's address belongs,
// and testing for that would cost malloc an instruction. So libebb.so has a resolver of its own, which runs at
// the end of its relocation and puts the values in place. What the program's resolvers allocate belongs to a
// thread structure that is forgotten when the linker overwrites them: its blocks stay valid, and are freed like
// those of any other thread.
//
// The shared library only: a static program runs its resolvers before it has TLS at all.
#if defined(EBB_OVERRIDE) && !defined(EBB_STATIC_RUNTIME)

#include "base/compiler.h"
#include "heap/thread.h"

namespace {

void nothing() {}

using Function = void();

}  // namespace

extern "C" {

// The library's identity for the libc. The compiler's start files would define it, but it is linked without them.
EBB_HIDDEN __attribute__((weak)) void* __dso_handle = &__dso_handle;

EBB_HIDDEN Function* ebb_resolve_early() {
  ebb::tls_heap = &ebb::g_empty_heap;
  ebb::tls_owner = ebb::kNobodyHere;
  return nothing;
}

EBB_HIDDEN void ebb_early() __attribute__((ifunc("ebb_resolve_early")));

// Only what is referred to is resolved.
__attribute__((used)) static Function* const ebb_early_reference = ebb_early;

}  // extern "C"

#endif
