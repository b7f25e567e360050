#include "parallel/replicas.h"

#include <ATen/core/grad_mode.h>

#include <cstring>
#include <limits>

#include "comm/tensor_collectives.h"

namespace plait::parallel {
namespace {

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

}  // namespace

void BroadcastTensors(const comm::Communicator& comm, const std::vector<at::Tensor>& tensors, int root) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& tensor : tensors) {
    at::Tensor values = tensor.detach();
    comm::Broadcast(comm, values, root);
  }
}

Difference FirstDifference(const comm::Communicator& comm, const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  std::int64_t first = -1;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor own = tensors[i].detach().cpu().contiguous();
    at::Tensor reference = own.clone();
    comm::Broadcast(comm, reference, 0);
    if (first < 0 && !SameBits(own, reference)) first = static_cast<std::int64_t>(i);
  }
  // The largest of {-rank, tensor}, rank by rank: the lowest rank that differs.
  std::int64_t lowest[1] = {first < 0 ? std::numeric_limits<std::int64_t>::min() : -comm.rank()};
  comm.AllReduce(comm::BufferOf(absl::MakeSpan(lowest)), comm::ReduceOp::kMax);
  if (lowest[0] == std::numeric_limits<std::int64_t>::min()) return {};
  std::int64_t tensor[1] = {first};
  comm.Broadcast(comm::BufferOf(absl::MakeSpan(tensor)), static_cast<int>(-lowest[0]));
  return {.rank = static_cast<int>(-lowest[0]), .tensor = tensor[0]};
}

}  // namespace plait::parallel
