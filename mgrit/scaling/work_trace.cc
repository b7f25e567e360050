#include "mgrit/scaling/work_trace.h"

#include <algorithm>
#include <set>
#include <utility>

#include "mgrit/adjoint.h"
#include "mgrit/scaling/cycle_replay.h"

namespace plait::mgrit::scaling {
namespace {

// Appends to a rank's events; consecutive work of the same kind is merged.
class Recorder {
 public:
  explicit Recorder(RankTrace& trace) : trace_(trace) {}

  void Work(WorkKind kind, std::int64_t count = 1) {
    trace_.work[kind] += count;
    const bool same = !trace_.events.empty() && trace_.events.back().type == Event::Type::kWork &&
                      trace_.events.back().work == kind;
    if (same) {
      trace_.events.back().count += count;
    } else {
      trace_.events.push_back({.type = Event::Type::kWork, .work = kind, .count = count});
    }
  }
  void Message(Event::Type type, int peer, int tag, Payload payload) {
    trace_.events.push_back({.type = type, .peer = peer, .tag = tag, .payload = payload});
  }
  void FinishSends() { trace_.events.push_back({.type = Event::Type::kFinishSends}); }
  void Collective(Payload payload, std::int64_t count = 1) {
    trace_.events.push_back({.type = Event::Type::kCollective, .count = count, .payload = payload});
  }
  RankTrace& trace() { return trace_; }

 private:
  RankTrace& trace_;
};

// Traces one rank through a batch. All ranks record collectives.
class RankBatch {
 public:
  RankBatch(const BatchShape& shape, const Partition& partition, int rank, RankTrace& trace)
      : shape_(shape),
        partition_(partition),
        rank_(rank),
        recorder_(trace),
        time_{.start = 0, .stop = 1, .steps = shape.steps} {}

  void Run() {
    Forward();
    if (shape_.ranks > 1) recorder_.Collective(Payload::kState);
    Backward();
    if (shape_.ranks > 1 && shape_.wants_input_gradient) recorder_.Collective(Payload::kState);
    Gradients();
  }

 private:
  void Forward() {
    RankTrace& trace = recorder_.trace();
    Options options = shape_.solver.forward;
    options.final_relaxation = FinalRelaxation::kAllPoints;
    const Grid grid(time_, options, partition_, rank_);
    trace.forward_steps.assign(grid.levels(), 0);
    CycleObserver observer = Observer(trace.forward_messages, 0);
    observer.step = [&](int level, std::int64_t index, bool final) {
      ++trace.forward_steps[level];
      ForwardStep(grid, level, index, final);
    };
    CycleReplay(options, grid, rank_, observer).Solve(shape_.propagation);
    recorder_.FinishSends();
    if (shape_.linearises_ahead) LineariseAhead();
  }

  // The own steps that the final sweep did not take, i.e. those to C-points.
  void LineariseAhead() {
    const int position = partition_.PositionOf(rank_);
    for (std::int64_t step = partition_.first_step(position); step < partition_.last_step(position); ++step) {
      if (linearised_.insert({0, step}).second) recorder_.Work(WorkKind::kLinearisation);
    }
  }

  void ForwardStep(const Grid& grid, int level, std::int64_t index, bool final) {
    if (level > 0) return recorder_.Work(WorkKind::kCoarseStep, Evaluations(grid.Interval(level, index)));
    if (final) linearised_.insert({0, index});
    recorder_.Work(final ? WorkKind::kKeptFineStep : WorkKind::kFineStep);
  }

  std::int64_t Evaluations(const StepInterval& interval) const {
    return shape_.evaluations ? shape_.evaluations(interval) : 1;
  }

