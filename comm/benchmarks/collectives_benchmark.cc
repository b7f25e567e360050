// All-reduce and all-to-all of Communicator against the plain MPI calls, alternating in one run:
//
//   mpirun -n 2 bazel-bin/comm/benchmarks/collectives_benchmark [LARGEST_MEGABYTES]
//
//   operation   bytes      plain_us     plait_us   difference_us   ratio
//   all_reduce      8          0.61         0.83           +0.22   1.361
//
// Medians over repetitions of the slowest rank's time. The buffers are the same for both.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "comm/session_main.h"

namespace {

using plait::comm::Buffer;
using plait::comm::Communicator;
using plait::comm::ConstBuffer;
using plait::comm::DataType;
using Call = std::function<void()>;

// Mean seconds per call of the slowest rank, over `calls` calls behind a barrier.
double Measure(const Call& call, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call();
  double seconds = (MPI_Wtime() - begin) / calls;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void Compare(const char* operation, std::int64_t bytes, const Call& plain, const Call& plait, bool print) {
  const int calls = static_cast<int>(std::clamp<std::int64_t>((std::int64_t{1} << 22) / bytes, 1, 500));
  const int repetitions = bytes >= (64 << 20) ? 7 : 25;
  std::vector<double> plain_seconds, plait_seconds;
  Measure(plain, 1);
  Measure(plait, 1);
  for (int i = 0; i < repetitions; ++i) {
    const bool plain_first = i % 2 == 0;
    if (plain_first) plain_seconds.push_back(Measure(plain, calls));
    plait_seconds.push_back(Measure(plait, calls));
    if (!plain_first) plain_seconds.push_back(Measure(plain, calls));
  }
  const double a = 1e6 * Median(plain_seconds), b = 1e6 * Median(plait_seconds);
  if (print) {
    std::printf("%-11s %10lld %13.2f %13.2f %+13.2f %8.3f\n", operation, static_cast<long long>(bytes), a, b,
                b - a, b / a);
    std::fflush(stdout);
  }
}

// Growing by four; the last one is `largest`.
std::vector<std::int64_t> Sizes(std::int64_t smallest, std::int64_t largest) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = smallest; size < largest; size *= 4) sizes.push_back(size);
  sizes.push_back(largest);
  return sizes;
}

absl::Status Run(const Communicator& world, std::int64_t largest_bytes) {
  const bool print = world.rank() == 0;
  const std::int64_t unit = static_cast<std::int64_t>(sizeof(float)) * world.size();
  std::vector<float> in(largest_bytes / 4 + world.size()), out(in.size());
  if (print)
    std::printf("%-11s %10s %13s %13s %13s %8s\n", "operation", "bytes", "plain_us", "plait_us",
                "difference_us", "ratio");
  for (const std::int64_t bytes : Sizes(8, largest_bytes)) {
    const int count = static_cast<int>(bytes / 4);
    const Buffer values = {in.data(), count, DataType::kFloat32};
    Compare(
        "all_reduce", bytes,
        [&] { MPI_Allreduce(MPI_IN_PLACE, in.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); },
        [&] { world.AllReduce(values); }, print);
    std::fill(in.begin(), in.end(), 0.0f);
  }
  for (const std::int64_t bytes : Sizes(std::max<std::int64_t>(8, unit), largest_bytes)) {
    const int part = static_cast<int>(bytes / unit);
    const std::int64_t count = std::int64_t{part} * world.size();
    Compare(
        "all_to_all", count * 4,
        [&] { MPI_Alltoall(in.data(), part, MPI_FLOAT, out.data(), part, MPI_FLOAT, MPI_COMM_WORLD); },
        [&] {
          world.AllToAll(ConstBuffer{in.data(), count, DataType::kFloat32},
                         Buffer{out.data(), count, DataType::kFloat32});
        },
        print);
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
    return Run(session.world(), largest_megabytes << 20);
  });
}
