#include "parallel/sharding/unit.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace plait::parallel {
namespace {

std::int64_t Bytes(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.nbytes()); }

// A parameter on the meta device becomes one of `device`: set_data wants both of one kind.
void LeaveMeta(const at::Tensor& parameter, at::Device device) {
  if (parameter.is_meta()) parameter.unsafeGetTensorImpl()->_change_backend_component_keys(device);
}

void BroadcastFromFirst(const UnitSetting& setting, at::Tensor& values) {
  if (setting.gather.size() > 1) comm::Broadcast(setting.gather, values, /*root=*/0);
  if (setting.replicate.size() > 1) comm::Broadcast(setting.replicate, values, /*root=*/0);
}

}  // namespace

Unit::Unit(const UnitSetting* setting, std::vector<at::Tensor> parameters, FlatLayout layout,
           std::size_t slot)
    : setting_(setting),
      layout_(std::move(layout)),
      parameters_(std::move(parameters)),
      whole_(setting->pool, layout_.count(), setting->master_options.dtype(setting->compute_type)),
      gradient_whole_(setting->pool, layout_.count(), setting->master_options),
      slot_(slot),
      filled_(parameters_.size(), false) {
  const at::NoGradGuard no_grad;
  BeginPass();
  whole_.Allocate();
  // Without a second buffer where types are the same.
  initial_ = setting->mixed() ? at::empty({layout_.count()}, setting->master_options) : whole_.tensor();
  initial_.zero_();
  TakeValues();
}

void Unit::TakeValues() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor view = ViewOf(initial_, i);
    if (!parameters_[i].is_meta()) view.copy_(parameters_[i]);
    LeaveMeta(parameters_[i], initial_.device());
    parameters_[i].set_data(view);
  }
}

absl::Status Unit::ShareOut() {
  const at::NoGradGuard no_grad;
  BroadcastFromFirst(*setting_, initial_);
  const absl::Status placed = PlaceMaster();
  for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].set_data(ViewOf(whole_.tensor(), i));
  initial_.reset();
  Drop();
  return placed;
}

at::Tensor Unit::OwnPart() const {
  return whole_.tensor().narrow(0, setting_->gather.rank() * layout_.shard_count(), layout_.shard_count());
}

absl::Status Unit::PlaceMaster() {
  const std::int64_t begin = setting_->gather.rank() * layout_.shard_count();
  at::Tensor mine = initial_.narrow(0, begin, layout_.shard_count());
  if (setting_->mixed()) whole_.tensor().copy_(initial_);
  if (setting_->keeps_shares()) {
    share_ = OwnPart().clone();
    setting_->pool->Count(Bytes(share_));
  }
  if (setting_->store != nullptr) {
    master_ = StoredTensor(setting_->store, slot_);
    return master_.Visit(/*changes=*/true, [&mine](const at::Tensor& master) {
      master.copy_(mine);
      return absl::OkStatus();
    });
  }
  if (setting_->shards_parameters() || setting_->mixed()) {
    mine = mine.clone();
    setting_->pool->Count(Bytes(mine));
  }
  master_ = StoredTensor(std::move(mine));
  return absl::OkStatus();
}

absl::Status Unit::VisitMaster(bool changes, const StoredTensor::Visitor& visit) {
  if (changes) WaitWhole();  // an all-gather that nobody has waited for still reads what follows
  return master_.Visit(changes, [&](const at::Tensor& master) {
    PLAIT_RETURN_IF_ERROR(visit(master));
    if (changes && !master_.stays()) FollowMaster(master);
    return absl::OkStatus();
  });
}

void Unit::FollowMaster(const at::Tensor& master) {
  if (setting_->keeps_shares()) {
    share_.copy_(master);
  } else if (!setting_->shards_parameters()) {
    OwnPart().copy_(master);
  }
}

Unit::~Unit() {
  for (comm::TensorWork* work : {&gathering_, &scattering_, &summing_}) {
    static_cast<void>(std::make_unique<comm::TensorWork>(std::move(*work)).release());
  }
}

at::Tensor Unit::ViewOf(const at::Tensor& flat, std::size_t index) const {
  const FlatParameter& p = layout_.parameters()[index];
  return flat.narrow(0, p.offset, p.count).view(p.shape);
}

void Unit::Expect() const {
  if (!whole_.allocated() && !share_.defined() && layout_.count() > 0) master_.Expect();
}

// Ranks gather whatever happens: who could not read sends what every loss shows.
void Unit::LoadOwnPart() {
  const at::Tensor own = OwnPart();
  const StoredTensor source = share_.defined() ? StoredTensor(share_) : master_;
  const absl::Status loaded = source.Visit(/*changes=*/false, [&own](const at::Tensor& values) {
    own.copy_(values);
    return absl::OkStatus();
  });
  if (loaded.ok()) return;
  own.fill_(std::numeric_limits<double>::quiet_NaN());
  setting_->status->Update(loaded);
}

