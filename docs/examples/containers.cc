// Containers whose memory is Ebb's by name, also in a program whose malloc is not replaced.
//
//   c++ -std=c++17 containers.cc $(pkg-config --cflags --libs ebb) && ./a.out
#include <ebb/ebb.hpp>
#include <iostream>
#include <memory_resource>
#include <string>
#include <unordered_map>
#include <vector>

int main() {
  // By type: every copy of the allocator is the same.
  std::vector<int, ebb::allocator<int>> squares;
  for (int i = 1; i <= 10; ++i) squares.push_back(i * i);

  // By resource: the container hands it on to what it holds.
  std::pmr::unordered_map<int, std::pmr::string> names(ebb::resource());
  names.emplace(squares.back(), "a hundred");

  std::cout << names.at(100) << (ebb_is_owned(squares.data()) ? " in a block of Ebb\n" : " elsewhere\n");
}
