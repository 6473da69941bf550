// The smallest LD_AUDIT library: its namespace loads before the preloaded allocator (case 56).
unsigned la_version(unsigned version) { return version; }
