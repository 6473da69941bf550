/* An event loop that hands its memory over while it waits: what the thread keeps for its next requests goes back to
 * the operating system when the wait is long, and is there again, untouched, when it is short.
 *
 *   cc event_loop.c $(pkg-config --cflags --libs ebb) -pthread && ./a.out
 */
#include <ebb/ebb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int request_pipe[2];

static void serve(const char* request, size_t length) {
  char* answer = malloc(length + 10);
  snprintf(answer, length + 10, "served %.*s", (int)length, request);
  puts(answer);
  free(answer);
}

static void* loop(void* unused) {
  (void)unused;
  struct pollfd ready = {.fd = request_pipe[0], .events = POLLIN};
  for (;;) {
    ebb_park_begin();
    int count = poll(&ready, 1, -1);
    ebb_park_end();
    char request[100];
    ssize_t length = count == 1 ? read(request_pipe[0], request, sizeof request) : -1;
    if (length <= 0) return NULL;
    serve(request, (size_t)length);
  }
}

int main(void) {
  pthread_t thread;
  if (pipe(request_pipe) != 0 || pthread_create(&thread, NULL, loop, NULL) != 0) return 1;
  if (write(request_pipe[1], "one", 3) != 3) return 1;
  close(request_pipe[1]);
  pthread_join(thread, NULL);
  return 0;
}
