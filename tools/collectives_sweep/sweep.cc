#include "tools/collectives_sweep/sweep.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/host_name.h"
#include "comm/communicator.h"
#include "tools/collectives_sweep/bandwidth.h"

namespace plait::collectives_sweep {
namespace {

constexpr std::int64_t kElementBytes = sizeof(float);

// Memory for the largest message, used by all exercises one after the other.
class Workspace {
 public:
  explicit Workspace(std::int64_t bytes)
      : in_(new float[bytes / kElementBytes + 1]()), out_(new float[bytes / kElementBytes + 1]()) {}
  float* in() const { return in_.get(); }
  float* out() const { return out_.get(); }

 private:
  std::unique_ptr<float[]> in_, out_;
};

struct Mistakes {
  std::int64_t count = 0;
  std::string first = "";  // "element 17: expected 12, found 13"
};

class Exercise {
 public:
  // `ranks` and `workspace` must outlive it; the workspace holds message.bytes.
  Exercise(Swept operation, const comm::Communicator& ranks, MessageSize message, const Workspace& workspace)
      : operation_(operation), ranks_(ranks), message_(message), workspace_(workspace) {}

  // Fills the buffers; `salt` makes the values of each call differ.
  void Fill(int salt) const;
  // All zero: any number of calls leaves them so, and sums do not overflow.
  void Clear() const;
  void Call() const;
  // What this rank received. Empty where it received nothing.
  comm::Buffer Result() const;
  Mistakes Check(int salt) const;
  // "all_reduce[world] f32[1024] sum"
  std::string Description() const;

 private:
  std::int64_t all_count() const { return message_.bytes / kElementBytes; }
  std::int64_t in_count() const;

  Swept operation_;
  const comm::Communicator& ranks_;
  MessageSize message_;
  const Workspace& workspace_;
};

using comm::Buffer;
using comm::ConstBuffer;

// Small integers: the sum over 2^17 ranks is still exact in float32. 61 is prime, so that parts of any
// usual length differ.
constexpr std::int64_t kNumbers = 61;
std::int64_t Base(std::int64_t element, int salt) {
  return (element + std::int64_t{7} * salt) % kNumbers + 1;
}

// What rank r contributes at an element of its input.
std::int64_t Contributed(int rank, std::int64_t element, int salt) {
  return Base(element, salt) + rank % kNumbers;
}

// What n contributions sum up to.
std::int64_t Reduced(std::int64_t ranks, std::int64_t element, int salt) {
  const std::int64_t rest = ranks % kNumbers;
  return ranks * Base(element, salt) + ranks / kNumbers * (kNumbers * (kNumbers - 1) / 2) +
         rest * (rest - 1) / 2;
}

// Elements that this rank gives.
std::int64_t Exercise::in_count() const {
  const bool part = operation_ == Swept::kAllGather || operation_ == Swept::kGather;
  return part ? message_.count : all_count();
}

// All-reduce and broadcast work in place: their input lies where the result will be. Elsewhere the place of
// the result is filled with what cannot be right.
void Exercise::Fill(int salt) const {
  const bool in_place = operation_ == Swept::kAllReduce || operation_ == Swept::kBroadcast;
  std::memset(workspace_.out(), 0xFF, static_cast<std::size_t>(message_.bytes));
  float* const values = in_place ? workspace_.out() : workspace_.in();
  for (std::int64_t i = 0; i < in_count(); ++i) {
    values[i] = static_cast<float>(Contributed(ranks_.rank(), i, salt));
  }
}

void Exercise::Clear() const {
  std::memset(workspace_.in(), 0, static_cast<std::size_t>(message_.bytes));
  std::memset(workspace_.out(), 0, static_cast<std::size_t>(message_.bytes));
}

void Exercise::Call() const {
  const ConstBuffer in = {workspace_.in(), in_count(), kType};
  const Buffer whole = {workspace_.out(), all_count(), kType},
               part = {workspace_.out(), message_.count, kType};
  switch (operation_) {
    case Swept::kAllReduce:
      return ranks_.AllReduce(whole, comm::ReduceOp::kSum);
    case Swept::kReduce:
      return ranks_.Reduce(in, whole, comm::ReduceOp::kSum, kRoot);
    case Swept::kBroadcast:
      return ranks_.Broadcast(whole, kRoot);
    case Swept::kAllGather:
      return ranks_.AllGather(in, whole);
    case Swept::kReduceScatter:
      return ranks_.ReduceScatter(in, part, comm::ReduceOp::kSum);
    case Swept::kAllToAll:
      return ranks_.AllToAll(in, whole);
    case Swept::kGather:
      return ranks_.Gather(in, whole, kRoot);
    case Swept::kScatter:
      return ranks_.Scatter(in, part, kRoot);
    case Swept::kSendRecv: {
      const int n = ranks_.size(), rank = ranks_.rank();
      comm::Work received = ranks_.ReceiveAsync(whole, (rank + n - 1) % n, 0);
      ranks_.Send(in, (rank + 1) % n, 0);
      return received.Wait();
    }
    case Swept::kBarrier:
      return ranks_.Barrier();
  }
}

Buffer Exercise::Result() const {
  const bool root_alone = operation_ == Swept::kReduce || operation_ == Swept::kGather;
  if (operation_ == Swept::kBarrier || (root_alone && ranks_.rank() != kRoot)) return {nullptr, 0, kType};
  const bool part = operation_ == Swept::kReduceScatter || operation_ == Swept::kScatter;
  return {workspace_.out(), part ? message_.count : all_count(), kType};
}

Mistakes Exercise::Check(int salt) const {
  const int rank = ranks_.rank(), n = ranks_.size();
  const std::int64_t count = message_.count;
  const auto expected = [&](std::int64_t i) -> std::int64_t {
    switch (operation_) {
      case Swept::kAllReduce:
      case Swept::kReduce:
        return Reduced(n, i, salt);
      case Swept::kReduceScatter:
        return Reduced(n, rank * count + i, salt);
      case Swept::kBroadcast:
        return Contributed(kRoot, i, salt);
      case Swept::kScatter:
        return Contributed(kRoot, rank * count + i, salt);
      case Swept::kAllGather:
      case Swept::kGather:
        return Contributed(static_cast<int>(i / count), i % count, salt);
      case Swept::kAllToAll:
        return Contributed(static_cast<int>(i / count), rank * count + i % count, salt);
      default:
        return Contributed((rank + n - 1) % n, i, salt);
    }
  };
  Mistakes mistakes;
  const Buffer result = Result();
  const auto* values = static_cast<const float*>(result.data);
  for (std::int64_t i = 0; i < result.count; ++i) {
    const std::int64_t right = expected(i);
    if (static_cast<double>(values[i]) == static_cast<double>(right)) continue;
    if (mistakes.count++ > 0) continue;
    mistakes.first =
        absl::StrCat("element ", i, " of ", result.count, ": expected ", right, ", found ", values[i]);
  }
  return mistakes;
}

std::string Exercise::Description() const {
  return absl::StrCat(Name(operation_), "[", ranks_.name(), "] ", comm::Name(kType), "[", message_.count, "]",
                      Reduces(operation_) ? " sum" : "");
}

using comm::Communicator;

constexpr int kMostCalls = 1000;

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
    const MessageSize message = SizeOf(operation, sweep_.sizes[size], kElementBytes, ranks.size());
    const Exercise exercise(operation, ranks, message, workspace_);
    std::int64_t wrong = Check(exercise, operation);
    const std::vector<double> seconds = Time(exercise, ranks);
    wrong += Check(exercise, operation);
    Row row = {operation, group, ranks.size(), size, message};
    Aggregate(seconds, wrong, &row);
    sweep_.rows.push_back(row);
  }

