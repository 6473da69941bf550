// The C library's name of a function of Ebb's: one address, two names, no jump in between. An alias stands in
// the file that defines its target. Builds that have the ebb_ names alone (unit tests, sanitizers) leave them
// out, so that the libc or the sanitizer keeps its own.
#pragma once

#include "base/compiler.h"

#if defined(__clang__)
#define EBB_ATTRIBUTES_OF(target)
#else
#define EBB_ATTRIBUTES_OF(target) copy(target),
#endif

#if defined(EBB_OVERRIDE)
#define EBB_ALIAS(name, target, result, ...) \
  extern "C" EBB_EXPORT result name(__VA_ARGS__) __attribute__((EBB_ATTRIBUTES_OF(target) alias(#target), nothrow))
#else
#define EBB_ALIAS(name, target, result, ...) static_assert(true)
#endif
