// Starts one program with exactly the state a measurement fixes, and nothing inherited by accident.
//
// Called by harness.collect.launch; built by harness.build.launcher with the system's C compiler; single-threaded.
// The environment is what -e lists and nothing else. Without -r it replaces itself by the program (perf, valgrind
// and hyperfine want that). With -r FD it stays as the parent and writes one line of JSON to FD when the program
// has ended: it exists because ru_maxrss is inherited through exec, so that a child of a large Python would read
// Python's size; a child of this small static program reads its own.
//
// Invariant: descendants that outlive the program are killed and reaped here, so none outlives a measurement. SIGTERM
// ends the program and then everything else the same way: when the launcher is gone, all it started is gone.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kMaxEnvironment = 256, kExitUsage = 125, kExitCannotExec = 127 };

static char *environment[kMaxEnvironment + 1];
static volatile sig_atomic_t stop_requested;
static volatile pid_t supervised;

static void stop(int signal_number) {
  (void)signal_number;
  stop_requested = 1;
  if (supervised > 0) kill(supervised, SIGKILL);
}

static void die(const char *what, const char *subject) {
  fprintf(stderr, "launcher: %s %s: %s\n", what, subject, strerror(errno));
  exit(kExitCannotExec);
}

// Pins to a list as the kernel writes them: `3`, `0-7,9`.
static void pin_to(const char *list) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const char *next = list; *next != '\0';) {
    char *end;
    const long first = strtol(next, &end, 10);
    const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
    if (end == next || first < 0 || last < first || last >= CPU_SETSIZE || (*end != '\0' && *end != ',')) {
      fprintf(stderr, "launcher: -c %s is no list of processors\n", list);
      exit(kExitUsage);
    }
    for (long cpu = first; cpu <= last; cpu++) CPU_SET((size_t)cpu, &set);
    next = *end == ',' ? end + 1 : end;
  }
  if (sched_setaffinity(0, sizeof set, &set) != 0) die("cannot pin to processors", list);
}

static double seconds_since(const struct timespec *begin) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) / 1e9;
}

static double seconds_of(const struct timeval *t) { return (double)t->tv_sec + (double)t->tv_usec / 1e6; }

static void run_program(char **arguments, int report_fd) {
  if (report_fd >= 0) close(report_fd);
  execvpe(arguments[0], arguments, environment);
  die("cannot start", arguments[0]);
}

// Whatever the program left behind was re-parented to us: end it, so that it cannot disturb the next measurement.
static int kill_leftovers(void) {
  char path[64], line[4096];
  int killed = 0;
  for (;;) {
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    FILE *children = fopen(path, "r");
    if (children == NULL) return killed;
    size_t length = fread(line, 1, sizeof line - 1, children);
    fclose(children);
    line[length] = '\0';
    if (length == 0) return killed;
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
      killed += kill((pid_t)atol(word), SIGKILL) == 0;
    }
    if (waitpid(-1, NULL, 0) < 0 && errno == ECHILD) return killed;
  }
}

// One line of JSON; harness.collect.execution reads it into Usage, field by field.
static void report(int fd, int status, double wall_s, const struct rusage *use, int leftovers) {
  dprintf(fd,
          "{\"exit\": %d, \"signal\": %d, \"wall_s\": %.9f, \"user_s\": %.6f, \"system_s\": %.6f, "
          "\"max_rss_bytes\": %ld, \"minor_faults\": %ld, \"major_faults\": %ld, "
          "\"voluntary_switches\": %ld, \"involuntary_switches\": %ld, \"leftovers\": %d}\n",
          WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0, wall_s,
          seconds_of(&use->ru_utime), seconds_of(&use->ru_stime), use->ru_maxrss * 1024L, use->ru_minflt,
          use->ru_majflt, use->ru_nvcsw, use->ru_nivcsw, leftovers);
}

static int supervise(char **arguments, int report_fd) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  struct sigaction on_stop = {.sa_handler = stop};
  sigaction(SIGTERM, &on_stop, NULL);
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // a harness that is killed leaves nothing running either
  struct timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  pid_t child = fork();
  if (child < 0) die("cannot fork for", arguments[0]);
  if (child == 0) {
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run_program(arguments, report_fd);
  }
  supervised = child;
  if (stop_requested) kill(child, SIGKILL);  // it came before there was anyone to end
  // The program's descriptors are its own business: holding copies here would hide its end of file.
  for (int fd = 3; fd < 1024; fd++) {
    if (fd != report_fd) close(fd);
  }
  int status = 0;
  struct rusage use;
  pid_t ended;
  do {
    ended = wait4(child, &status, 0, &use);
  } while (ended < 0 && errno == EINTR);
  double wall_s = seconds_since(&begin);
  report(report_fd, status, wall_s, &use, kill_leftovers());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv) {
  int report_fd = -1, count = 0, option;
  while ((option = getopt(argc, argv, "+Rc:r:e:d:")) != -1) {
    switch (option) {
      case 'R':
        if (personality(ADDR_NO_RANDOMIZE | personality(0xffffffff)) < 0) die("cannot switch off", "ASLR");
        break;
      case 'c': pin_to(optarg); break;
      case 'r': report_fd = atoi(optarg); break;
      case 'd':
        if (chdir(optarg) != 0) die("cannot enter", optarg);
        break;
      case 'e':
        if (count == kMaxEnvironment) return kExitUsage;
        environment[count++] = optarg;
        break;
      default: return kExitUsage;
    }
  }
  if (optind == argc) return kExitUsage;
  // execvpe searches this process's PATH: make it the one the program will see.
  for (int i = 0; i < count; i++) {
    if (strncmp(environment[i], "PATH=", 5) == 0) setenv("PATH", environment[i] + 5, 1);
  }
  if (report_fd < 0) {
    run_program(argv + optind, -1);
  }
  return supervise(argv + optind, report_fd);
}
