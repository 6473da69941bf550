// A C++ program that uses the installed package: prints the version, and 1 when new is Ebb's and fails as it should.
#include <ebb/ebb.hpp>

#include <cstdio>
#include <memory>
#include <vector>

int main() {
  std::vector<int, ebb::allocator<int>> numbers(100, 7);
  std::pmr::vector<int> others(100, 7, ebb::resource());
  auto ours = std::make_unique<char[]>(1000);
  bool is_ebbs = ebb_usable_size(ours.get()) == ebb_good_size(1000);
  bool thrown = false;
  try {
    volatile std::size_t too_much = std::size_t{1} << 50;
    operator delete(operator new(too_much));
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  std::printf("%s %d\n", ebb_version(), is_ebbs && thrown);
  return is_ebbs && thrown && numbers[99] == others[99] ? 0 : 1;
}
