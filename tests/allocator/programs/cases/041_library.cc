// Linked twice by 041_global_destructors, before and after the allocator: a global container that is
// filled before main and freed by a static destructor and by an atexit handler.
#include <cstdlib>
#include <map>
#include <string>

namespace {

struct Registry {
  std::map<int, std::string> entries;
  char* block = static_cast<char*>(std::malloc(5000));
  Registry() {
    for (int i = 0; i < 500; ++i) entries[i] = std::string(static_cast<size_t>(i), 'x');
  }
  ~Registry() {
    entries[1000] = "added late";
    entries.clear();
    std::free(block);
  }
};

Registry registry;
void* late_block;

void free_late() { std::free(late_block); }

}  // namespace

extern "C" void LIBRARY_USE() {
  if (!late_block) {
    late_block = std::malloc(777);
    std::atexit(free_late);
  }
  registry.entries[2000] = "used";
}
