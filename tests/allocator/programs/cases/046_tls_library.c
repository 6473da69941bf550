// Takes TLS_BYTES of static TLS when it is loaded; 046_dlopen_allocator loads ten of these first.
__attribute__((tls_model("initial-exec"))) __thread char taken[TLS_BYTES] = {1};
char first_byte(void) { return taken[0]; }
