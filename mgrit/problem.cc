#include "mgrit/problem.h"

#include <cstdlib>

#include "base/check.h"

namespace plait::mgrit {

void MissingOperation(const char* name) {
  PLAIT_CHECK(false) << "the problem does not define " << name << ", which this solve needs";
  std::abort();
}

void MismatchedStates(std::size_t x, std::size_t y) {
  PLAIT_CHECK(false)
      << "states of " << x << " and " << y
      << " numbers in one operation; Make, Initialize and Step of the problem must give states "
         "of a level the same size";
  std::abort();
}

void AnyProblem::StepMany(absl::Span<const StepTask> tasks) {
  for (const StepTask& task : tasks) Step(task.interval, *task.u, *task.out);
}

}  // namespace plait::mgrit
