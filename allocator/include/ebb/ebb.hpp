// Ebb for C++17 and later: a standard allocator and a polymorphic memory resource. Header only; link libebb.
//
// Both are stateless: every object of a kind is equal to every other, and memory may be taken through one and
// given back through another, from any thread. They throw std::bad_alloc when there is no memory; the new
// handler is not asked. Without exceptions the process stops instead.
#ifndef EBB_EBB_HPP
#define EBB_EBB_HPP

#include <ebb/ebb.h>

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory_resource>
#include <new>
#include <type_traits>

namespace ebb {

namespace detail {

[[noreturn]] inline void throw_bad_alloc() {
#if defined(__cpp_exceptions)
  throw std::bad_alloc();
#else
  std::abort();
#endif
}

[[noreturn]] inline void throw_bad_length() {
#if defined(__cpp_exceptions)
  throw std::bad_array_new_length();
#else
  std::abort();
#endif
}

// Blocks of ebb_malloc have this alignment, whatever their size.
inline constexpr std::size_t plain_alignment = 16;

inline void* take(std::size_t bytes, std::size_t alignment) {
  void* p = alignment <= plain_alignment ? ebb_malloc(bytes) : ebb_aligned_alloc(alignment, bytes);
  if (p == nullptr) throw_bad_alloc();
  return p;
}

inline void give(void* p, std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment <= plain_alignment) {
    ebb_free_sized(p, bytes);
  } else {
    ebb_free_aligned_sized(p, alignment, bytes);
  }
}

}  // namespace detail

// For containers: std::vector<int, ebb::allocator<int>>.
template <class T>
class allocator {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using propagate_on_container_move_assignment = std::true_type;
  using is_always_equal = std::true_type;

  constexpr allocator() noexcept = default;
  template <class U>
  constexpr allocator(const allocator<U>&) noexcept {}

  // Uninitialised memory for `count` objects. Throws std::bad_array_new_length when their size overflows,
  // std::bad_alloc when there is no memory.
  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) detail::throw_bad_length();
    return static_cast<T*>(detail::take(count * sizeof(T), alignof(T)));
  }

  // `p` and `count` as allocate() had them.
  void deallocate(T* p, std::size_t count) noexcept { detail::give(p, count * sizeof(T), alignof(T)); }
};

template <class T, class U>
constexpr bool operator==(const allocator<T>&, const allocator<U>&) noexcept {
  return true;
}
template <class T, class U>
constexpr bool operator!=(const allocator<T>&, const allocator<U>&) noexcept {
  return false;
}

// For std::pmr containers: std::pmr::vector<int> v(ebb::resource()).
class memory_resource final : public std::pmr::memory_resource {
 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override { return detail::take(bytes, alignment); }
  void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override { detail::give(p, bytes, alignment); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
#if defined(__cpp_rtti)
    return dynamic_cast<const memory_resource*>(&other) != nullptr;
#else
    return this == &other;
#endif
  }
};

// The process's one resource of this kind; never destroyed, so that static containers may use it to the end.
inline memory_resource* resource() noexcept {
  alignas(memory_resource) static unsigned char storage[sizeof(memory_resource)];
  static memory_resource* const instance = ::new (static_cast<void*>(storage)) memory_resource;
  return instance;
}

}  // namespace ebb

#endif
