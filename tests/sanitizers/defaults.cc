// Default options and suppressions of the sanitizers, linked into every program: they apply to every process that a
// test starts, with any environment and on any rank. Variables (ASAN_OPTIONS, ...) override them.
//
// Nothing of Plait's own is suppressed. A suppression names the library that it is for, and why.

// Debian's name of the program that finds functions' names.
#define PLAIT_SYMBOLIZER "external_symbolizer_path=/usr/bin/llvm-symbolizer-19:"

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the runtimes'.
extern "C" {

const char* __asan_default_options() {
  return
      // LibTorch is not instrumented: vectors that it made have no marks between size and capacity.
      "detect_container_overflow=0:"
      "detect_stack_use_after_return=1:" PLAIT_SYMBOLIZER "strict_string_checks=1";
}

const char* __lsan_default_options() { return "print_suppressions=0"; }

const char* __lsan_default_suppressions() {
  return
      // Open MPI, its plugins, PMIx and hwloc keep memory of a job until the process exits, by design.
      "leak:libmpi.so\n"
      "leak:libopen-pal.so\n"
      "leak:libopen-rte.so\n"
      "leak:/openmpi/lib/\n"
      "leak:libpmix.so\n"
      "leak:/pmix2/lib/\n"
      "leak:libhwloc.so\n"
      // The same: the C library, without frame pointers, hides who called. Plait calls no asprintf.
      "leak:__vasprintf_internal\n";
}

// Leaks of an unloaded plugin could not be attributed to it: plugins stay loaded.
int dlclose(void*) { return 0; }

const char* __ubsan_default_options() { return PLAIT_SYMBOLIZER "print_stacktrace=1"; }

const char* __tsan_default_options() {
  return
      // The first report ends the process: programs that end by _exit() would hide it.
      "halt_on_error=1:" PLAIT_SYMBOLIZER
      "second_deadlock_stack=1:"
      "print_suppressions=0";
}

const char* __tsan_default_suppressions() {
  return
      // Open MPI's transport over TCP takes two of its locks in either order while MPI_Init sets it up.
      "deadlock:mca_btl_tcp.so\n";
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
