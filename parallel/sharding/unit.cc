#include "parallel/sharding/unit.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace plait::parallel {
namespace {

std::int64_t Bytes(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.nbytes()); }

bool Contains(const std::vector<std::string>& axes, const std::string& axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// Axes of the mesh with several ranks, in its order, that `has` any of the parameters.
template <typename Has>
std::vector<std::string> AxesOf(const comm::DeviceMesh& mesh,
                                const std::vector<const models::ParameterSpec*>& parameters, const Has& has) {
  std::vector<std::string> axes;
  for (const comm::MeshAxis& axis : mesh.axes()) {
    if (axis.size == 1) continue;
    const bool any = std::any_of(parameters.begin(), parameters.end(), [&](const models::ParameterSpec* p) {
      return has(p->placement, axis.name);
    });
    if (any) axes.push_back(axis.name);
  }
  return axes;
}

bool IsPartial(const models::Placement& placement, const std::string& axis) {
  return Contains(placement.partial, axis);
}

bool HasSameValues(const models::Placement& placement, const std::string& axis) {
  return Contains(placement.replicated, axis) || IsPartial(placement, axis);
}

bool Any(const std::vector<bool>& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}

// Leaks an operation in flight: its destructor would abort.
template <typename Work>
void Leave(Work& work) {
  if (work.in_flight()) static_cast<void>(std::make_unique<Work>(std::move(work)).release());
}

}  // namespace

Unit::Unit(const UnitContext* context, const std::string& name,
           std::vector<const models::ParameterSpec*> parameters, FlatLayout layout, std::size_t slot)
    : context_(context),
      layout_(std::move(layout)),
      parameters_(std::move(parameters)),
      same_values_(AxesOf(*context->mesh, parameters_, HasSameValues)),
      unsharded_(context->pool, layout_.count(), context->master_options.dtype(context->compute_type)),
      unsharded_gradient_(GradientBuffer()),
      late_gradient_(GradientBuffer()),
      slot_(slot),
      filled_(parameters_.size(), false),
      late_(parameters_.size(), false),
      late_filled_(parameters_.size(), false) {
  const at::NoGradGuard no_grad;
  BeginMicroBatch(/*leaf=*/0);
  unsharded_.Allocate();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    views_.push_back(ViewOf(unsharded_.tensor(), i));
    if (!context->shards_parameters()) continue;
    placeholders_.push_back(UnreadableTensor(
        views_[i], absl::StrCat(parameters_[i]->name, " is read while unit \"", name,
                                "\" is sharded: run its block through DataParallel::Run, inside "
                                "DataParallel::Forward")));
  }
  // A second buffer only if types differ.
  initial_ = context->mixed() ? at::empty({layout_.count()}, context->master_options) : unsharded_.tensor();
  initial_.zero_();
  TakeValues();
}

at::Tensor& Unit::Handle(std::size_t index) const {
  return const_cast<at::Tensor&>(parameters_[index]->tensor);
}

void Unit::TakeValues() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor view = ViewOf(initial_, i);
    if (!Handle(i).is_meta()) view.copy_(Handle(i));
    models::Materialize(Handle(i), view);
  }
}

absl::Status Unit::ShardInitialValues() {
  const at::NoGradGuard no_grad;
  for (const comm::Communicator* axis : {&context_->gather, &context_->replicate}) {
    if (axis->size() > 1) comm::Broadcast(*axis, initial_, /*root=*/0);
  }
  for (const std::string& axis : same_values_) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!HasSameValues(parameters_[i]->placement, axis)) continue;
      at::Tensor values = ViewOf(initial_, i);
      comm::Broadcast(context_->mesh->axis(axis), values, /*root=*/0);
    }
  }
  const absl::Status placed = PlaceMaster();
  for (std::size_t i = 0; i < parameters_.size(); ++i) Handle(i).set_data(views_[i]);
  initial_.reset();
  Reshard();
  return placed;
}

at::Tensor Unit::OwnShard() const {
  return unsharded_.tensor().narrow(0, context_->gather.rank() * layout_.shard_count(),
                                    layout_.shard_count());
}

