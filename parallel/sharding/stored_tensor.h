// A shard of a unit that is either in memory or, between uses, in a slot of a StateStore, behind one interface.
// Private to parallel/sharding.
//
//   StoredTensor master(store, slot);  // or StoredTensor(tensor)
//   master.Prefetch();                 // its read starts
//   PLAIT_RETURN_IF_ERROR(master.Visit(/*changes=*/false, [&](const at::Tensor& values) {
//     own.copy_(values);
//     return absl::OkStatus();
//   }));
#ifndef PLAIT_PARALLEL_SHARDING_STORED_TENSOR_H_
#define PLAIT_PARALLEL_SHARDING_STORED_TENSOR_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "parallel/offload/state_store.h"

namespace plait::parallel {

class StoredTensor {
 public:
  using Visitor = std::function<absl::Status(const at::Tensor& values)>;

  StoredTensor() = default;  // of nothing
  explicit StoredTensor(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  StoredTensor(StateStore* store, std::size_t slot) : store_(store), slot_(slot) {}

  bool resident() const { return store_ == nullptr; }
  // Undefined unless resident().
  const at::Tensor& tensor() const { return tensor_; }

  // It is visited next: starts reading it.
  void Prefetch() const {
    if (!resident()) store_->Prefetch(slot_);
  }
  // `values` is valid during the call. `changes`: writes to it are kept. Returns the store's error or the visitor's.
  absl::Status Visit(bool changes, const Visitor& visit) const;

 private:
  at::Tensor tensor_;
  StateStore* store_ = nullptr;
  std::size_t slot_ = 0;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_STORED_TENSOR_H_
