#include "tools/training/step_work.h"

#include "tools/device/device.h"

namespace plait::training {

void StepWork::Begin() {
  mgrit::LayerParallel& solver = *model_.solver();
  if (steps_ == 1) before_ = solver.work_times();
  if (waits()) solver.set_work_clock([device = model_.device()] { return device::SecondsWhenDone(device); });
}

void StepWork::End() {
  mgrit::LayerParallel& solver = *model_.solver();
  if (steps_ == 1 || !on_device()) work_ = solver.work_times().Since(before_);
  if (waits()) solver.set_work_clock({});
  ++steps_;
}

}  // namespace plait::training