absl::Status Unit::PlaceMaster() {
  const std::int64_t begin = context_->gather.rank() * layout_.shard_count();
  at::Tensor mine = initial_.narrow(0, begin, layout_.shard_count());
  if (context_->mixed()) unsharded_.tensor().copy_(initial_);
  if (context_->keeps_shards()) {
    shard_ = OwnShard().clone();
    context_->pool->Count(Bytes(shard_));
  }
  if (context_->store != nullptr) {
    master_ = StoredTensor(context_->store, slot_);
    return master_.Visit(/*changes=*/true, [&mine](const at::Tensor& master) {
      master.copy_(mine);
      return absl::OkStatus();
    });
  }
  if (context_->shards_parameters() || context_->mixed()) {
    mine = mine.clone();
    context_->pool->Count(Bytes(mine));
  }
  master_ = StoredTensor(std::move(mine));
  return absl::OkStatus();
}

absl::Status Unit::VisitMaster(bool changes, const StoredTensor::Visitor& visit) {
  if (changes) WaitUnsharded();  // an all-gather in flight may still read the master
  return master_.Visit(changes, [&](const at::Tensor& master) {
    PLAIT_RETURN_IF_ERROR(visit(master));
    if (changes && !master_.resident()) FollowMaster(master);
    return absl::OkStatus();
  });
}

void Unit::FollowMaster(const at::Tensor& master) {
  if (context_->keeps_shards()) {
    shard_.copy_(master);
  } else if (!context_->shards_parameters()) {
    OwnShard().copy_(master);
  }
}

Unit::~Unit() {
  Leave(gathering_);
  Leave(scattering_);
  Leave(summing_);
}

at::Tensor Unit::ViewOf(const at::Tensor& flat, std::size_t index) const {
  const FlatParameter& p = layout_.parameters()[index];
  return flat.narrow(0, p.offset, p.count).view(p.shape);
}

void Unit::Prefetch() const {
  if (!unsharded_.allocated() && !shard_.defined() && layout_.count() > 0) master_.Prefetch();
}

// The all-gather must happen on all ranks: a rank that could not read sends NaN, which shows in every loss.
void Unit::LoadOwnShard() {
  const at::Tensor own = OwnShard();
  const StoredTensor source = shard_.defined() ? StoredTensor(shard_) : master_;
  const absl::Status loaded = source.Visit(/*changes=*/false, [&own](const at::Tensor& values) {
    own.copy_(values);
    return absl::OkStatus();
  });
  if (loaded.ok()) return;
  own.fill_(std::numeric_limits<double>::quiet_NaN());
  context_->status->Update(loaded);
}

void Unit::AddHold() {
  ++holds_;
  StartAllGather();
}

void Unit::DropHold() {
  PLAIT_CHECK(holds_ > 0) << "DropHold without AddHold";
  if (--holds_ == 0) Reshard();
}

void Unit::StartAllGather() {
  if (unsharded_.allocated() || layout_.count() == 0) return;
  const at::NoGradGuard no_grad;
  unsharded_.Allocate();
  LoadOwnShard();
  for (std::size_t i = 0; i < placeholders_.size(); ++i) Handle(i).set_data(views_[i]);
  if (context_->ranks() == 1) return;
  at::Tensor unsharded = unsharded_.tensor();
  gathering_ = comm::AllGatherAsync(context_->gather, OwnShard(), unsharded, tag());
  gather_in_flight_ = true;
}

void Unit::WaitUnsharded() {
  if (!std::exchange(gather_in_flight_, false)) return;
  gathering_.Wait();
}

void Unit::AdvanceAllGather() {
  if (gather_in_flight_ && gathering_.Test()) gather_in_flight_ = false;
}

void Unit::ReshardIfUnheld() {
  if (holds_ == 0) Reshard();
}

void Unit::Reshard() {
  if (!context_->shards_parameters() || !unsharded_.allocated()) return;
  const at::NoGradGuard no_grad;
  WaitUnsharded();
  for (std::size_t i = 0; i < placeholders_.size(); ++i) Handle(i).set_data(placeholders_[i]);
  unsharded_.Release();
}

void Unit::AllGather() {
  const at::NoGradGuard no_grad;
  filled_.assign(parameters_.size(), false);
  has_shard_ = false;
  holds_ = 0;
  WaitUnsharded();
  Reshard();
  if (context_->shards_parameters() || layout_.count() == 0) return;
  if (context_->mixed() && master_.resident()) OwnShard().copy_(master_.tensor());
  if (context_->ranks() == 1) return;
  at::Tensor unsharded = unsharded_.tensor();
  gathering_ = comm::AllGatherAsync(context_->gather, OwnShard(), unsharded, tag());
  gather_in_flight_ = true;
}

