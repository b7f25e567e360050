// What a rank's time goes into: the kinds of work that the model of scaling counts and that runs are measured
// by.
#ifndef PLAIT_TESTS_BENCHMARKS_WORK_KIND_H_
#define PLAIT_TESTS_BENCHMARKS_WORK_KIND_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace plait::benchmarks {

enum class WorkKind {
  kFineStep,         // Phi on level 0
  kKeptFineStep,     // the same, its activations kept for the adjoint
  kCoarseStep,       // Phi on a coarser level, one part of it (GruStepOptions)
  kLinearisation,    // Phi again at the final states, its activations kept, for the first adjoint step there
  kFineAdjoint,      // adjoint step of level 0
  kKeptFineAdjoint,  // the same, its gate gradients kept for the weight gradients
  kCoarseAdjoint,    // adjoint step of a coarser level, one part of it
  kGradient,         // the weight gradients of one C-interval
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

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_WORK_KIND_H_
