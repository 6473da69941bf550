// Ebb for C++17 and later: a standard allocator, a polymorphic memory resource, and heaps with the like of
// both. Header only; link libebb.
//
// The two are stateless: every object of a kind is equal to every other, and memory may be taken through one and
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

// A heap that ends with this object, and all its blocks with it. Movable; a moved-from or released one is empty and
// must not be allocated from. Threads may share it as they may share an ebb_heap_t.
class heap {
 public:
  // Throws std::bad_alloc when there is no memory.
  heap() : handle_(ebb_heap_new()) {
    if (handle_ == nullptr) detail::throw_bad_alloc();
  }
  // In an arena, which must outlive it.
  explicit heap(ebb_arena_t arena) : handle_(ebb_heap_new_in(arena)) {
    if (handle_ == nullptr) detail::throw_bad_alloc();
  }
  ~heap() { destroy(); }
  heap(heap&& other) noexcept : handle_(other.release()) {}
  heap& operator=(heap&& other) noexcept {
    if (this != &other) {
      destroy();
      handle_ = other.release();
    }
    return *this;
  }
  heap(const heap&) = delete;
  heap& operator=(const heap&) = delete;

  ebb_heap_t* get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  bool contains(const void* p) const noexcept { return handle_ != nullptr && ebb_heap_contains(handle_, p); }

  // Null when there is no memory or the heap's limit is reached.
  [[nodiscard]] void* malloc(std::size_t bytes) noexcept { return ebb_heap_malloc(handle_, bytes); }

  // Ends the heap and all its blocks now. One that is another thread's default stays, without an owner.
  void destroy() noexcept {
    if (handle_ != nullptr) ebb_heap_destroy(handle_);
    handle_ = nullptr;
  }
  // Ends the heap; its live blocks go to the main heap.
  void detach() noexcept {
    if (handle_ != nullptr) ebb_heap_delete(handle_);
    handle_ = nullptr;
  }
  // The handle, for the caller to end.
  [[nodiscard]] ebb_heap_t* release() noexcept {
    ebb_heap_t* handle = handle_;
    handle_ = nullptr;
    return handle;
  }

 private:
  ebb_heap_t* handle_;
};

namespace detail {

inline void* take_from(ebb_heap_t* heap, std::size_t bytes, std::size_t alignment) {
  void* p =
      alignment <= plain_alignment ? ebb_heap_malloc(heap, bytes) : ebb_heap_aligned_alloc(heap, alignment, bytes);
  if (p == nullptr) throw_bad_alloc();
  return p;
}

}  // namespace detail

// For containers whose memory is in a heap: std::vector<int, ebb::heap_allocator<int>> v(ebb::heap_allocator<int>(h)).
// Two are equal when their heap is. The heap must outlive the container, or the container must be abandoned, not
// destroyed.
template <class T>
class heap_allocator {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;
  using is_always_equal = std::false_type;

  explicit heap_allocator(ebb_heap_t* heap) noexcept : heap_(heap) {}
  explicit heap_allocator(const heap& owner) noexcept : heap_(owner.get()) {}
  template <class U>
  heap_allocator(const heap_allocator<U>& other) noexcept : heap_(other.get()) {}

  ebb_heap_t* get() const noexcept { return heap_; }

  // As allocator<T>::allocate; also throws std::bad_alloc at the heap's limit.
  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) detail::throw_bad_length();
    return static_cast<T*>(detail::take_from(heap_, count * sizeof(T), alignof(T)));
  }
  void deallocate(T* p, std::size_t count) noexcept { detail::give(p, count * sizeof(T), alignof(T)); }

 private:
  ebb_heap_t* heap_;
};

template <class T, class U>
bool operator==(const heap_allocator<T>& one, const heap_allocator<U>& other) noexcept {
  return one.get() == other.get();
}
template <class T, class U>
bool operator!=(const heap_allocator<T>& one, const heap_allocator<U>& other) noexcept {
  return one.get() != other.get();
}

// The same for std::pmr containers. It owns its heap: with the resource all its memory ends, also what was never
// given back, as with std::pmr::monotonic_buffer_resource; but what is given back is reused at once.
class heap_resource final : public std::pmr::memory_resource {
 public:
  heap_resource() = default;
  explicit heap_resource(heap&& owned) noexcept : heap_(static_cast<heap&&>(owned)) {}

  ebb_heap_t* get() const noexcept { return heap_.get(); }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return detail::take_from(heap_.get(), bytes, alignment);
  }
  void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override { detail::give(p, bytes, alignment); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  heap heap_;
};

}  // namespace ebb

#endif
