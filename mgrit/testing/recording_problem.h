// A problem that records every evaluation of its step.
#ifndef PLAIT_MGRIT_TESTING_RECORDING_PROBLEM_H_
#define PLAIT_MGRIT_TESTING_RECORDING_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "mgrit/problem.h"

namespace plait::mgrit::testing {

// `Base` derives from Problem<S>.
template <typename Base, typename S>
class Recording : public Base {
 public:
  struct Evaluation {
    StepInterval interval;
    std::vector<std::byte> input;
  };

  using Base::Base;
  using Base::Step;

  void Step(const StepInterval& interval, const S& u, S& out) override {
    Evaluation evaluation;
    evaluation.interval = interval;
    evaluation.input.resize(static_cast<std::size_t>(StateOperations<S>::PackedBytes(u)));
    StateOperations<S>::Pack(u, absl::MakeSpan(evaluation.input));
    evaluations_.push_back(std::move(evaluation));
    Base::Step(interval, u, out);
  }
  bool PrefersMany() const override { return prefers_many_; }
  void StepMany(absl::Span<const StepTask> tasks) override {
    ++batches_;
    Base::StepMany(tasks);
  }

  void set_prefers_many(bool value) { prefers_many_ = value; }
  const std::vector<Evaluation>& evaluations() const { return evaluations_; }
  std::int64_t batches() const { return batches_; }
  void Forget() { evaluations_.clear(); }

 private:
  std::vector<Evaluation> evaluations_;
  bool prefers_many_ = false;
  std::int64_t batches_ = 0;
};

}  // namespace plait::mgrit::testing

#endif  // PLAIT_MGRIT_TESTING_RECORDING_PROBLEM_H_
