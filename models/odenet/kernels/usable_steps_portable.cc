#include "models/odenet/kernels/step.h"

namespace plait::odenet {

std::vector<const StepKernels*> UsableSteps() { return {PortableSteps()}; }

}  // namespace plait::odenet
