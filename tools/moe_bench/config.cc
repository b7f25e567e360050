#include "tools/moe_bench/config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/processors.h"
#include "base/status_macros.h"
#include "tools/training/mesh.h"
#include "tools/training/settings_table.h"

namespace plait::moe_bench {
namespace {

using training::SettingsTable;

// What --preset=cpu sets where the user does not.
constexpr std::pair<const char*, const char*> kCpuPreset[] = {
    {"model_dim", "256"}, {"hidden_size", "1024"}, {"samples", "2048"}, {"num_steps", "10"}, {"warmup", "2"}};

constexpr std::pair<const char*, c10::ScalarType> kTypes[] = {
    {"float32", c10::kFloat}, {"bfloat16", c10::kBFloat16}, {"float64", c10::kDouble}};
constexpr std::pair<const char*, Mode> kModes[] = {{"dispatch_only", Mode::kDispatchOnly},
                                                   {"moe_fwd_bwd", Mode::kForwardBackward},
                                                   {"training_step", Mode::kTrainingStep}};

// Settings as the user writes them.
struct Texts {
  std::string preset, placement = "shadow", workload = "gate", mode = "training_step";
};

void Bind(Config& c, Texts& texts, SettingsTable& table) {
  table.Group("Sizes");
  table.Add("preset", &texts.preset,
            "cpu: defaults for processors: model_dim 256, hidden_size 1024, samples 2048, 10 steps of which "
            "2 warm up");
  table.Add("num_local_experts", &c.local_experts,
            "experts of a rank; of a list, one configuration after the other");
  table.Add("top", &c.top, "experts of a token");
  table.Add("model_dim", &c.model_dim, "width of a token");
  table.Add("hidden_size", &c.hidden_size, "hidden width of an expert");
  table.Add("samples", &c.samples, "tokens of a rank");
  table.Add("num_tokens", &c.num_tokens, "tokens of a sequence, for attention and loss");
  table.Add("gated", &c.gated, "gated experts, of three matrices");
  table.Add("dtype", &c.dtype, "of parameters and products: float32, bfloat16 or float64");
  table.Group("Routing and placement");
  table.Add("workload", &texts.workload, "gate: a linear gate on the data; or synthetic routing, W0 to W7");
  table.Add("zipf_exponent", &c.zipf_exponent, "exponent of Zipf's law in W3 and W6");
  table.Add("seed", &c.seed, "random seed of parameters, data and workloads");
  table.Add("placement", &texts.placement, "replica policy: home (none), shadow, eplb or balanced");
  table.Add("num_replica_slots", &c.replica_slots, "most replicas on a rank");
  table.Add("chunks", &c.chunks,
            "parts of a rank's tokens; messages of one travel while another is computed");
  table.Group("Cost model");
  table.Add("link_bytes_per_second", &c.link_bytes_per_second,
            "of a rank, each way; 0: measured at the start");
  table.Add("latency_seconds", &c.latency_seconds, "of a message; 0: measured with the link");
  table.Add("rank_flops_per_second", &c.rank_flops_per_second,
            "of a rank's experts; 0: measured at the start");
  table.Group("Steps");
  table.Add("mode", &texts.mode,
            "dispatch_only: dispatch and combine only; moe_fwd_bwd: adds the experts, forward and backward; "
            "training_step: adds the optimizer");
  table.Add("optimizer", &c.optimizer, "of training_step: sgd or adamw");
  table.Add("lr", &c.lr, "learning rate");
  table.Add("num_steps", &c.num_steps, "number of steps, those of --warmup included");
  table.Add("warmup", &c.warmup, "first steps, printed but excluded from statistics");
  table.Add("rank_lines", &c.rank_lines, "number of steps of which every rank's lines are printed");
  table.Group("Checks and reports");
  table.Add("exact", &c.exact,
            "first compare all placements with one process, bit for bit, on integers whose sums are exact");
  table.Add("placement_table", &c.placement_table,
            "only print a comparison of placements on Zipf loads on --world ranks (4 without it), from the "
            "planners alone");
  table.Group("Ranks");
  table.Add("nproc", &c.nproc, "ranks to start if no launcher did; 0: one per core, at most 8");
  table.Add("world", &c.world, "the same as --nproc");
  table.Add("threads", &c.threads,
            "LibTorch's intra-op threads per rank; 0: OMP_NUM_THREADS, else 1 where ranks share a node, else "
            "all cores");
}

base::ToolUsage Usage(SettingsTable& table) {
  return table.Usage(
      "bench_moe",
      "Times a layer of attention and a mixture of experts on several ranks: time and speed per step, and "
      "what balance, "
      "rows, replicas and planning cost.",
      {"bench_moe --nproc=4 --preset=cpu",
       "bench_moe --world=4 --num-local-experts 8 --top 2 --num-replica-slots 6",
       "bench_moe --nproc=2 --preset=cpu --workload=W3 --placement=balanced --mode=moe_fwd_bwd",
       "bench_moe --nproc=4 --preset=cpu --exact", "bench_moe --placement-table"});
}

absl::Status Wrong(const std::string& flag, absl::string_view text, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", text, ": expected ", expected));
}

template <typename T, std::size_t N>
absl::Status Choose(const char* flag, const std::string& text, const std::pair<const char*, T> (&choices)[N],
                    T* choice) {
  std::string names;
  for (const auto& [name, value] : choices) {
    absl::StrAppend(&names, names.empty() ? "one of " : ", ", name);
    if (text != name) continue;
    *choice = value;
    return absl::OkStatus();
  }
  return Wrong(flag, text, names);
}

absl::Status TakeTexts(const Texts& texts, Config& config) {
  PLAIT_RETURN_IF_ERROR(Choose("dtype", config.dtype, kTypes, &config.type));
  PLAIT_RETURN_IF_ERROR(Choose("mode", texts.mode, kModes, &config.mode));
  PLAIT_RETURN_IF_ERROR(
      base::Prefixed(moe::ParsePlacementPolicy(texts.placement, &config.placement), "--placement"));
  if (texts.workload == "gate") return absl::OkStatus();
  const absl::Status status = moe::ParseWorkload(texts.workload, &config.workload.emplace());
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("--workload: ", status.message(), ", or gate"));
}

absl::Status CheckNumbers(const Config& c) {
  const std::pair<const char*, std::int64_t> positive[] = {{"top", c.top},
                                                           {"model-dim", c.model_dim},
                                                           {"hidden-size", c.hidden_size},
                                                           {"samples", c.samples},
                                                           {"chunks", c.chunks},
                                                           {"num-tokens", c.num_tokens},
                                                           {"num-steps", c.num_steps}};
  for (const auto& [flag, value] : positive) {
    if (value < 1) return Wrong(flag, absl::StrCat(value), "at least 1");
  }
  const std::pair<const char*, std::int64_t> not_negative[] = {{"num-replica-slots", c.replica_slots},
                                                               {"warmup", c.warmup},
                                                               {"rank-lines", c.rank_lines},
                                                               {"threads", c.threads},
                                                               {"nproc", c.nproc},
                                                               {"world", c.world}};
  for (const auto& [flag, value] : not_negative) {
    if (value < 0) return Wrong(flag, absl::StrCat(value), "0 or more");
  }
  const std::pair<const char*, double> rates[] = {{"link-bytes-per-second", c.link_bytes_per_second},
                                                  {"latency-seconds", c.latency_seconds},
                                                  {"rank-flops-per-second", c.rank_flops_per_second},
                                                  {"lr", c.lr}};
  for (const auto& [flag, value] : rates) {
    if (!(value >= 0 && std::isfinite(value)))
      return Wrong(flag, absl::StrCat(value), "0 or a positive number");
  }
  if (c.local_experts.empty()) return Wrong("num-local-experts", "", "positive numbers such as 8,16");
  for (const int experts : c.local_experts) {
    if (experts < 1)
      return Wrong("num-local-experts", absl::StrCat(experts), "positive numbers such as 8,16");
  }
  if (c.warmup >= c.num_steps) {
    return Wrong(
        "warmup", absl::StrCat(c.warmup),
        absl::StrCat("fewer than the ", c.num_steps, " steps of --num-steps, so that some are counted"));
  }
  if (c.model_dim % kHeads != 0) {
    return Wrong("model-dim", absl::StrCat(c.model_dim),
                 absl::StrCat("a multiple of the ", kHeads, " heads"));
  }
  if (c.optimizer != "sgd" && c.optimizer != "adamw") return Wrong("optimizer", c.optimizer, "sgd or adamw");
  if (c.nproc > 0 && c.world > 0 && c.nproc != c.world) {
    return Wrong("world", absl::StrCat(c.world),
                 absl::StrCat("the ", c.nproc, " ranks of --nproc, or only one of both"));
  }
  return absl::OkStatus();
}

// --exact and --placement-table compare placements and loads of their own.
absl::Status CheckGiven(const Config& c, const SettingsTable& table) {
  if (c.exact || c.placement_table) return absl::OkStatus();
  if (c.mode != Mode::kTrainingStep) {
    for (const char* flag : {"optimizer", "lr"})
      PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven(flag, "--mode=training_step"));
  }
  if (c.workload != moe::Workload::kSpread && c.workload != moe::Workload::kRotating) {
    PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("zipf_exponent", "--workload=W3 or W6"));
  }
  if (c.placement != moe::PlacementPolicy::kHome) return absl::OkStatus();
  return table.CheckNoneGiven("num_replica_slots", "a --placement with replicas");
}

