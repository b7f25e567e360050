// The kinds of work of a rank in the steps of a network, as LayerParallel counts and times them; also the inputs of the
// scaling model (mgrit/scaling).
#ifndef PLAIT_MGRIT_LAYER_PARALLEL_WORK_TIMES_H_
#define PLAIT_MGRIT_LAYER_PARALLEL_WORK_TIMES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace plait::mgrit {

// Counted in evaluations of the step (TensorStep::Evaluations).
enum class WorkKind {
  kFineStep,         // Phi on level 0
  kKeptFineStep,     // the same at its final state: what the adjoint needs may be kept
  kCoarseStep,       // Phi on a coarser level
  kLinearisation,    // Phi again at the final states, for the first adjoint step there
  kFineAdjoint,      // adjoint step of level 0
  kKeptFineAdjoint,  // the same at its final adjoint: what the gradients need may be kept
  kCoarseAdjoint,    // adjoint step of a coarser level
  kGradient,         // gradients of the parameters, by steps of level 0
};

inline constexpr std::size_t kWorkKinds = 8;
inline constexpr std::array<const char*, kWorkKinds> kWorkNames = {
    "fine_step",    "kept_fine_step",    "coarse_step",    "linearisation",
    "fine_adjoint", "kept_fine_adjoint", "coarse_adjoint", "gradient"};

template <typename T>
struct PerWorkKind {
  std::array<T, kWorkKinds> values{};
  T& operator[](WorkKind kind) { return values[static_cast<std::size_t>(kind)]; }
  const T& operator[](WorkKind kind) const { return values[static_cast<std::size_t>(kind)]; }
};

using WorkCounts = PerWorkKind<std::int64_t>;
using WorkSeconds = PerWorkKind<double>;

// Work of one rank. Seconds are those of the clock LayerParallel::set_work_clock.
struct WorkTimes {
  WorkCounts counts;
  // A linearisation may happen inside the adjoint step that first needs it; the time of such a call is split, using the
  // mean time of adjoint steps of its kind without one.
  WorkSeconds seconds;
  // Evaluations of Phi and its adjoint on level 0, and on all levels; linearisations are not counted.
  std::int64_t fine_evaluations() const {
    return counts[WorkKind::kFineStep] + counts[WorkKind::kKeptFineStep] + counts[WorkKind::kFineAdjoint] +
           counts[WorkKind::kKeptFineAdjoint];
  }
  std::int64_t evaluations() const {
    return fine_evaluations() + counts[WorkKind::kCoarseStep] + counts[WorkKind::kCoarseAdjoint];
  }
  // The difference from an earlier snapshot.
  WorkTimes Since(const WorkTimes& before) const {
    WorkTimes since = *this;
    for (std::size_t kind = 0; kind < kWorkKinds; ++kind) {
      since.counts.values[kind] -= before.counts.values[kind];
      since.seconds.values[kind] = std::max(0.0, since.seconds.values[kind] - before.seconds.values[kind]);
    }
    return since;
  }
  double total_seconds() const {
    double total = 0;
    for (const double kind : seconds.values) total += kind;
    return total;
  }
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_WORK_TIMES_H_
