// The only file that throws or catches. libebb.so needs libc alone, so whatever the C++ runtime must provide is
// a weak reference there: null in a program of C. libebb.a takes this file into C++ programs only (whose
// references to operator new ask for it) and refers to the runtime like any C++ object.
//
// A program of C can load a C++ library later, into a scope of its own (an interpreter and its extension
// modules). Weak references stay null then; the runtime is asked for by name, when new has failed.
#include "api/new_failure.h"

#if defined(EBB_OVERRIDE)

#include <dlfcn.h>

#include <new>

#include "base/bits.h"
#include "base/units.h"
#include "heap/alloc.h"
#include "os/message.h"

#if defined(EBB_STATIC_RUNTIME)
#define EBB_RUNTIME
#else
#define EBB_RUNTIME __attribute__((weak))
// What the compiler refers to for the catch below.
__asm__(
    ".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch\n.weak _Unwind_Resume\n"
    ".weak _ZSt9terminatev\n");
#endif

namespace std {
EBB_RUNTIME new_handler get_new_handler() noexcept;
EBB_RUNTIME void __throw_bad_alloc() __attribute__((noreturn));
}  // namespace std
extern "C" EBB_RUNTIME void* __cxa_begin_catch(void*) noexcept;

namespace ebb {
namespace {

#if defined(EBB_STATIC_RUNTIME)
constexpr bool has_runtime() { return true; }
void* late_runtime(const char*) { return nullptr; }
#else
bool has_runtime() { return &std::get_new_handler != nullptr && &__cxa_begin_catch != nullptr; }

// A function of a C++ runtime that is loaded, wherever; null when there is none.
void* late_runtime(const char* name) {
  void* function = nullptr;
  for (const char* library : {"libstdc++.so.6", "libc++.so.1"}) {
    void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    function = dlsym(handle, name);
    dlclose(handle);
    if (function != nullptr) break;
  }
  return function;
}
#endif

std::new_handler current_handler() {
  using Getter = std::new_handler (*)();
  Getter getter = std::get_new_handler;
  if (getter == nullptr) getter = reinterpret_cast<Getter>(late_runtime("_ZSt15get_new_handlerv"));
  return getter == nullptr ? nullptr : getter();
}

[[noreturn]] void throw_bad_alloc(size_t size) {
  using Thrower = void (*)();
  Thrower thrower = std::__throw_bad_alloc;
  if (thrower == nullptr) thrower = reinterpret_cast<Thrower>(late_runtime("_ZSt17__throw_bad_allocv"));
  if (thrower != nullptr) thrower();
  Message message;
  message.text("ebb: operator new has no memory for ").number(size);
  message.text(" bytes, and without a C++ runtime it cannot throw std::bad_alloc; the process stops").print();
  os::abort_process();
}

// Calls the handler until there is a block or no handler any more (then null). Throws what the handler throws.
void* retry(size_t size, size_t alignment) {
  while (is_power_of_two(alignment)) {
    std::new_handler handler = current_handler();
    if (handler == nullptr) break;
    handler();
    void* p = allocate_aligned(alignment, size);
    if (p != nullptr) return p;
  }
  return nullptr;
}

// Ebb has no catch of its own here, but the runtime that came late has: its nothrow forms call the plain ones,
// which are Ebb's.
void* retry_by_late_runtime(size_t size, size_t alignment) {
  if (current_handler() == nullptr || !is_power_of_two(alignment)) return nullptr;
  if (alignment <= kBlockAlign) {
    using Form = void* (*)(size_t, const std::nothrow_t&);
    const std::nothrow_t nothrow{};
    return reinterpret_cast<Form>(late_runtime("_ZnwmRKSt9nothrow_t"))(size, nothrow);
  }
  using Form = void* (*)(size_t, std::align_val_t, const std::nothrow_t&);
  const std::nothrow_t nothrow{};
  return reinterpret_cast<Form>(late_runtime("_ZnwmSt11align_val_tRKSt9nothrow_t"))(
      size, static_cast<std::align_val_t>(alignment), nothrow);
}

}  // namespace

void* new_failed(size_t size, size_t alignment) {
  void* p = retry(size, alignment);
  if (p == nullptr) throw_bad_alloc(size);
  return p;
}

void* new_failed_nothrow(size_t size, size_t alignment) noexcept {
  if (!has_runtime()) return retry_by_late_runtime(size, alignment);
  try {
    return retry(size, alignment);
  } catch (...) {
    return nullptr;
  }
}

}  // namespace ebb

#endif
