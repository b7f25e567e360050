#include "tools/dist_test/replica_check.h"

#include <ATen/core/grad_mode.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "comm/tensor_collectives.h"

namespace plait::dist_test {

void ReplicaCheck::Compare(const std::string& name, const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const at::Tensor mine = tensor.detach().cpu().contiguous();
  at::Tensor reference = mine.clone();
  comm::Broadcast(world_, reference, /*root=*/0);
  const bool same = std::memcmp(mine.const_data_ptr(), reference.const_data_ptr(), mine.nbytes()) == 0;
  if (!same && first_difference_ < 0) first_difference_ = static_cast<std::int64_t>(names_.size());
  names_.push_back(name);
}

absl::Status ReplicaCheck::Finish() const {
  const std::int64_t mine[1] = {first_difference_};
  std::vector<std::int64_t> all(static_cast<std::size_t>(world_.size()));
  world_.AllGather(comm::ConstBufferOf(absl::MakeConstSpan(mine)), comm::BufferOf(absl::MakeSpan(all)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] < 0) continue;
    return absl::DataLossError(absl::StrCat(
        "parameters are not bitwise identical on all ranks: rank ", rank, " differs from rank 0, first in ",
        names_[static_cast<std::size_t>(all[rank])], "; check its host with doctor"));
  }
  return absl::OkStatus();
}

}  // namespace plait::dist_test
