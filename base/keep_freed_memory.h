// Configures malloc to keep freed memory for later allocations of the same size.
//
//   int main(int argc, char** argv) {
//     plait::base::KeepFreedMemory();     // before the first large allocation
//
// A training step allocates and frees the same sizes again and again. By default glibc returns large blocks to the
// kernel each time, which then has to clear fresh pages: about a tenth of a small model's step. With these settings
// resident memory stays at its peak. For the heap's first GiB, of which only touched pages become resident, transparent
// huge pages (2 MiB) are requested: with 4 KiB pages a step waits for TLB misses on what it reads once, weights and
// optimizer state. No huge pages are requested under a limit on address space (ulimit -v). Affects the whole process.
#ifndef PLAIT_BASE_KEEP_FREED_MEMORY_H_
#define PLAIT_BASE_KEEP_FREED_MEMORY_H_

namespace plait::base {

void KeepFreedMemory();

}  // namespace plait::base

#endif  // PLAIT_BASE_KEEP_FREED_MEMORY_H_