// Computed in doubles, which are exact up to the limit.
absl::Status CheckProduct(const std::string& what, std::initializer_list<double> factors) {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  double product = 1;
  for (const double factor : factors) product *= factor;
  if (product <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s are %.0f numbers; expected at most %.0f, which 32 bits count", what, product, kMost));
}

absl::Status CheckSizes(const Config& c, int ranks) {
  const auto samples = static_cast<double>(c.samples), dim = static_cast<double>(c.model_dim),
             hidden = static_cast<double>(c.hidden_size);
  for (const int local : c.local_experts) {
    const double experts = double{1.0} * local * ranks;
    if (c.top > experts) {
      return Wrong(
          "top", absl::StrCat(c.top),
          absl::StrCat("at most ", experts, ", the experts of ", ranks, " ranks with ", local, " each"));
    }
    PLAIT_RETURN_IF_ERROR(
        CheckProduct("--num-local-experts and --num-replica-slots times --model-dim times --hidden-size",
                     {double{1.0} * local + c.slots(), dim, hidden}));
    PLAIT_RETURN_IF_ERROR(CheckProduct("--samples times the experts of all ranks", {samples, experts}));
    if (!c.workload.has_value()) continue;
    PLAIT_RETURN_IF_ERROR(
        base::Prefixed(moe::Validate(c.WorkloadOf(static_cast<int>(experts), ranks)), "--workload"));
  }
  PLAIT_RETURN_IF_ERROR(CheckProduct("--samples times --top of all ranks",
                                     {samples, double{1.0} * c.top, double{1.0} * ranks}));
  return CheckProduct("--samples times --top times the larger of --model-dim and --hidden-size",
                      {samples, double{1.0} * c.top, std::max(dim, hidden)});
}

}  // namespace

