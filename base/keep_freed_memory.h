// Memory that a program frees stays with it, for the next request of its size.
//
//   int main(int argc, char** argv) {
//     plait::base::KeepFreedMemory();     // before the first large request
//
// A training step frees and requests the same sizes again and again. The C library gives large blocks back to
// the kernel each time, which then has to clear fresh pages: about a tenth of a small model's step. What the
// process holds is then its peak. For the heap's first GiB, of which only what is used becomes memory, pages of 2 MiB are
// asked for: with pages of 4 KiB a step waits for the addresses of what it reads once, weights and optimizer state. For
// the whole process; does nothing where the C library and the kernel have no such settings.
#ifndef PLAIT_BASE_KEEP_FREED_MEMORY_H_
#define PLAIT_BASE_KEEP_FREED_MEMORY_H_

namespace plait::base {

void KeepFreedMemory();

}  // namespace plait::base

#endif  // PLAIT_BASE_KEEP_FREED_MEMORY_H_
