#include "tools/training_program/offload_flag.h"

#include "absl/strings/str_cat.h"
#include "base/path.h"

namespace plait::training_program {

std::string OffloadFolder(const std::string& flag) { return flag == "none" ? "" : base::FromUser(flag); }

absl::Status CheckOffload(const Offload& offload, parallel::Strategy strategy) {
  if (!offload.parameters) return absl::OkStatus();
  if (offload.folder.empty()) {
    return absl::InvalidArgumentError("--offload-params: say into which folder, with --offload=FOLDER");
  }
  if (parallel::ShardsParameters(strategy)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--offload-params: ", parallel::Name(strategy),
                   " keeps the parameters whole on every rank; expected --strategy=fsdp"));
}

parallel::StateStoreOptions StatePlaceOf(const Offload& offload) {
  if (offload.folder.empty()) return {};
  return {.place = parallel::StatePlace::kFile, .folder = offload.folder};
}

}  // namespace plait::training_program