void Unit::ExpectGradients() {
  seen_.assign(parameters_.size(), false);
  missing_ = parameters_.size();
}

FlatBuffer Unit::GradientBuffer() const {
  return {context_->pool, layout_.count(), context_->master_options};
}

void Unit::BeginMicroBatch(int leaf) {
  leaf_ = leaf;
  // Releases the last step's gradient before autograd allocates the next one.
  if (unsharded_gradient_.adopted() && !filled_[0]) unsharded_gradient_.Release();
  ExpectGradients();
  sent_ = false;
}

// The buffer is one parameter without padding, and nothing else refers to the gradient's memory.
bool Unit::CanAdopt(const at::Tensor& gradient) const {
  return parameters_.size() == 1 && gradient.numel() == layout_.count() && gradient.is_contiguous() &&
         gradient.dtype() == context_->master_options.dtype() &&
         gradient.device() == context_->master_options.device() && gradient.storage().use_count() == 1 &&
         gradient.storage().nbytes() == gradient.nbytes();
}

bool Unit::Accumulate(std::size_t index) {
  const at::NoGradGuard no_grad;
  at::Tensor& gradient = Handle(index).mutable_grad();
  if (sent_ || (context_->reproducible && filled_[index])) {
    AddLate(index, gradient);
    gradient.reset();
    return false;
  }
  if (!filled_[index] && CanAdopt(gradient)) {
    unsharded_gradient_.Adopt(std::move(gradient));
  } else {
    if (!unsharded_gradient_.allocated()) {
      unsharded_gradient_.Allocate();
      ZeroPadding(unsharded_gradient_.tensor());
    }
    const at::Tensor view = ViewOf(unsharded_gradient_.tensor(), index);
    filled_[index] ? view.add_(gradient) : view.copy_(gradient);
  }
  gradient.reset();
  filled_[index] = true;
  if (seen_[index]) return false;
  seen_[index] = true;
  return --missing_ == 0;
}

void Unit::AddLate(std::size_t index, const at::Tensor& gradient) {
  if (!late_gradient_.allocated()) {
    late_gradient_.Allocate();
    late_gradient_.tensor().zero_();
  }
  const at::Tensor view = ViewOf(late_gradient_.tensor(), index);
  late_filled_[index] ? view.add_(gradient) : view.copy_(gradient);
  late_[index] = late_filled_[index] = true;
}

void Unit::EndMicroBatch() {
  if (!context_->reproducible) return;
  const at::NoGradGuard no_grad;
  if (!sent_ && Any(filled_)) {
    ZeroMissingGradients();
    leaves_.Add(leaf_, std::exchange(unsharded_gradient_, GradientBuffer()));
    filled_.assign(parameters_.size(), false);
  }
  if (late_gradient_.allocated()) {
    late_leaves_.Add(leaf_, std::exchange(late_gradient_, GradientBuffer()));
    late_filled_.assign(parameters_.size(), false);
  }
}

void Unit::TakeSumOfLeaves() {
  EndMicroBatch();
  if (leaves_.empty()) return;
  unsharded_gradient_ = leaves_.Take();
  filled_.assign(parameters_.size(), true);
}

void Unit::ZeroPadding(const at::Tensor& flat) const {
  std::vector<const FlatParameter*> by_place;
  for (const FlatParameter& p : layout_.parameters()) by_place.push_back(&p);
  std::sort(by_place.begin(), by_place.end(),
            [](const FlatParameter* a, const FlatParameter* b) { return a->offset < b->offset; });
  std::int64_t end = 0;
  const auto zero_until = [&](std::int64_t begin) {
    if (begin > end) flat.narrow(0, end, begin - end).zero_();
  };
  for (const FlatParameter* p : by_place) {
    zero_until(p->offset);
    end = p->offset + p->count;
  }
  zero_until(layout_.count());
}

void Unit::ZeroMissingGradients() {
  if (!unsharded_gradient_.allocated()) {
    unsharded_gradient_.Allocate();
    unsharded_gradient_.tensor().zero_();
    return;
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!filled_[i]) ViewOf(unsharded_gradient_.tensor(), i).zero_();
  }
}

