#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "tools/doctor_checks/probe.h"

namespace plait::doctor {
namespace {

// Why cuInit of the driver's library fails; empty if it succeeds.
std::string DriverError() {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return "libcuda.so.1 was not found";
  using Init = int (*)(unsigned);
  const auto init = reinterpret_cast<Init>(dlsym(library, "cuInit"));
  const int code = init == nullptr ? -1 : init(0);
  // The library stays: its threads may still run.
  return code == 0 ? "" : absl::StrCat("cuInit gave error ", code);
}

// "2.28.9" of 22809, "2.7.8" of 2708.
std::string NcclVersion() {
  void* library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return "";
  using GetVersion = int (*)(int*);
  const auto get_version = reinterpret_cast<GetVersion>(dlsym(library, "ncclGetVersion"));
  int version = 0;
  if (get_version == nullptr || get_version(&version) != 0) return "";
  const int major_unit = version < 10000 ? 1000 : 10000;
  return absl::StrCat(version / major_unit, ".", version % major_unit / 100, ".", version % 100);
}

}  // namespace

void ProbeDevices(RankFacts& facts) {
  if (facts.devices == 0) return;
  facts.driver_error = DriverError();
  facts.nccl_version = NcclVersion();
}

}  // namespace plait::doctor
