// save_versions FOLDER: the saves of planned_saves.h; rank 0 marks each (base/testing/file_operations.h). The disk of the
// other ranks is slow, so that a rank that does not wait for them is seen.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "base/testing/file_operations.h"
#include "comm/session_main.h"
#include "parallel/checkpoint/testing/planned_saves.h"

namespace {

std::atomic<bool> slow_disk = false;

}  // namespace

// Instead of the C library's.
extern "C" int fsync(int file) {
  if (slow_disk) usleep(50'000);
  return static_cast<int>(syscall(SYS_fsync, file));
}

int main(int argc, char** argv) {
  return plait::comm::RunMain(argc, argv, {}, [&](plait::comm::Session& session) {
    if (argc != 2) return absl::InvalidArgumentError("expected FOLDER");
    slow_disk = session.world().rank() != 0;
    return plait::parallel::testing::SaveAsPlanned(session.world(), argv[1], [&](int version) {
      if (session.world().rank() == 0) plait::base::testing::WriteMark(version);
    });
  });
}
