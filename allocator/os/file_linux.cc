// Files, without the libc's buffers and errno.
#include <errno.h>
#include <fcntl.h>

#include "os/os.h"
#include "os/syscall.h"

namespace ebb::os {

int open_to_read(const char* path) {
  return static_cast<int>(raw_syscall(SYS_openat, AT_FDCWD, as_long(path), O_RDONLY | O_CLOEXEC));
}

int open_to_write(const char* path) {
  constexpr long kMode = 0644;
  return static_cast<int>(
      raw_syscall(SYS_openat, AT_FDCWD, as_long(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode));
}

long read_some(int fd, char* buffer, size_t bytes) {
  for (;;) {
    long got = raw_syscall(SYS_read, fd, as_long(buffer), static_cast<long>(bytes));
    if (got != -EINTR) return got;
  }
}

int write_whole(int fd, const char* data, size_t bytes) {
  while (bytes > 0) {
    long written = raw_syscall(SYS_write, fd, as_long(data), static_cast<long>(bytes));
    if (written == -EINTR) continue;
    if (written <= 0) return written == 0 ? EIO : static_cast<int>(-written);
    data += written;
    bytes -= static_cast<size_t>(written);
  }
  return 0;
}

void close_file(int fd) { raw_syscall(SYS_close, fd); }

uint64_t thread_number() { return static_cast<uint64_t>(raw_syscall(SYS_gettid)); }

}  // namespace ebb::os
