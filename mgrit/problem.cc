#include "mgrit/problem.h"

#include <cstdlib>

#include "base/check.h"

namespace plait::mgrit {

void MissingOperation(const char* name) {
  PLAIT_CHECK(false) << "the problem does not define " << name << ", which this solve needs";
  std::abort();
}

void AnyProblem::StepMany(absl::Span<const StepTask> tasks) {
  for (const StepTask& task : tasks) Step(task.interval, *task.u, *task.out);
}

}  // namespace plait::mgrit