void Unit::StartGather() {
  if (whole_.allocated() || layout_.count() == 0) return;
  const at::NoGradGuard no_grad;
  whole_.Allocate();
  LoadOwnPart();
  if (setting_->ranks() == 1) return;
  at::Tensor whole = whole_.tensor();
  gathering_ = comm::AllGatherAsync(setting_->gather, OwnPart(), whole);
  gather_in_flight_ = true;
}

void Unit::WaitWhole() {
  if (!std::exchange(gather_in_flight_, false)) return;
  gathering_.Wait();
}

void Unit::AdvanceGather() {
  if (gather_in_flight_ && gathering_.Test()) gather_in_flight_ = false;
}

void Unit::Drop() {
  if (!setting_->shards_parameters()) return;
  WaitWhole();
  whole_.Release();
}

void Unit::Publish() {
  const at::NoGradGuard no_grad;
  filled_.assign(parameters_.size(), false);
  has_share_ = false;
  if (setting_->shards_parameters() || layout_.count() == 0) return;
  if (setting_->mixed() && master_.stays()) OwnPart().copy_(master_.tensor());
  if (setting_->ranks() == 1) return;
  at::Tensor whole = whole_.tensor();
  gathering_ = comm::AllGatherAsync(setting_->gather, OwnPart(), whole);
  gather_in_flight_ = true;
}

void Unit::BeginPass() {
  seen_.assign(parameters_.size(), false);
  missing_ = parameters_.size();
}

bool Unit::Accumulate(std::size_t index) {
  const at::NoGradGuard no_grad;
  if (!gradient_whole_.allocated()) {
    gradient_whole_.Allocate();
    ZeroPadding();
  }
  at::Tensor& gradient = parameters_[index].mutable_grad();
  const at::Tensor view = ViewOf(gradient_whole_.tensor(), index);
  filled_[index] ? view.add_(gradient) : view.copy_(gradient);
  gradient.reset();
  filled_[index] = true;
  if (seen_[index]) return false;  // a parameter that one pass reaches twice
  seen_[index] = true;
  return --missing_ == 0;
}

void Unit::ZeroPadding() {
  std::vector<const FlatParameter*> by_place;
  for (const FlatParameter& p : layout_.parameters()) by_place.push_back(&p);
  std::sort(by_place.begin(), by_place.end(),
            [](const FlatParameter* a, const FlatParameter* b) { return a->offset < b->offset; });
  std::int64_t end = 0;
  const auto zero_until = [&](std::int64_t begin) {
    if (begin > end) gradient_whole_.tensor().narrow(0, end, begin - end).zero_();
  };
  for (const FlatParameter* p : by_place) {
    zero_until(p->offset);
    end = p->offset + p->count;
  }
  zero_until(layout_.count());
}

void Unit::ZeroWhatIsMissing() {
  if (!gradient_whole_.allocated()) {
    gradient_whole_.Allocate();
    gradient_whole_.tensor().zero_();
    return;
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!filled_[i]) ViewOf(gradient_whole_.tensor(), i).zero_();
  }
}

void Unit::StartScatter(bool last) {
  const at::NoGradGuard no_grad;
  PLAIT_CHECK(last || setting_->shards_gradients()) << "whole gradients travel once, in the last pass";
  ZeroWhatIsMissing();
  const at::Tensor& whole = gradient_whole_.tensor();
  const std::int64_t begin = setting_->reduce.rank() * layout_.shard_count();
  if (!setting_->shards_gradients()) {
    gradient_ = whole.narrow(0, begin, layout_.shard_count());
    scattered_ = gradient_;
  } else if (!gradient_.defined()) {
    gradient_ = at::empty({layout_.shard_count()}, setting_->master_options);
    setting_->pool->Count(Bytes(gradient_));
  }
  if (setting_->ranks() == 1 || layout_.count() == 0) return;
  if (setting_->shards_gradients()) scattered_ = has_share_ ? at::empty_like(gradient_) : gradient_;
  scattering_ = comm::ReduceScatterAsync(setting_->reduce, whole, scattered_);
}

bool Unit::AdvanceScatter(bool wait) {
  if (wait) {
    scattering_.Wait();
  } else if (!scattering_.Test()) {
    return false;
  }
  FinishScatter();
  return true;
}

void Unit::FinishScatter() {
  const at::NoGradGuard no_grad;
  scattering_ = comm::TensorWork();
  if (!setting_->shards_gradients() || layout_.count() == 0) return;
  if (has_share_) gradient_.add_(scattered_);
  scattered_.reset();
  has_share_ = true;
  gradient_whole_.Release();
  filled_.assign(parameters_.size(), false);
}

void Unit::StartReplicaSum() {
  if (setting_->replicate.size() > 1 && layout_.count() > 0)
    summing_ = comm::AllReduceAsync(setting_->replicate, gradient_);
}

bool Unit::AdvanceReplicaSum(bool wait) {
  if (wait) {
    summing_.Wait();
  } else if (!summing_.Test()) {
    return false;
  }
  summing_ = comm::TensorWork();
  return true;
}

}  // namespace plait::parallel
