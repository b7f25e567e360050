#include "tools/doctor_checks/probe.h"

namespace plait::doctor {

bool BuiltWithCuda() { return false; }

}  // namespace plait::doctor
