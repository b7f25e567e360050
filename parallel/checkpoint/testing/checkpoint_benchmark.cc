// Benchmarks writing and reading checkpoints, and how long an asynchronous save blocks training:
//
//   mpirun -n 2 checkpoint_benchmark FOLDER [MEGABYTES_PER_RANK] [ROUNDS]
//
// Prints one line per operation with the median of the rounds on rank 0, and for comparison the same bytes written with
// plain system calls (write, fsync) in the same folder, over the previous round's file. Before each operation it syncs
// and pauses, so that none waits for the write-back of the one before. Reads come from the page cache.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/status_macros.h"
#include "comm/session_main.h"
#include "parallel/checkpoint/async_saver.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"
#include "parallel/checkpoint/step_folders.h"

namespace {

using namespace plait;
using parallel::TensorPiece;
using parallel::TensorSpec;

constexpr int kTensors = 150;  // as a GPT of 12 layers has

// This rank's halves, quarters, ... of all tensors.
struct Shards {
  std::vector<float> values;
  std::vector<TensorPiece> pieces;

  Shards(const comm::Communicator& world, std::int64_t megabytes)
      : values(static_cast<std::size_t>(megabytes) * 250000, 1.5f) {
    const auto each = static_cast<std::int64_t>(values.size()) / kTensors;
    for (std::int64_t t = 0; t < kTensors; ++t) {
      const TensorSpec tensor{"model", absl::StrCat("layer.", t), at::kFloat, {world.size() * each}};
      pieces.push_back({tensor, world.rank() * each, (world.rank() + 1) * each, values.data() + t * each});
    }
  }
  std::int64_t bytes() const { return static_cast<std::int64_t>(values.size()) * 4; }
};

double SecondsOf(const std::function<absl::Status()>& work, absl::Status& status) {
  const auto start = std::chrono::steady_clock::now();
  if (status.ok()) status = work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Print(const comm::Communicator& world, const char* what, std::vector<double> seconds,
           std::int64_t bytes) {
  std::sort(seconds.begin(), seconds.end());
  if (world.rank() != 0) return;
  std::printf("%-34s median %8.1f ms  least %8.1f  most %8.1f  %8.1f MB/s\n", what,
              seconds[seconds.size() / 2] * 1e3, seconds.front() * 1e3, seconds.back() * 1e3,
              static_cast<double>(bytes) / 1e6 / seconds[seconds.size() / 2]);
}

void LetTheDiskRest() {
  sync();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

absl::Status PlainWrite(const std::string& path, const Shards& shards) {
  PLAIT_ASSIGN_OR_RETURN(const auto file,
                         base::FileDescriptor::Open(path, base::FileDescriptor::Mode::kCreate));
  PLAIT_RETURN_IF_ERROR(file.WriteAt(shards.values.data(), shards.bytes(), 0));
  return file.Sync();
}

absl::Status ReadAll(const std::string& root, std::int64_t step, Shards& shards) {
  PLAIT_ASSIGN_OR_RETURN(auto checkpoint, parallel::Checkpoint::Open(parallel::StepFolder(root, step)));
  for (const TensorPiece& piece : shards.pieces) {
    auto* to = const_cast<std::byte*>(static_cast<const std::byte*>(piece.data));
    PLAIT_RETURN_IF_ERROR(checkpoint.Read(parallel::PathOf(piece.tensor), piece.begin, piece.end,
                                          absl::MakeSpan(to, piece.bytes())));
  }
  return absl::OkStatus();
}

absl::Status Measure(const comm::Communicator& world, const std::string& root, std::int64_t megabytes,
                     int rounds) {
  Shards shards(world, megabytes);
  parallel::AsyncSaver saver(world, root, {.keep_last = 1});
  std::vector<double> plain, save, start, finish, read;
  absl::Status status;
  std::filesystem::create_directories(root);
  for (std::int64_t step = 0; step < 2 * std::int64_t{rounds}; step += 2) {
    const std::string file = absl::StrCat(root, "/plain_", world.rank());
    const auto timed = [&](std::vector<double>& times, const std::function<absl::Status()>& work) {
      if (&times != &finish) LetTheDiskRest();
      world.Barrier();
      times.push_back(SecondsOf(work, status));
    };
    timed(plain, [&] { return PlainWrite(file, shards); });
    timed(save, [&] {
      return parallel::SaveCheckpoint(world, root, step, shards.pieces, {}, {.keep_last = 1}).status();
    });
    timed(start, [&] { return saver.Start(step + 1, shards.pieces, {}); });
    timed(finish, [&] { return saver.Finish().status(); });
    timed(read, [&] { return ReadAll(root, step + 1, shards); });
    PLAIT_RETURN_IF_ERROR(world.Agree(status));
  }
  const std::int64_t bytes = shards.bytes() * world.size();
  Print(world, "write and fsync, nothing else", plain, bytes);
  Print(world, "SaveCheckpoint", save, bytes);
  Print(world, "AsyncSaver::Start (stands still)", start, bytes);
  Print(world, "AsyncSaver::Finish, at once", finish, bytes);
  Print(world, "Checkpoint::Read, own shards", read, bytes);
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  return comm::RunMain(argc, argv, {}, [&](comm::Session& session) -> absl::Status {
    if (argc < 2) return absl::InvalidArgumentError("expected FOLDER [MEGABYTES_PER_RANK] [ROUNDS]");
    return Measure(session.world(), argv[1], argc > 2 ? std::atoll(argv[2]) : 200,
                   argc > 3 ? std::atoi(argv[3]) : 5);
  });
}
