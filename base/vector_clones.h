// PLAIT_VECTOR_CLONES in front of a function: compiled once for each width of x86's vectors, of which the loader takes what this
// processor has. For loops over a constant number of elements of restrict pointers, without calls, which compilers make vector instructions of.
//
// All clones make the same bits in a target with copts = ["-ffp-contract=off"].
#ifndef PLAIT_BASE_VECTOR_CLONES_H_
#define PLAIT_BASE_VECTOR_CLONES_H_

// The loader chooses before the thread sanitizer can run, which it would call.
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_THREAD__)
#define PLAIT_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PLAIT_VECTOR_CLONES
#endif

#endif  // PLAIT_BASE_VECTOR_CLONES_H_
