// Stands in for a libc whose unwinder can't be loaded: its backtrace finds nothing.
int backtrace(void** frames, int most) {
  (void)frames, (void)most;
  return 0;
}
