#include "tools/training_program/output_folder.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/path.h"
#include "base/status_macros.h"

namespace plait::training_program {

absl::StatusOr<OutputFolder> OpenOutputFolder(const std::string& program, const std::string& outputs,
                                              const comm::Communicator& world) {
  std::int64_t now[1] = {absl::ToUnixSeconds(absl::Now())};
  world.Broadcast(comm::BufferOf(absl::MakeSpan(now)), 0);
  OutputFolder folder;
  folder.stamp = absl::FormatTime("%Y-%m-%d-%H%M%S", absl::FromUnixSeconds(now[0]), absl::LocalTimeZone());
  folder.path =
      outputs.empty() ? base::FromUser(absl::StrCat("outputs/", program, "/", folder.stamp)) : outputs;
  absl::Status writable;
  if (world.rank() == 0) writable = base::Prefixed(base::ProbeWritableFolder(folder.path), "--outputs");
  PLAIT_RETURN_IF_ERROR(world.Agree(writable));
  return folder;
}

}  // namespace plait::training_program
