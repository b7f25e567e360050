// Times and checks every collective of a communicator over sizes and groups.
//
//   SweepOptions options = {.largest_bytes = 1 << 20};
//   const Sweep sweep = MeasureCollectives(world, options, [](const Sweep&, const Row& row) { ... });
//
// Every checked call works on values that each rank can compute by itself: a function of rank, element and call
// number, small enough for sums to be exact in any order. An operation is checked before and after it is timed.
// Elements are float32, reductions are sums, the root is rank 0. Functions that take `world` are collective over it,
// the others are local.
#ifndef PLAIT_TOOLS_COLLECTIVES_SWEEP_SWEEP_H_
#define PLAIT_TOOLS_COLLECTIVES_SWEEP_SWEEP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "tools/collectives_sweep/bandwidth.h"

namespace plait::collectives_sweep {

// The group of one kind that this rank belongs to; all groups of a kind are measured at the same time.
struct SweepGroup {
  std::string name;
  comm::Communicator ranks;
};

// Fault injection for tests.
struct SweepFaults {
  // Called after each checked call with the buffer that this rank received, which it may corrupt.
  std::function<void(Swept operation, comm::Buffer result)> after_call = {};
  // before_message: called before each message to `partner` (a rank of the world) in the pairwise measurement.
  // now: its clock in seconds; empty: SteadySeconds.
  std::function<void(int partner)> before_message = {};
  std::function<double()> now = {};
};

inline constexpr comm::DataType kType = comm::DataType::kFloat32;
inline constexpr int kRoot = 0;

struct SweepOptions {
  std::int64_t smallest_bytes = 8;
  std::int64_t largest_bytes = std::int64_t{64} << 20;
  int factor = 4;
  std::vector<Swept> operations = AllSwept();
  std::vector<SweepGroup> groups = {};  // empty: DefaultGroups(world)
  int repetitions = 5;
  double repetition_seconds = 0.004;  // each holds as many calls as fit, at least one

  bool pairs = true;  // the pairwise matrix
  std::int64_t pair_bytes = std::int64_t{1} << 20;
  int pair_messages = 20;
  int pair_passes = 8;      // at most; only while something seems slow
  double slow_ratio = 2.5;  // how much slower than the others a rank or link must be to be named

  std::string file = "";          // HDF5 with all results; empty: none
  std::string plots_folder = "";  // text, SVG and PNG; empty: none
  bool show_plots = false;        // print them too, as this terminal can show them
  SweepFaults faults = {};
};

// Seconds of a call. A repetition's time is that of its slowest rank.
struct Times {
  double median = 0;  // over repetitions, of the slowest rank
  double least = 0;   // over repetitions and ranks
  double greatest = 0;
};

struct Row {
  Swept operation = Swept::kAllReduce;
  int group = 0;  // its place in Sweep::groups
  int ranks = 1;
  int size = 0;  // its place in Sweep::sizes; 0 for the barrier
  MessageSize message = {};
  Times seconds = {};
  std::int64_t wrong = 0;  // elements, of all ranks

  double algorithm_bandwidth() const { return seconds.median > 0 ? message.bytes / seconds.median : 0; }
  double bus_bandwidth() const { return algorithm_bandwidth() * BusFactor(operation, ranks); }
};

struct Sweep {
  std::vector<std::string> groups;
  std::vector<std::int64_t> sizes;  // asked for
  std::vector<Row> rows;            // on all ranks, the same
  // OK, or DATA_LOSS with the first wrong element that any rank found: rank, host, call, element, expected,
  // found. The same on all ranks.
  absl::Status verdict = absl::OkStatus();
};

// Local, for measurements: the steady clock in seconds; the lower quantile of one or more values (`share` of 0 to 1).
double SteadySeconds();
double Quantile(std::vector<double> values, double share);

// "world", from 4 ranks on "halves" (neighbours) and "strided" (every other rank), from 6 on "pairs". With an odd
// number of ranks the groups of a kind differ in size; a row then covers rank 0's group and those of its size.
std::vector<SweepGroup> DefaultGroups(const comm::Communicator& world);

// INVALID_ARGUMENT unless 1 <= smallest_bytes <= largest_bytes and factor >= 2. The other fields are not checked.
absl::Status CheckOptions(const SweepOptions& options);

// Calls `told` on every rank after each row, with the sweep so far. Wrong results are in Sweep::verdict; the sweep
// continues after them. `options` must pass CheckOptions.
Sweep MeasureCollectives(const comm::Communicator& world, const SweepOptions& options,
                         const std::function<void(const Sweep&, const Row&)>& told);

}  // namespace plait::collectives_sweep

#endif  // PLAIT_TOOLS_COLLECTIVES_SWEEP_SWEEP_H_
