// Options and suppressions of the sanitizers, which their runtimes ask every program for: so they hold in whatever
// process a test starts, with any environment and on any rank. Variables (ASAN_OPTIONS, ...) add to them.
//
// Nothing of Plait's own is suppressed. A suppression names the library that it is for, and why.

extern "C" {

const char* __asan_default_options() {
  return
      // LibTorch is not instrumented: vectors that it made have no marks between size and capacity.
      "detect_container_overflow=0:"
      "detect_stack_use_after_return=1:"
      "strict_string_checks=1";
}

const char* __lsan_default_options() { return "print_suppressions=0"; }

const char* __ubsan_default_options() { return "print_stacktrace=1"; }

const char* __tsan_default_options() {
  return
      // The first report ends the process: programs that end by _exit() would hide it.
      "halt_on_error=1:"
      // Open MPI, HDF5 and LibTorch are not instrumented: what happens within them is theirs.
      "ignore_noninstrumented_modules=1:"
      "second_deadlock_stack=1:"
      "print_suppressions=0";
}

}  // extern "C"
