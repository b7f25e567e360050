#include "tools/dist_test/output_folder.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/path.h"
#include "base/status_macros.h"

namespace plait::dist_test {

absl::StatusOr<OutputFolder> OpenOutputFolder(const Config& config, const comm::Communicator& world) {
  std::int64_t now[1] = {absl::ToUnixSeconds(absl::Now())};
  world.Broadcast(comm::BufferOf(absl::MakeSpan(now)), 0);
  OutputFolder folder;
  folder.stamp = absl::FormatTime("%Y-%m-%d-%H%M%S", absl::FromUnixSeconds(now[0]), absl::LocalTimeZone());
  folder.path = config.outputs.empty() ? base::FromUser(absl::StrCat("outputs/test_dist/", folder.stamp))
                                       : config.outputs;
  absl::Status writable;
  if (world.rank() == 0) writable = base::Prefixed(base::ProbeWritableFolder(folder.path), "--outputs");
  PLAIT_RETURN_IF_ERROR(world.Agree(writable));
  return folder;
}

}  // namespace plait::dist_test
