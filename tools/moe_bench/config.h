// Settings of bench_moe.
#ifndef PLAIT_TOOLS_MOE_BENCH_CONFIG_H_
#define PLAIT_TOOLS_MOE_BENCH_CONFIG_H_

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/launch/launcher.h"
#include "parallel/moe/planner.h"
#include "parallel/moe/workloads.h"
#include "tools/training/settings_table.h"

namespace plait::moe_bench {

enum class Mode { kDispatchOnly, kForwardBackward, kTrainingStep };

inline constexpr int kHeads = 8;

struct Config {
  std::vector<int> local_experts = {8, 16, 32, 64};  // experts per rank; one configuration each
  int top = 2;
  std::int64_t model_dim = 1024, hidden_size = 4096;
  std::int64_t samples = 8192;    // tokens per rank
  std::int64_t num_tokens = 512;  // tokens per sequence
  bool gated = false;
  std::string dtype = "float32";
  c10::ScalarType type = c10::ScalarType::Float;

  moe::PlacementPolicy placement = moe::PlacementPolicy::kShadow;
  int replica_slots = 6;  // per rank
  int chunks = 1;
  // For the cost model; 0: measured (calibration.h).
  double link_bytes_per_second = 0, latency_seconds = 0, rank_flops_per_second = 0;

  std::optional<moe::Workload> workload;  // none: the gate decides
  double zipf_exponent = 1;
  std::uint64_t seed = 0;

  Mode mode = Mode::kTrainingStep;
  std::string optimizer = "sgd";  // or adamw
  double lr = 1e-3;
  int num_steps = 100;
  int warmup = 5;      // first steps, excluded from statistics
  int rank_lines = 1;  // first steps for which every rank's lines are printed
  bool exact = false;
  bool placement_table = false;

  int nproc = 0, world = 0, threads = 0;

  training::NamedValues values = {};  // all flags by name

  int slots() const { return placement == moe::PlacementPolicy::kHome ? 0 : replica_slots; }
  // Of a rank: it has no more replicas than there are experts of other ranks.
  int UsableSlots(int local_experts, int ranks) const {
    return std::min(slots(), local_experts * (ranks - 1));
  }
  int matrices() const { return gated ? 3 : 2; }
  moe::WorkloadOptions WorkloadOf(int experts, int ranks) const;
};

// For main: parses the command line; exits for --help and unknown flags (base::ParseFlagsOrExit). INVALID_ARGUMENT, one
// line that names the flag, for an invalid value.
absl::StatusOr<Config> ReadConfig(int argc, char** argv, int rank);

// Returns the number of ranks of the run. INVALID_ARGUMENT if the sizes do not work on that many ranks.
absl::StatusOr<int> CheckedRanks(const Config& config, const comm::Launcher& launcher);

}  // namespace plait::moe_bench

#endif  // PLAIT_TOOLS_MOE_BENCH_CONFIG_H_
