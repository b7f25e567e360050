// PLAIT_VECTOR_CLONES before a function compiles it for AVX-512, AVX2 and baseline x86-64; the dynamic loader selects
// the version for the processor at hand (GCC's target_clones). For loops that the compiler vectorises: over a constant
// number of elements, through restrict pointers, without calls.
//
// All clones give bitwise identical results in a target with copts = ["-ffp-contract=off"].
#ifndef PLAIT_BASE_VECTOR_CLONES_H_
#define PLAIT_BASE_VECTOR_CLONES_H_

// Not under ThreadSanitizer: the resolvers run before its runtime is initialised, and would call into it.
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_THREAD__)
#define PLAIT_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PLAIT_VECTOR_CLONES
#endif

#endif  // PLAIT_BASE_VECTOR_CLONES_H_
