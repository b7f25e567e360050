// Checks that all ranks hold bitwise identical tensors.
//
//   ReplicaCheck check(world);
//   for (...) check.Compare(name, tensor);
//   PLAIT_RETURN_IF_ERROR(check.Finish());
#ifndef PLAIT_TOOLS_DIST_TEST_REPLICA_CHECK_H_
#define PLAIT_TOOLS_DIST_TEST_REPLICA_CHECK_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "comm/communicator.h"

namespace plait::dist_test {

class ReplicaCheck {
 public:
  explicit ReplicaCheck(const comm::Communicator& world) : world_(world) {}

  // Collective. Compares every bit of `tensor` with that of rank 0: -0 differs from 0, and a NaN equals
  // itself. All ranks pass the same names, shapes and types in the same order.
  void Compare(const std::string& name, const at::Tensor& tensor);

  // Collective. DATA_LOSS, the same on all ranks, with the lowest rank that differs and its first tensor.
  absl::Status Finish() const;

 private:
  comm::Communicator world_;
  std::vector<std::string> names_;
  std::int64_t first_difference_ = -1;  // index into names_; -1: none on this rank
};

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_REPLICA_CHECK_H_
