#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tools/doctor_checks/checks.h"

namespace plait::doctor {

Finding CheckDevices(const Ranks& ranks) {
  const bool any =
      std::any_of(ranks.begin(), ranks.end(), [](const RankFacts& rank) { return rank.devices > 0; });
  const std::string fine = any ? absl::StrCat(ranks[0].devices, " on ", ranks[0].host) : "no GPU; CPU runs";
  return Judge("GPU", fine, ranks, [&](const RankFacts& rank) -> std::optional<Complaint> {
    if (rank.devices == 0) {
      if (!any) return std::nullopt;
      return Complaint{Severity::kError, "no GPU here, but on other hosts", "give the job hosts of one kind"};
    }
    if (!rank.driver_error.empty()) {
      return Complaint{
          Severity::kError,
          absl::StrCat(rank.devices, " devices, but the driver does not load: ", rank.driver_error),
          "install the driver's libcuda.so.1 or pass it into the container"};
    }
    if (!rank.built_with_cuda) {
      return Complaint{Severity::kWarning, absl::StrCat(rank.devices, " devices, but this build has no CUDA"),
                       "install nvcc and build again"};
    }
    return std::nullopt;
  });
}

Finding CheckNccl(const Ranks& ranks) {
  const std::string& version = ranks[0].nccl_version;
  const std::string fine = ranks[0].devices == 0 ? "not needed" : version;
  return Judge("NCCL", fine, ranks, [&](const RankFacts& rank) -> std::optional<Complaint> {
    if (rank.devices == 0 || !rank.built_with_cuda) return std::nullopt;
    if (rank.nccl_version.empty()) {
      return Complaint{Severity::kError,
                       "libnccl.so.2 does not load: the programs of this build do not start",
                       "install NCCL or put its folder on LD_LIBRARY_PATH"};
    }
    if (rank.nccl_version == version || version.empty())
      return std::nullopt;  // what rank 0 lacks is its own line
    return Complaint{Severity::kError, absl::StrCat("version ", rank.nccl_version, ", rank 0 has ", version),
                     "install one version of NCCL on all hosts"};
  });
}

}  // namespace plait::doctor
