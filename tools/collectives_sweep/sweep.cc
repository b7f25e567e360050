#include "tools/collectives_sweep/sweep.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tools/collectives_sweep/exercise.h"

namespace plait::collectives_sweep {
namespace {

using comm::Communicator;

constexpr int kMostCalls = 1000;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string HostName() {
  char host[256] = "host";
  gethostname(host, sizeof(host) - 1);
  return host;
}

// Lower middle: a value that occurred.
double Median(std::vector<double> values) {
  const auto middle = values.begin() + (static_cast<std::ptrdiff_t>(values.size()) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Measurement {
 public:
  Measurement(const Communicator& world, const SweepOptions& options)
      : world_(world), options_(options), workspace_(LargestBytes()) {
    sweep_.groups.reserve(options.groups.size());
    for (const SweepGroup& group : options.groups) sweep_.groups.push_back(group.name);
    sweep_.sizes = Sizes(options.smallest_bytes, options.largest_bytes, options.factor);
  }

  void Measure(Swept operation, int group, int size) {
    const Communicator& ranks = options_.groups[group].ranks;
    const std::int64_t element = comm::SizeInBytes(options_.type);
    const MessageSize message = SizeOf(operation, sweep_.sizes[size], element, ranks.size());
    const Exercise exercise(operation, ranks, message, options_.type, options_.reduce, options_.root,
                            workspace_);
    std::int64_t wrong = Check(exercise, operation);
    const std::vector<double> seconds = Time(exercise, ranks);
    wrong += Check(exercise, operation);
    Row row = {operation, group, ranks.size(), size, message};
    Aggregate(seconds, wrong, &row);
    sweep_.rows.push_back(row);
  }

  // The first rank that found something wrong has the say; the calls before it stand.
  void Agree() {
    if (sweep_.verdict.ok()) sweep_.verdict = world_.Agree(mine_);
  }

  Sweep& sweep() { return sweep_; }

 private:
  // Of all groups: the least part of each rank is one element.
  std::int64_t LargestBytes() const {
    return std::max(options_.largest_bytes, comm::SizeInBytes(options_.type) * world_.size());
  }

  std::int64_t Check(const Exercise& exercise, Swept operation) {
    const int salt = ++salt_;
    exercise.Fill(salt);
    exercise.Call();
    if (options_.faults.after_call) options_.faults.after_call(operation, exercise.Result());
    const Mistakes mistakes = exercise.Check(salt);
    if (mistakes.count > 0 && mine_.ok()) {
      mine_ = absl::DataLossError(absl::StrCat("rank ", world_.rank(), " (", HostName(),
                                               ") received a wrong result of ", exercise.Description(), ": ",
                                               mistakes.first));
    }
    return mistakes.count;
  }

  // Seconds of a call on this rank, one value per repetition.
  std::vector<double> Time(const Exercise& exercise, const Communicator& ranks) const {
    exercise.Clear();
    const int calls = CallsPerRepetition(exercise, ranks);
    std::vector<double> seconds;
    for (int i = 0; i < options_.repetitions; ++i) seconds.push_back(TimeCalls(exercise, ranks, calls));
    return seconds;
  }

  static double TimeCalls(const Exercise& exercise, const Communicator& ranks, int calls) {
    ranks.Barrier();
    const double begin = Now();
    for (int i = 0; i < calls; ++i) exercise.Call();
    return (Now() - begin) / calls;
  }

  // The ranks of a group agree on it: by the slowest of a few.
  int CallsPerRepetition(const Exercise& exercise, const Communicator& ranks) const {
    double seconds[1] = {TimeCalls(exercise, ranks, 2)};
    ranks.AllReduce(comm::BufferOf(absl::MakeSpan(seconds)), comm::ReduceOp::kMax);
    return static_cast<int>(
        std::clamp(options_.repetition_seconds / (seconds[0] + 1e-9), 1.0, static_cast<double>(kMostCalls)));
  }

  // Groups of another size than rank 0's do the same calls, on other parts: their times are another row's.
  void Aggregate(const std::vector<double>& seconds, std::int64_t wrong, Row* row) const {
    std::vector<double> mine = seconds;
    mine.push_back(row->ranks);
    mine.push_back(static_cast<double>(wrong));
    std::vector<double> all(mine.size() * world_.size());
    world_.AllGather(comm::ConstBufferOf(absl::MakeConstSpan(mine)), comm::BufferOf(absl::MakeSpan(all)));
    const std::size_t repetitions = seconds.size(), stride = mine.size();
    std::vector<double> slowest(repetitions, 0);
    row->ranks = static_cast<int>(all[repetitions]);
    row->message =
        SizeOf(row->operation, sweep_.sizes[row->size], comm::SizeInBytes(options_.type), row->ranks);
    row->seconds.least = all[0];
    for (int r = 0; r < world_.size(); ++r) {
      const double* rank = &all[r * stride];
      row->wrong += static_cast<std::int64_t>(rank[repetitions + 1]);
      if (rank[repetitions] != row->ranks) continue;
      for (std::size_t i = 0; i < repetitions; ++i) {
        slowest[i] = std::max(slowest[i], rank[i]);
        row->seconds.least = std::min(row->seconds.least, rank[i]);
        row->seconds.greatest = std::max(row->seconds.greatest, rank[i]);
      }
    }
    row->seconds.median = Median(slowest);
  }

  const Communicator& world_;
  const SweepOptions& options_;
  Workspace workspace_;
  Sweep sweep_;
  absl::Status mine_ = absl::OkStatus();
  int salt_ = 0;
};

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

}  // namespace

std::vector<SweepGroup> DefaultGroups(const Communicator& world) {
  const int n = world.size(), rank = world.rank();
  std::vector<SweepGroup> groups = {{"world", world}};
  if (n >= 4) {
    groups.push_back({"halves", world.Split(2 * rank / n, rank, "halves")});
    groups.push_back({"strided", world.Split(rank % 2, rank, "strided")});
  }
  if (n >= 6) groups.push_back({"pairs", world.Split(rank / 2, rank, "pairs")});
  return groups;
}

absl::Status CheckOptions(const SweepOptions& options, const Communicator& world) {
  if (options.smallest_bytes < 1 || options.largest_bytes < options.smallest_bytes) {
    return Invalid(absl::StrCat("sweep: sizes from ", options.smallest_bytes, " to ", options.largest_bytes,
                                " bytes; expected 1 <= smallest <= largest"));
  }
  if (options.factor < 2)
    return Invalid(absl::StrCat("sweep: factor ", options.factor, "; expected 2 or more"));
  if (options.root < 0 || options.root >= world.size()) {
    return Invalid(absl::StrCat("sweep: root ", options.root, " of ", world.size(), " ranks"));
  }
  using comm::DataType;
  for (const DataType type : {DataType::kFloat32, DataType::kFloat64, DataType::kInt32, DataType::kInt64}) {
    if (options.type != type) continue;
    if (options.reduce == comm::ReduceOp::kProduct || options.reduce == comm::ReduceOp::kAverage) {
      return Invalid(
          absl::StrCat("sweep: reduction ", comm::Name(options.reduce), "; expected sum, min or max"));
    }
    if (options.repetitions < 1) return Invalid("sweep: no repetitions; expected 1 or more");
    return absl::OkStatus();
  }
  return Invalid(absl::StrCat("sweep: type ", comm::Name(options.type), "; expected f32, f64, i32 or i64"));
}

Sweep MeasureCollectives(const Communicator& world, const SweepOptions& options,
                         const std::function<void(const Sweep&, const Row&)>& told) {
  SweepOptions complete = options;
  if (complete.groups.empty()) complete.groups = DefaultGroups(world);
  Measurement measurement(world, complete);
  const int sizes = static_cast<int>(measurement.sweep().sizes.size());
  for (int group = 0; group < static_cast<int>(complete.groups.size()); ++group) {
    for (const Swept operation : complete.operations) {
      for (int size = 0; size < (operation == Swept::kBarrier ? 1 : sizes); ++size) {
        measurement.Measure(operation, group, size);
        measurement.Agree();
        told(measurement.sweep(), measurement.sweep().rows.back());
      }
    }
  }
  return std::move(measurement.sweep());
}

}  // namespace plait::collectives_sweep
