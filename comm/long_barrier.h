// A barrier behind work that takes some ranks longer than a call may wait, such as writing a large file.
#ifndef PLAIT_COMM_LONG_BARRIER_H_
#define PLAIT_COMM_LONG_BARRIER_H_

#include <cstdint>

#include "comm/communicator.h"

namespace plait::comm {

// Collective. Returns once every rank has called it. `seconds`: time beyond the timeout of the session after which a
// missing rank is named and the job ends; infinity: never. A rank that is gone ends the job at once, as in any call.
void LongBarrier(const Communicator& comm, double seconds, CallSite site = CallSite::current());

// More than any disk needs that still works for files of so many bytes: a pause of a minute, and 10 MB/s.
inline double SecondsToWrite(std::int64_t bytes) { return 60 + static_cast<double>(bytes) / 10e6; }

}  // namespace plait::comm

#endif  // PLAIT_COMM_LONG_BARRIER_H_
