// One collective on one group: buffers filled, called, checked. Private to tools/collectives_sweep.
#ifndef PLAIT_TOOLS_COLLECTIVES_SWEEP_EXERCISE_H_
#define PLAIT_TOOLS_COLLECTIVES_SWEEP_EXERCISE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "tools/collectives_sweep/bandwidth.h"

namespace plait::collectives_sweep {

// Memory for the largest message, used by all exercises one after the other.
class Workspace {
 public:
  explicit Workspace(std::int64_t bytes) : in_(new std::byte[bytes]()), out_(new std::byte[bytes]()) {}
  void* in() const { return in_.get(); }
  void* out() const { return out_.get(); }

 private:
  std::unique_ptr<std::byte[]> in_, out_;
};

struct Mistakes {
  std::int64_t count = 0;
  std::string first = "";  // "element 17: expected 12, found 13"
};

class Exercise {
 public:
  // `ranks` and `workspace` must outlive it; the workspace holds message.bytes.
  Exercise(Swept operation, const comm::Communicator& ranks, MessageSize message, comm::DataType type,
           comm::ReduceOp reduce, int root, const Workspace& workspace);

  // Fills the buffers: `salt` tells one call's values from the next one's.
  void Fill(int salt) const;
  // All zero: any number of calls leaves them so, and sums do not overflow.
  void Clear() const;
  void Call() const;
  // What this rank received. Empty where it received nothing.
  comm::Buffer Result() const;
  Mistakes Check(int salt) const;
  // "all_reduce[world] f32[1024] sum"
  std::string Description() const;

 private:
  std::int64_t in_count() const;

  Swept operation_;
  const comm::Communicator& ranks_;
  MessageSize message_;
  comm::DataType type_;
  comm::ReduceOp reduce_;
  int root_;
  const Workspace& workspace_;
};

}  // namespace plait::collectives_sweep

#endif  // PLAIT_TOOLS_COLLECTIVES_SWEEP_EXERCISE_H_
