#include "parallel/offload/state_store.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "parallel/offload/file_store.h"

namespace plait::parallel {
namespace {

// kMemory and kHost: a tensor per slot.
class TensorStore final : public StateStore {
 public:
  TensorStore(std::vector<StateSlot> slots, at::Device home, at::Device device)
      : StateStore(std::move(slots)), home_(home), device_(device) {
    // Pinned: copies to and from the GPU then run at the speed of the bus.
    const bool locked = home_.is_cpu() && !device_.is_cpu();
    for (const StateSlot& slot : this->slots()) {
      const at::TensorOptions options = at::TensorOptions(slot.type).device(home_).pinned_memory(locked);
      tensors_.push_back(at::zeros({slot.count}, options));
      bytes_ += static_cast<std::int64_t>(tensors_.back().nbytes());
      largest_ = std::max(largest_, static_cast<std::int64_t>(tensors_.back().nbytes()));
    }
  }

  absl::StatusOr<at::Tensor> Acquire(std::size_t slot) override {
    PLAIT_CHECK(!acquired_.has_value()) << "slot " << slot << " while another is acquired";
    PLAIT_CHECK(slot < tensors_.size()) << "slot " << slot << " of " << tensors_.size();
    acquired_ = slot;
    in_use_ = home_ == device_ ? tensors_[slot] : tensors_[slot].to(device_);
    return in_use_;
  }

  absl::Status Release(std::size_t slot, bool changed) override {
    PLAIT_CHECK(acquired_ == slot) << "slot " << slot << " is not acquired";
    if (changed && home_ != device_) tensors_[slot].copy_(in_use_);
    acquired_.reset();
    in_use_.reset();
    return absl::OkStatus();
  }

  void Prefetch(std::size_t) override {}
  absl::Status Drain() override { return absl::OkStatus(); }
  std::int64_t device_bytes() const override { return home_ == device_ ? bytes_ : largest_; }
  std::int64_t host_bytes() const override { return home_ == device_ ? 0 : bytes_; }
  std::int64_t file_bytes() const override { return 0; }

 private:
  at::Device home_, device_;
  std::vector<at::Tensor> tensors_;
  std::optional<std::size_t> acquired_;
  at::Tensor in_use_;
  std::int64_t bytes_ = 0, largest_ = 0;
};

}  // namespace

absl::string_view Name(OffloadTarget target) {
  switch (target) {
    case OffloadTarget::kMemory:
      return "memory";
    case OffloadTarget::kHost:
      return "host";
    case OffloadTarget::kFile:
      return "file";
  }
  return "";
}

absl::StatusOr<std::unique_ptr<StateStore>> StateStore::Create(std::vector<StateSlot> slots,
                                                               const StateStoreOptions& options) {
  for (const StateSlot& slot : slots) PLAIT_CHECK(slot.count >= 0) << slot.name << ": " << slot.count;
  if (options.target == OffloadTarget::kFile) {
    return FileStore::Create(std::move(slots), options);
  }
  const at::Device home = options.target == OffloadTarget::kHost ? at::Device(at::kCPU) : options.device;
  return std::make_unique<TensorStore>(std::move(slots), home, options.device);
}

}  // namespace plait::parallel