void Unit::StartReduceScatter(bool last) {
  const at::NoGradGuard no_grad;
  // Unsharded gradients are reduced once, with the last micro-batch.
  if (!last && !context_->shards_gradients()) return;
  if (context_->reproducible) TakeSumOfLeaves();
  sent_ = true;
  ZeroMissingGradients();
  const at::Tensor& unsharded = unsharded_gradient_.tensor();
  const std::int64_t begin = context_->reduce.rank() * layout_.shard_count();
  if (!context_->shards_gradients()) {
    gradient_ = unsharded.narrow(0, begin, layout_.shard_count());
    scattered_ = gradient_;
  } else if (!gradient_.defined()) {
    gradient_ = at::empty({layout_.shard_count()}, context_->master_options);
    context_->pool->Count(Bytes(gradient_));
  }
  if (context_->ranks() == 1 || layout_.count() == 0) return;
  if (context_->shards_gradients()) scattered_ = has_shard_ ? at::empty_like(gradient_) : gradient_;
  scattering_ =
      AxisSum::ReduceScatter(context_->reduce, unsharded, scattered_, context_->reproducible, tag());
}

bool Unit::AdvanceReduceScatter(bool wait) {
  if (wait) {
    scattering_.Wait();
  } else if (!scattering_.Test()) {
    return false;
  }
  FinishReduceScatter();
  return true;
}

void Unit::FinishReduceScatter() {
  const at::NoGradGuard no_grad;
  scattering_ = AxisSum();
  if (!context_->shards_gradients() || layout_.count() == 0) return;
  if (has_shard_) gradient_.add_(scattered_);
  scattered_.reset();
  has_shard_ = true;
  unsharded_gradient_.Release();
  filled_.assign(parameters_.size(), false);
}

void Unit::StartReplicaSum() {
  if (context_->replicate.size() == 1 || layout_.count() == 0) return;
  summing_ = AxisSum::AllReduce(context_->replicate, context_->replicate_gather, gradient_,
                                context_->reproducible, tag());
}

bool Unit::AdvanceReplicaSum(bool wait) {
  if (wait) {
    summing_.Wait();
  } else if (!summing_.Test()) {
    return false;
  }
  summing_ = AxisSum();
  return true;
}

// Late gradients: of a parameter that is used by two blocks with activation checkpointing, which gets two gradients;
// with reproducible sums, of a tied parameter, which gets one from each end of the model.
void Unit::ReduceLate(bool last) {
  const at::NoGradGuard no_grad;
  const bool over_tree = context_->reproducible;
  EndMicroBatch();
  if (!late_leaves_.empty()) late_gradient_ = late_leaves_.Take();
  if (!late_gradient_.allocated()) return;
  const at::Tensor& late = late_gradient_.tensor();
  const int rank = context_->reduce.rank();
  at::Tensor shard = late.narrow(0, rank * layout_.shard_count(), layout_.shard_count());
  if (context_->ranks() > 1) {
    shard = at::empty_like(gradient_);
    AxisSum::ReduceScatter(context_->reduce, late, shard, over_tree, tag()).Wait();
  }
  if (last && context_->replicate.size() > 1) {
    AxisSum::AllReduce(context_->replicate, context_->replicate_gather, shard, over_tree, tag()).Wait();
  }
  for (const FlatSlice& slice : layout_.Slices(rank)) {
    if (!late_[slice.parameter]) continue;
    const std::int64_t count = slice.end - slice.begin;
    gradient_.narrow(0, slice.shard_offset, count).add_(shard.narrow(0, slice.shard_offset, count));
  }
  late_gradient_.Release();
  late_.assign(parameters_.size(), false);
  late_filled_.assign(parameters_.size(), false);
}

std::vector<at::Tensor> Unit::PartialGradients(const std::string& axis) const {
  std::vector<at::Tensor> slices;
  for (const FlatSlice& slice : layout_.Slices(context_->reduce.rank())) {
    if (!IsPartial(parameters_[slice.parameter]->placement, axis)) continue;
    slices.push_back(gradient_.narrow(0, slice.shard_offset, slice.end - slice.begin));
  }
  return slices;
}

}  // namespace plait::parallel
