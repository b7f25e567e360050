#include "tools/collectives_sweep/pairs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/host_name.h"
#include "comm/gathered_text.h"
#include "comm/host_processors.h"

namespace plait::collectives_sweep {
namespace {

using comm::Buffer;
using comm::Communicator;

constexpr std::int64_t kShortBytes = 8;
// Ranks that share a core wait for their turn on it.
constexpr double kSchedulerSeconds = 5e-4;
constexpr auto kPause = std::chrono::milliseconds(30);

class Talk {
 public:
  Talk(const Communicator& world, const SweepOptions& options, int partner)
      : world_(world), options_(options), partner_(partner), memory_(new std::byte[options.pair_bytes]()) {}

  // Half the shortest of some round trips. The lower rank begins; both know the time.
  double OneWay(std::int64_t bytes) const {
    const Buffer message = {memory_.get(), bytes, comm::DataType::kUInt8};
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < options_.pair_messages; ++i) {
      const double begin = Now();
      if (world_.rank() < partner_) {
        Send(message);
        world_.Receive(message, partner_, 0);
        least = std::min(least, Now() - begin);
      } else {
        world_.Receive(message, partner_, 0);
        Send(message);
      }
    }
    double result[1] = {least / 2};
    const Buffer shared = comm::BufferOf(absl::MakeSpan(result));
    if (world_.rank() < partner_) {
      world_.Send(shared, partner_, 1);
    } else {
      world_.Receive(shared, partner_, 1);
    }
    return result[0];
  }

 private:
  double Now() const { return options_.faults.now ? options_.faults.now() : SteadySeconds(); }
  void Send(const Buffer& message) const {
    if (options_.faults.before_message) options_.faults.before_message(partner_);
    world_.Send(message, partner_, 0);
  }

  const Communicator& world_;
  const SweepOptions& options_;
  int partner_;
  std::unique_ptr<std::byte[]> memory_;
};

// The rows of all ranks.
std::vector<double> Gathered(const Communicator& world, const std::vector<double>& row) {
  std::vector<double> all(row.size() * world.size());
  world.AllGather(comm::ConstBufferOf(absl::MakeConstSpan(row)), comm::BufferOf(absl::MakeSpan(all)));
  return all;
}

void KeepLeast(const std::vector<double>& values, std::vector<double>& least) {
  for (std::size_t i = 0; i < values.size(); ++i) least[i] = std::min(least[i], values[i]);
}

// One kind of time seen as quotients over what is usual for links of the same kind.
class Comparison {
 public:
  Comparison(const PairMatrix& matrix, const std::vector<double>& seconds)
      : matrix_(matrix), seconds_(seconds), least_excess_(matrix.shares_cores ? kSchedulerSeconds : 0) {
    for (const bool same_host : {false, true}) {
      std::vector<double> times;
      ForEachLink([&](int a, int b) {
        if (SameHost(a, b) == same_host) times.push_back(At(a, b));
      });
      usual_[same_host] = times.empty() ? 1 : Quantile(times, 0.25);
    }
  }

  // By their best link.
  std::vector<int> SlowRanks(double ratio) const {
    const std::vector<double> best = BestLinks();
    const double limit = Limit(best, ratio);
    std::vector<int> slow;
    for (int r = 0; r < matrix_.ranks; ++r) {
      if (best[r] > limit && LeastExcess(r) > least_excess_) slow.push_back(r);
    }
    return slow;
  }

  std::vector<std::pair<int, int>> SlowLinks(double ratio, const std::vector<int>& slow_ranks) const {
    const auto named = [&](int r) {
      return std::find(slow_ranks.begin(), slow_ranks.end(), r) != slow_ranks.end();
    };
    std::vector<double> quotients;
    ForEachLink([&](int a, int b) {
      if (!named(a) && !named(b)) quotients.push_back(Quotient(a, b));
    });
    std::vector<std::pair<int, int>> slow;
    if (quotients.size() < 2) return slow;
    const double limit = Limit(quotients, ratio);
    ForEachLink([&](int a, int b) {
      if (!named(a) && !named(b) && Quotient(a, b) > limit && Excess(a, b) > least_excess_) {
        slow.emplace_back(a, b);
      }
    });
    return slow;
  }

  double OfRank(int r) const { return Quantile(Row(r), 0.5) / Median(); }
  double OfLink(int a, int b) const { return Quotient(a, b) / Median(); }

 private:
  template <typename Function>
  void ForEachLink(const Function& function) const {
    for (int a = 0; a < matrix_.ranks; ++a) {
      for (int b = a + 1; b < matrix_.ranks; ++b) function(a, b);
    }
  }
  bool SameHost(int a, int b) const { return matrix_.hosts[a] == matrix_.hosts[b]; }
  double At(int a, int b) const { return seconds_[static_cast<std::size_t>(a) * matrix_.ranks + b]; }
  double Quotient(int a, int b) const { return At(a, b) / usual_[SameHost(a, b)]; }
  // Seconds more than usual.
  double Excess(int a, int b) const { return At(a, b) - usual_[SameHost(a, b)]; }
  double LeastExcess(int r) const {
    double least = std::numeric_limits<double>::infinity();
    for (int other = 0; other < matrix_.ranks; ++other) {
      if (other != r) least = std::min(least, Excess(r, other));
    }
    return least;
  }
  std::vector<double> Row(int r) const {
    std::vector<double> row;
    for (int other = 0; other < matrix_.ranks; ++other) {
      if (other != r) row.push_back(Quotient(r, other));
    }
    return row;
  }
  std::vector<double> BestLinks() const {
    std::vector<double> best;
    for (int r = 0; r < matrix_.ranks; ++r) {
      const std::vector<double> row = Row(r);
      best.push_back(*std::min_element(row.begin(), row.end()));
    }
    return best;
  }
  // Of each rank's best link: the ordinary case, also where one rank of three spoils most links.
  double Median() const { return Quantile(BestLinks(), 0.5); }
  static double Limit(const std::vector<double>& values, double ratio) {
    const double median = Quantile(values, 0.5);
    std::vector<double> deviations;
    for (const double value : values) deviations.push_back(std::abs(value - median));
    return std::max(ratio * median, median + 5 * 1.4826 * Quantile(deviations, 0.5));
  }

