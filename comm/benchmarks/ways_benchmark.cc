// All-reduce, reduce-scatter and all-gather by every algorithm of comm/mpi, alternating in one run:
//
//   bazel run //comm/benchmarks:ways_benchmark -- [--nproc=2] [--rounds=15] [--largest_megabytes=128]
//       [--bytes=N: this size alone] [--shared_bytes_per_rank=N]
//
//   milliseconds: least, median and greatest of 15 rounds; 2 ranks
//   operation          MB   MPI                    ring                   shared memory          peers' memory
//   all_reduce       3.40   1.22  1.25  1.40       0.41  0.42  0.50       0.17  0.18  0.25       0.15  0.17  0.19
//
// MB (10^6 bytes): of the whole buffer, float32. Each number is the slowest rank's mean over several consecutive calls.
// Ranks: those of the launcher, else --nproc on this machine.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "comm/communicator.h"
#include "comm/group.h"
#include "comm/launch/launcher.h"
#include "comm/launch/supervision/run_on_ranks.h"
#include "comm/mpi/mpi_backend.h"
#include "comm/session_main.h"

namespace {

using plait::comm::Buffer;
using plait::comm::Communicator;
using plait::comm::DataType;
using plait::comm::MpiOptions;

struct Options {
  int ranks = 2;
  int rounds = 15;
  std::int64_t largest_megabytes = 128;
  std::int64_t bytes = 0;  // 0: 64 KiB to largest_megabytes
  std::int64_t shared_bytes_per_rank = MpiOptions{}.shared_bytes_per_rank;
};

struct Way {
  const char* name;
  Communicator ranks;
};

enum class Exchange { kAllReduce, kReduceScatter, kAllGather };
constexpr const char* kNames[] = {"all_reduce", "reduce_scatter", "all_gather"};

// `--name=N` sets a number.
template <typename Number>
void Take(const std::string& flag, int argc, char** argv, Number* number) {
  for (int i = 1; i < argc; ++i) {
    if (absl::StartsWith(argv[i], flag)) *number = static_cast<Number>(std::atoll(argv[i] + flag.size()));
  }
}

std::vector<Way> Ways(std::int64_t shared_bytes_per_rank) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  const auto over = [&](std::int64_t shared_bytes, std::int64_t ring_bytes, bool read_peers) {
    const MpiOptions options = {
        .shared_bytes_per_rank = shared_bytes, .ring_bytes = ring_bytes, .read_peers = read_peers};
    return Communicator(plait::comm::MakeWorldGroup(plait::comm::MakeMpiWorldBackend(options), "world",
                                                    std::make_shared<plait::comm::Journal>()));
  };
  return {{"MPI", over(0, kNever, false)},
          {"ring", over(0, 1, false)},
          {"shared memory", over(shared_bytes_per_rank, 1, false)},
          {"peers' memory", over(shared_bytes_per_rank, 1, true)}};
}

void Call(const Way& way, Exchange exchange, Buffer values, Buffer part) {
  switch (exchange) {
    case Exchange::kAllReduce:
      return way.ranks.AllReduce(values);
    case Exchange::kReduceScatter:
      return way.ranks.ReduceScatter(values, part);
    case Exchange::kAllGather:
      return way.ranks.AllGather(part, values);
  }
}

double SlowestMilliseconds(const std::function<void()>& call, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call();
  double milliseconds = 1e3 * (MPI_Wtime() - begin) / calls;
  MPI_Allreduce(MPI_IN_PLACE, &milliseconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return milliseconds;
}

void Row(const std::vector<Way>& ways, Exchange exchange, Buffer values, Buffer part, int rounds,
         bool print) {
  const int calls = static_cast<int>(std::clamp<std::int64_t>((8 << 20) / values.bytes(), 1, 20));
  std::vector<std::vector<double>> milliseconds(ways.size());
  for (int round = -1; round < rounds; ++round) {  // the first one warms up
    for (std::size_t way = 0; way < ways.size(); ++way) {
      const double t = SlowestMilliseconds([&] { Call(ways[way], exchange, values, part); }, calls);
      if (round >= 0) milliseconds[way].push_back(t);
    }
  }
  if (!print) return;
  std::printf("%-14s %8.2f", kNames[static_cast<int>(exchange)], static_cast<double>(values.bytes()) / 1e6);
  for (std::vector<double>& t : milliseconds) {
    std::sort(t.begin(), t.end());
    std::printf("  %7.3f %7.3f %7.3f", t.front(), t[t.size() / 2], t.back());
  }
  std::printf("\n");
  std::fflush(stdout);
}

// Bytes, growing.
std::vector<std::int64_t> Sizes(const Options& options) {
  if (options.bytes > 0) return {options.bytes};
  const std::int64_t largest = options.largest_megabytes << 20;
  std::vector<std::int64_t> sizes = {std::min<std::int64_t>(3'400'000, largest), largest};
  for (std::int64_t bytes = 64 << 10; bytes < largest; bytes *= 4) sizes.push_back(bytes);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

absl::Status Run(const Communicator& world, const Options& options) {
  const std::vector<Way> ways = Ways(options.shared_bytes_per_rank);
  const bool print = world.rank() == 0;
  if (print) {
    std::printf("milliseconds: least, median and greatest of %d rounds; %d ranks\n%-14s %8s", options.rounds,
                world.size(), "operation", "MB");
    for (const Way& way : ways) std::printf("  %-23s", way.name);
    std::printf("\n");
  }
  const std::vector<std::int64_t> sizes = Sizes(options);
  std::vector<float> values(sizes.back() / sizeof(float)), part(values.size() / world.size());
  for (const Exchange exchange : {Exchange::kAllReduce, Exchange::kReduceScatter, Exchange::kAllGather}) {
    for (const std::int64_t bytes : sizes) {
      const std::int64_t per_part = bytes / static_cast<std::int64_t>(sizeof(float)) / world.size();
      std::fill(values.begin(), values.end(), 0.0f);
      Row(ways, exchange, {values.data(), per_part * world.size(), DataType::kFloat32},
          {part.data(), per_part, DataType::kFloat32}, options.rounds, print);
    }
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  Take("--nproc=", argc, argv, &options.ranks);
  Take("--rounds=", argc, argv, &options.rounds);
  Take("--largest_megabytes=", argc, argv, &options.largest_megabytes);
  Take("--bytes=", argc, argv, &options.bytes);
  Take("--shared_bytes_per_rank=", argc, argv, &options.shared_bytes_per_rank);
  if (!plait::comm::DetectLauncher().starts_mpi()) {
    return plait::comm::RunOnRanks(options.ranks, argv);
  }
  return plait::comm::RunMain(argc, argv, {}, [&](plait::comm::Session& session) -> absl::Status {
    return Run(session.world(), options);
  });
}
