// For loops that the compiler vectorises: over a constant number of elements or through restrict pointers, without calls.
//
// PLAIT_VECTOR_CLONES before a function compiles it for AVX-512, AVX2 and baseline x86-64; the dynamic loader selects
// the version for the processor at hand (target_clones of GCC and clang). All clones give bitwise identical results in a
// target with copts = ["-ffp-contract=off"].
//
// PLAIT_INDEPENDENT_ITERATIONS before a loop says that no iteration reads what another one writes.
#ifndef PLAIT_BASE_VECTOR_LOOPS_H_
#define PLAIT_BASE_VECTOR_LOOPS_H_

// Not under ThreadSanitizer: the resolvers run before its runtime is initialised, and would call into it.
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_THREAD__)
#define PLAIT_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PLAIT_VECTOR_CLONES
#endif

#ifdef __clang__
#define PLAIT_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define PLAIT_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

#endif  // PLAIT_BASE_VECTOR_LOOPS_H_
