// A C++ library in a program of C: what new does when it fails must not depend on how the library was loaded.
#include <cstdio>
#include <new>

namespace {

volatile std::size_t g_too_much = std::size_t{1} << 50;
int g_calls;

struct DerivedFailure : std::bad_alloc {};

void throw_derived() {
  ++g_calls;
  throw DerivedFailure();
}

bool throws_bad_alloc() {
  try {
    operator delete(operator new(g_too_much));
  } catch (const std::bad_alloc&) {
    return true;
  }
  return false;
}

bool handler_is_called() {
  std::set_new_handler(throw_derived);
  bool thrown = false;
  try {
    operator delete(operator new(g_too_much));
  } catch (const DerivedFailure&) {
    thrown = true;
  }
  return thrown && g_calls == 1;
}

bool nothrow_gives_null() {
  return operator new(g_too_much, std::nothrow) == nullptr&& g_calls ==
         2 && operator new[](g_too_much, std::align_val_t{64}, std::nothrow) == nullptr&& g_calls == 3;
}

}  // namespace

extern "C" int plugin_entry() {
  bool thrown = throws_bad_alloc(), called = handler_is_called(), null = nothrow_gives_null();
  std::printf("bad_alloc %d, handler %d, null %d\n", thrown, called, null);
  return thrown && called && null ? 0 : 1;
}