moe::WorkloadOptions Config::WorkloadOf(int experts, int ranks) const {
  return {.workload = workload.value_or(moe::Workload::kBalanced),
          .seed = seed,
          .experts = experts,
          .ranks = ranks,
          .k = top,
          .zipf_exponent = zipf_exponent};
}

absl::StatusOr<Config> ReadConfig(int argc, char** argv, int rank) {
  Config config;
  Texts texts;
  SettingsTable table;
  Bind(config, texts, table);
  base::ParseFlagsOrExit(argc, argv, Usage(table), rank);
  if (texts.preset == "cpu") {
    for (const auto& [flag, value] : kCpuPreset) PLAIT_RETURN_IF_ERROR(table.SetDefault(flag, value));
  } else if (!texts.preset.empty()) {
    return Wrong("preset", texts.preset, "cpu");
  }
  PLAIT_RETURN_IF_ERROR(TakeTexts(texts, config));
  PLAIT_RETURN_IF_ERROR(CheckNumbers(config));
  PLAIT_RETURN_IF_ERROR(CheckGiven(config, table));
  config.values = table.Values();
  return config;
}

absl::StatusOr<int> CheckedRanks(const Config& config, const comm::Launcher& launcher) {
  const int asked = std::max(config.nproc, config.world);
  PLAIT_ASSIGN_OR_RETURN(const int ranks,
                         training::RanksOfRun(asked, "", launcher, base::UsableProcessors()));
  PLAIT_RETURN_IF_ERROR(CheckSizes(config, ranks));
  return ranks;
}

}  // namespace plait::moe_bench
