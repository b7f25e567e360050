// Collectives of Communicator compared with MPI's blocking ones, alternating in one run:
//
//   mpirun -n 2 bazel-bin/comm/benchmarks/collectives_benchmark [LARGEST_MEGABYTES [OPERATION [SMALLEST_BYTES]]]
//
//   operation           bytes      plain_us      plait_us   ratio   p10   p90
//   all_reduce              8          0.61          0.83   1.361 1.330 1.402
//
// plain_us, plait_us: microseconds per call of MPI and of Plait, medians over repetitions of the slowest rank's time.
// ratio, p10, p90: median, first and last decile of plait / plain in neighbouring repetitions, which is less sensitive
// to other load. bytes: of the larger buffer. Both use the same buffers. Defaults: 256 MiB, all operations, 8 bytes.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "comm/session_main.h"

namespace {

using plait::comm::Buffer;
using plait::comm::Communicator;
using plait::comm::ConstBuffer;
using plait::comm::DataType;
using Call = std::function<void()>;

// Mean seconds per call of the slowest rank, over `calls` calls after a barrier.
double Measure(const Call& call, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call();
  double seconds = (MPI_Wtime() - begin) / calls;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

double Quantile(std::vector<double> values, double share) {
  const auto index = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + index, values.end());
  return values[index];
}

void Compare(const char* operation, std::int64_t bytes, const Call& plain, const Call& plait, bool print) {
  const int calls = static_cast<int>(std::clamp<std::int64_t>((std::int64_t{1} << 22) / bytes, 1, 500));
  const int repetitions = bytes >= (64 << 20) ? 11 : 41;
  std::vector<double> plain_times, plait_times, ratios;
  Measure(plain, 1);
  Measure(plait, 1);
  for (int i = 0; i < repetitions; ++i) {
    const bool plain_first = i % 2 == 0;
    if (plain_first) plain_times.push_back(1e6 * Measure(plain, calls));
    plait_times.push_back(1e6 * Measure(plait, calls));
    if (!plain_first) plain_times.push_back(1e6 * Measure(plain, calls));
    ratios.push_back(plait_times.back() / plain_times.back());
  }
  if (!print) return;
  std::printf("%-14s %10lld %13.2f %13.2f %7.3f %5.3f %5.3f\n", operation, static_cast<long long>(bytes),
              Quantile(plain_times, 0.5), Quantile(plait_times, 0.5), Quantile(ratios, 0.5),
              Quantile(ratios, 0.1), Quantile(ratios, 0.9));
  std::fflush(stdout);
}

// Growing by four; the last one is `largest`.
std::vector<std::int64_t> Sizes(std::int64_t smallest, std::int64_t largest) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = smallest; size < largest; size *= 4) sizes.push_back(size);
  sizes.push_back(largest);
  return sizes;
}

struct Operation {
  const char* name;
  Call plain, plait;
};

// All operations on parts of `count` floats per rank.
std::vector<Operation> Operations(const Communicator& world, float* whole, float* other, std::int64_t count) {
  const int part = static_cast<int>(count);
  const Buffer all = {whole, count * world.size(), DataType::kFloat32};
  const Buffer all_others = {other, count * world.size(), DataType::kFloat32};
  const Buffer own = {other, count, DataType::kFloat32};
  return {
      {"all_reduce",
       [=] {
         MPI_Allreduce(MPI_IN_PLACE, whole, static_cast<int>(all.count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
       },
       [=, &world] { world.AllReduce(all); }},
      {"reduce_scatter",
       [=] { MPI_Reduce_scatter_block(whole, other, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); },
       [=, &world] { world.ReduceScatter(all, own); }},
      {"all_gather", [=] { MPI_Allgather(other, part, MPI_FLOAT, whole, part, MPI_FLOAT, MPI_COMM_WORLD); },
       [=, &world] { world.AllGather(own, all); }},
      {"all_to_all", [=] { MPI_Alltoall(whole, part, MPI_FLOAT, other, part, MPI_FLOAT, MPI_COMM_WORLD); },
       [=, &world] { world.AllToAll(all, all_others); }},
      {"broadcast", [=] { MPI_Bcast(whole, static_cast<int>(all.count), MPI_FLOAT, 0, MPI_COMM_WORLD); },
       [=, &world] { world.Broadcast(all, 0); }},
      {"gather", [=] { MPI_Gather(other, part, MPI_FLOAT, whole, part, MPI_FLOAT, 0, MPI_COMM_WORLD); },
       [=, &world] { world.Gather(own, all, 0); }},
  };
}

absl::Status Run(const Communicator& world, std::int64_t smallest, std::int64_t largest,
                 const std::string& wanted) {
  const bool print = world.rank() == 0;
  const std::int64_t unit = static_cast<std::int64_t>(sizeof(float)) * world.size();
  std::vector<float> whole(largest / 4 + world.size()), other(whole.size());
  if (print)
    std::printf("%-14s %10s %13s %13s %7s %5s %5s\n", "operation", "bytes", "plain_us", "plait_us", "ratio",
                "p10", "p90");
  for (std::size_t index = 0; index < Operations(world, nullptr, nullptr, 1).size(); ++index) {
    for (const std::int64_t bytes : Sizes(std::max(smallest, unit), largest)) {
      const Operation operation = Operations(world, whole.data(), other.data(), bytes / unit)[index];
      if (!wanted.empty() && wanted != operation.name) continue;
      Compare(operation.name, bytes / unit * unit, operation.plain, operation.plait, print);
      std::fill(whole.begin(), whole.end(), 0.0f);
    }
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  return plait::comm::RunMain(argc, argv, {}, [&](plait::comm::Session& session) -> absl::Status {
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (!initialized) return absl::InvalidArgumentError("start this program with mpirun");
    const std::int64_t largest_megabytes = argc > 1 ? std::atoll(argv[1]) : 256;
    return Run(session.world(), argc > 3 ? std::atoll(argv[3]) : 8, largest_megabytes << 20,
               argc > 2 ? argv[2] : "");
  });
}
