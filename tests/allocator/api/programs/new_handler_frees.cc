// Holds most of the memory that the process may have; the new handler gives it up, so that new succeeds at its
// second try, in every form. Run with a limit on address space.
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kHeld = std::size_t{40} << 20;
void* g_held;
int g_calls;

void give_up_what_is_held() {
  ++g_calls;
  if (g_held == nullptr) std::set_new_handler(nullptr);
  std::free(g_held);
  g_held = nullptr;
}

// Holds blocks until there is no room for another.
bool fill_and_ask(void* (*ask)(), void (*give_back)(void*)) {
  void* held[1000];
  int count = 0;
  while (count < 1000 && (held[count] = std::malloc(kHeld)) != nullptr) ++count;
  if (count == 0 || count == 1000) return false;
  g_held = held[--count];
  g_calls = 0;
  std::set_new_handler(give_up_what_is_held);
  void* p = ask();
  bool served = p != nullptr && g_calls == 1;
  give_back(p);
  while (count > 0) std::free(held[--count]);
  return served;
}

}  // namespace

int main() {
  constexpr std::align_val_t kAlignment{4096};
  bool plain = fill_and_ask([] { return operator new(kHeld); }, [](void* p) { operator delete(p); });
  bool nothrow = fill_and_ask([] { return operator new(kHeld, std::nothrow); }, [](void* p) { operator delete(p); });
  bool aligned =
      fill_and_ask([] { return operator new(kHeld, kAlignment); }, [](void* p) { operator delete(p, kAlignment); });
  bool array = fill_and_ask([] { return operator new[](kHeld, kAlignment, std::nothrow); },
                            [](void* p) { operator delete[](p, kAlignment); });
  std::printf("plain %d, nothrow %d, aligned %d, array %d\n", plain, nothrow, aligned, array);
  return plain && nothrow && aligned && array ? 0 : 1;
}
