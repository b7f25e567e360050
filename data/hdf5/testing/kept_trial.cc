// TryInChild for fuzzing: one child walks many files, as forking a process under a sanitizer takes milliseconds.
#include <hdf5.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "data/hdf5/quiet_child.h"
#include "data/hdf5/trial.h"
#include "data/hdf5/walk.h"

// From the sanitizer runtime. Without resetting it, libFuzzer would save the input when the child dies, too.
extern "C" void __sanitizer_set_death_callback(void (*callback)());

namespace plait::data {
namespace {

// HDF5 leaks memory on damaged files, so the child is replaced now and then.
constexpr int kFilesOfAChild = 2000;
constexpr int kSecondsOfAFile = 10;
constexpr int kKeptByHdf5 = 1 << 22;
constexpr std::int64_t kMostBytes = std::int64_t{2} << 30;

[[noreturn]] void RunChild(int parent) {
  BecomeQuietChild(kMostBytes);
  __sanitizer_set_death_callback(nullptr);
  char path[256];
  for (ssize_t bytes; (bytes = recv(parent, path, sizeof(path), 0)) > 0;) {
    const itimerval end = {{0, 0}, {kSecondsOfAFile, 0}};
    setitimer(ITIMER_PROF, &end, nullptr);
    WalkFile(std::string(path, static_cast<std::size_t>(bytes)));
    if (send(parent, "", 1, MSG_NOSIGNAL) != 1) break;
  }
  _exit(0);
}

class Child {
 public:
  // HDF5 keeps the half megabyte that it takes for each open file: its pages take longer than the file does.
  Child() { H5set_free_list_limits(kKeptByHdf5, kKeptByHdf5, -1, -1, -1, -1); }

  // Whether the child survives the file. If a reused child dies, the file is tried again in a new one.
  bool Survives(const std::string& path) {
    if (files_ > 0 && Ask(path)) return true;
    End();
    Start();
    return Ask(path);
  }

 private:
  void Start() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 || (process_ = fork()) < 0)
      std::abort();
    if (process_ == 0) {
      close(ends[0]);
      RunChild(ends[1]);
    }
    close(ends[1]);
    end_ = ends[0];
    files_ = kFilesOfAChild;
  }

  bool Ask(const std::string& path) {
    char answer;
    --files_;
    return send(end_, path.data(), path.size(), MSG_NOSIGNAL) > 0 && recv(end_, &answer, 1, 0) == 1;
  }

  void End() {
    if (process_ < 0) return;
    close(end_);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
  }

  pid_t process_ = -1;
  int end_ = -1, files_ = 0;
};

struct Verdict {
  ino_t file = 0;
  bool survives = false;
};

}  // namespace

absl::Status TryInChild(const std::string& path) {
  static Child& child = *new Child;
  static Verdict last;  // several readers take the same file
  struct stat about;
  if (stat(path.c_str(), &about) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be opened"));
  if (about.st_ino != last.file) last = {about.st_ino, child.Survives(path)};
  if (last.survives) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": damaged: HDF5 crashes on it"));
}

}  // namespace plait::data