  // Collective: keeps the first error, of the lowest rank that found one.
  void Agree() {
    if (sweep_.verdict.ok()) sweep_.verdict = world_.Agree(mine_);
  }

  Sweep& sweep() { return sweep_; }

 private:
  // Of all groups: the least part of each rank is one element.
  std::int64_t LargestBytes() const {
    return std::max(options_.largest_bytes, kElementBytes * world_.size());
  }

  std::int64_t Check(const Exercise& exercise, Swept operation) {
    const int salt = ++salt_;
    exercise.Fill(salt);
    exercise.Call();
    if (options_.faults.after_call) options_.faults.after_call(operation, exercise.Result());
    const Mistakes mistakes = exercise.Check(salt);
    if (mistakes.count > 0 && mine_.ok()) {
      mine_ = absl::DataLossError(absl::StrCat("rank ", world_.rank(), " (", base::HostName(),
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
    const double begin = SteadySeconds();
    for (int i = 0; i < calls; ++i) exercise.Call();
    return (SteadySeconds() - begin) / calls;
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
    row->message = SizeOf(row->operation, sweep_.sizes[row->size], kElementBytes, row->ranks);
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
    row->seconds.median = Quantile(slowest, 0.5);
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

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Quantile(std::vector<double> values, double share) {
  const auto place =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

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

absl::Status CheckOptions(const SweepOptions& options) {
  if (options.smallest_bytes < 1 || options.largest_bytes < options.smallest_bytes) {
    return Invalid(absl::StrCat("sweep: sizes from ", options.smallest_bytes, " to ", options.largest_bytes,
                                " bytes; expected 1 <= smallest <= largest"));
  }
  if (options.factor < 2)
    return Invalid(absl::StrCat("sweep: factor ", options.factor, "; expected 2 or more"));
  if (options.repetitions < 1)
    return Invalid(absl::StrCat("sweep: ", options.repetitions, " repetitions; expected 1 or more"));
  return absl::OkStatus();
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
