// 85: When operator new fails it calls the new handler until that gives up, throws bad_alloc or what the
// handler throws, and the nothrow forms give null whatever the handler throws.
#include "case.h"
#include <new>

namespace {

const size_t kTooMuch = static_cast<size_t>(1) << 50;
int calls;

void give_up_after_three() {
  if (++calls == 3) std::set_new_handler(nullptr);
}

struct DerivedFailure : std::bad_alloc {};

void throw_derived() {
  ++calls;
  throw DerivedFailure();
}

template <typename Allocate>
void try_form(const char* name, Allocate allocate) {
  calls = 0;
  std::set_new_handler(give_up_after_three);
  bool thrown = false;
  try {
    opaque(allocate());
  } catch (const DerivedFailure&) {
    EXPECT(false, "%s throws a type nobody threw", name);
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  EXPECT(thrown && calls == 3, "%s: bad_alloc %d, handler called %d times", name, thrown, calls);
  std::set_new_handler(throw_derived);
  thrown = false;
  try {
    opaque(allocate());
  } catch (const DerivedFailure&) {
    thrown = true;
  } catch (const std::bad_alloc&) {
    EXPECT(false, "%s: the type that the handler threw is lost", name);
  }
  EXPECT(thrown, "%s: what the handler threw is lost", name);
}

template <typename Allocate>
void try_nothrow_form(const char* name, Allocate allocate) {
  calls = 0;
  std::set_new_handler(throw_derived);
  EXPECT(opaque(allocate()) == nullptr, "%s gives a block", name);
  EXPECT(calls == 1, "%s: handler called %d times", name, calls);
  calls = 0;
  std::set_new_handler(give_up_after_three);
  EXPECT(opaque(allocate()) == nullptr && calls == 3, "%s: handler called %d times", name, calls);
}

}  // namespace

int main() {
  const std::align_val_t alignment{256};
  try_form("new", [] { return operator new(kTooMuch); });
  try_form("new[]", [] { return operator new[](kTooMuch); });
  try_form("aligned new", [=] { return operator new(kTooMuch, alignment); });
  try_form("aligned new[]", [=] { return operator new[](kTooMuch, alignment); });
  try_nothrow_form("nothrow new", [] { return operator new(kTooMuch, std::nothrow); });
  try_nothrow_form("nothrow new[]", [] { return operator new[](kTooMuch, std::nothrow); });
  try_nothrow_form("nothrow aligned new", [=] { return operator new(kTooMuch, alignment, std::nothrow); });
  try_nothrow_form("nothrow aligned new[]", [=] { return operator new[](kTooMuch, alignment, std::nothrow); });
  std::set_new_handler(nullptr);
  delete[] static_cast<char*>(opaque(new char[100]));
  return 0;
}