  const PairMatrix& matrix_;
  const std::vector<double>& seconds_;
  double usual_[2] = {1, 1};
  double least_excess_ = 0;
};

std::string Place(const PairMatrix& matrix, int rank) {
  return absl::StrCat(rank, " (", matrix.hosts[rank], ")");
}

// Whether the ranks of some host may use fewer cores than they are.
bool SharesCores(const Communicator& world, const std::vector<std::string>& hosts) {
  const auto ranks = std::count(hosts.begin(), hosts.end(), hosts[world.rank()]);
  std::int64_t shared[1] = {ranks > comm::ProcessorsOfHost(world) ? 1 : 0};
  world.AllReduce(comm::BufferOf(absl::MakeSpan(shared)), comm::ReduceOp::kMax);
  return shared[0] == 1;
}

// One tournament; entries keep the least time of all.
void MeetOnce(const Communicator& world, const SweepOptions& options, PairMatrix& matrix) {
  const int rank = world.rank();
  std::vector<double> short_row(matrix.ranks, 0), long_row(matrix.ranks, 0);
  for (const Round& round : Tournament(matrix.ranks)) {
    world.Barrier();
    for (const auto& [a, b] : round) {
      if (rank != a && rank != b) continue;
      const int partner = rank == a ? b : a;
      const Talk talk(world, options, partner);
      short_row[partner] = talk.OneWay(std::min(kShortBytes, options.pair_bytes));
      long_row[partner] = talk.OneWay(options.pair_bytes);
    }
  }
  KeepLeast(Gathered(world, short_row), matrix.short_seconds);
  KeepLeast(Gathered(world, long_row), matrix.long_seconds);
}

}  // namespace

// The circle method: the last one stays, the others move on by one place each round.
std::vector<Round> Tournament(int ranks) {
  const int teams = ranks + ranks % 2;  // with an odd number, who meets the last one rests
  std::vector<Round> rounds;
  for (int r = 0; r + 1 < teams; ++r) {
    Round round;
    for (int i = 0; i < teams / 2; ++i) {
      const int a = i == 0 ? teams - 1 : (r + i) % (teams - 1);
      const int b = (r + teams - 1 - i) % (teams - 1);
      if (a < ranks && b < ranks) round.emplace_back(std::min(a, b), std::max(a, b));
    }
    if (!round.empty()) rounds.push_back(round);
  }
  return rounds;
}

PairMatrix MeasurePairs(const Communicator& world, const SweepOptions& options) {
  PairMatrix matrix = {world.size(), options.pair_bytes, comm::GatherText(world, base::HostName())};
  matrix.shares_cores = SharesCores(world, matrix.hosts);
  const std::size_t entries = matrix.hosts.size() * matrix.hosts.size();
  matrix.short_seconds.assign(entries, std::numeric_limits<double>::infinity());
  matrix.long_seconds = matrix.short_seconds;
  for (int pass = 0; pass < options.pair_passes; ++pass) {
    if (pass > 0) std::this_thread::sleep_for(kPause);
    MeetOnce(world, options, matrix);
    if (SlowParts(matrix, options.slow_ratio).empty()) break;
  }
  return matrix;
}

std::vector<std::string> SlowParts(const PairMatrix& matrix, double ratio) {
  std::vector<std::string> lines;
  if (matrix.ranks < 3) return lines;  // one link: nothing to compare it with
  const Comparison latency(matrix, matrix.short_seconds), transfer(matrix, matrix.long_seconds);
  const std::vector<int> by_latency = latency.SlowRanks(ratio);
  std::vector<int> named = by_latency;
  for (const int r : by_latency) {
    lines.push_back(absl::StrFormat("rank %s is slow: %.1fx the median latency with every partner",
                                    Place(matrix, r), latency.OfRank(r)));
  }
  for (const int r : transfer.SlowRanks(ratio)) {
    if (std::find(named.begin(), named.end(), r) != named.end()) continue;
    named.push_back(r);
    lines.push_back(absl::StrFormat("rank %s is slow: %.1fx the median time of %d bytes with every partner",
                                    Place(matrix, r), transfer.OfRank(r), matrix.message_bytes));
  }
  const auto slow_links = latency.SlowLinks(ratio, named);
  for (const auto& [a, b] : slow_links) {
    lines.push_back(absl::StrFormat("the link of ranks %s and %s is slow: %.1fx the median latency",
                                    Place(matrix, a), Place(matrix, b), latency.OfLink(a, b)));
  }
  for (const auto& link : transfer.SlowLinks(ratio, named)) {
    if (std::find(slow_links.begin(), slow_links.end(), link) != slow_links.end()) continue;
    lines.push_back(absl::StrFormat("the link of ranks %s and %s is slow: %.1fx the median time of %d bytes",
                                    Place(matrix, link.first), Place(matrix, link.second),
                                    transfer.OfLink(link.first, link.second), matrix.message_bytes));
  }
  return lines;
}

}  // namespace plait::collectives_sweep