  void Backward() {
    RankTrace& trace = recorder_.trace();
    Options options = shape_.solver.backward;
    options.final_relaxation = FinalRelaxation::kAllPoints;
    const Grid grid(Reversed(time_), options, partition_.Mirrored(), rank_);
    trace.backward_steps.assign(grid.levels(), 0);
    CycleObserver observer = Observer(trace.backward_messages, grid.levels());
    observer.step = [&](int level, std::int64_t index, bool final) {
      ++trace.backward_steps[level];
      const StepInterval interval = ForwardInterval(grid.Interval(level, index), time_);
      const std::int64_t evaluations = Evaluations(interval);
      if (linearised_.insert({level, interval.fine_start}).second) {
        recorder_.Work(WorkKind::kLinearisation, evaluations);
      }
      const WorkKind fine = final ? WorkKind::kKeptFineAdjoint : WorkKind::kFineAdjoint;
      recorder_.Work(level > 0 ? WorkKind::kCoarseAdjoint : fine, evaluations);
    };
    CycleReplay(options, grid, rank_, observer).Solve(shape_.propagation);
    recorder_.FinishSends();
  }

  CycleObserver Observer(std::int64_t& messages, int first_tag) {
    CycleObserver observer;
    observer.send = [this, &messages, first_tag](int level, int rank) {
      ++messages;
      recorder_.Message(Event::Type::kSend, rank, first_tag + level, Payload::kState);
    };
    observer.receive = [this, first_tag](int level, int rank) {
      recorder_.Message(Event::Type::kReceive, rank, first_tag + level, Payload::kState);
    };
    observer.all_reduce = [this](std::int64_t values) {
      if (shape_.ranks > 1) recorder_.Collective(Payload::kNorms, values);
    };
    return observer;
  }

  void Gradients() {
    const Options& options = shape_.solver.forward;
    interval_ = options.max_levels > 1 ? AtLevel(options.cfactors, 0) : 1;
    leaves_ = (shape_.steps + interval_ - 1) / interval_;
    if (shape_.shares_parameters) {
      int height = 0;
      while ((std::int64_t{1} << height) < leaves_) ++height;
      SumNode(height, 0);
      if (shape_.ranks > 1) recorder_.Collective(Payload::kGradient);
      return;
    }
    for (std::int64_t leaf = 0; leaf < leaves_; ++leaf) {
      if (partition_.RankAt(PositionOf(leaf)) == rank_) AddGradient(leaf);
    }
  }

  void AddGradient(std::int64_t leaf) {
    recorder_.Work(WorkKind::kGradient, std::min(interval_, shape_.steps - leaf * interval_));
  }

  // mgrit/layer_parallel/tree_sum.h: the terms are the C-intervals.
  int PositionOf(std::int64_t leaf) const { return partition_.OwnerPosition(leaf * interval_); }

  void SumNode(int height, std::int64_t index) {
    const std::int64_t first = index << height;
    const std::int64_t last = std::min(first + (std::int64_t{1} << height), leaves_) - 1;
    const int left = PositionOf(first);
    const int left_owner = partition_.RankAt(left);
    if (left == PositionOf(last) && left_owner != rank_) return;
    if (height == 0) return AddGradient(first);
    SumNode(height - 1, 2 * index);
    const std::int64_t middle = (2 * index + 1) << (height - 1);
    if (middle > last) return;
    SumNode(height - 1, 2 * index + 1);
    const int right_owner = partition_.RankAt(PositionOf(middle));
    if (right_owner == left_owner) return;
    const int tag = kFirstGradientTag + height;
    if (rank_ == right_owner) {
      recorder_.Message(Event::Type::kSend, left_owner, tag, Payload::kGradient);
      recorder_.FinishSends();
    }
    if (rank_ == left_owner) recorder_.Message(Event::Type::kReceive, right_owner, tag, Payload::kGradient);
  }

  static constexpr int kFirstGradientTag = 1000;

  const BatchShape& shape_;
  const Partition& partition_;
  int rank_;
  Recorder recorder_;
  TimeGrid time_;
  // Level and first fine step of the forward steps whose activations are kept.
  std::set<std::pair<int, std::int64_t>> linearised_;
  std::int64_t interval_ = 1;
  std::int64_t leaves_ = 1;
};

}  // namespace

std::vector<RankTrace> TraceBatch(const BatchShape& shape) {
  const Partition partition = Partition::OfWholeIntervals(shape.steps, shape.ranks, shape.solver.forward);
  std::vector<RankTrace> traces(shape.ranks);
  for (int rank = 0; rank < shape.ranks; ++rank) RankBatch(shape, partition, rank, traces[rank]).Run();
  return traces;
}

}  // namespace plait::mgrit::scaling
