#include "tools/dist_test/config.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "tools/training/mesh.h"

using plait::dist_test::Config;

ABSL_FLAG(int, train_iters, Config().train_iters, "number of steps");
ABSL_FLAG(int, warmup, Config().warmup,
          "index of the last step that is neither logged nor recorded; the first steps allocate memory");
ABSL_FLAG(int, log_freq, Config().log_freq, "log every N steps");
ABSL_FLAG(std::int64_t, batch_size, Config().batch_size, "samples per step and rank");
ABSL_FLAG(std::int64_t, input_size, Config().input_size, "inputs of the network");
ABSL_FLAG(std::int64_t, output_size, Config().output_size, "outputs of the network");
ABSL_FLAG(std::string, layer_sizes, absl::StrJoin(Config().layer_sizes, ","), "widths of the hidden layers");
ABSL_FLAG(
    std::string, dtype, Config().dtype,
    "dtype of matrix products: float32, bfloat16 or float16; parameters, gradients and loss are float32");
ABSL_FLAG(double, lr, Config().lr, "learning rate of Adam");
ABSL_FLAG(std::uint64_t, seed, Config().seed, "random seed of initial parameters and samples");
ABSL_FLAG(std::string, strategy, "ddp",
          "what is replicated: ddp: everything; zero1: all but optimizer state; zero2: parameters; fsdp: "
          "nothing");
ABSL_FLAG(std::string, mesh, Config().mesh,
          "ranks along each axis, such as dp_replicate=2,dp_shard=2 (default: all on the strategy's axis)");
ABSL_FLAG(std::int64_t, bucket_bytes, 0, "no effect: gradients are reduced layer by layer");
ABSL_FLAG(bool, collectives, Config().collectives,
          "instead of training, benchmark every collective over message sizes and groups, and every pair of "
          "ranks");
ABSL_FLAG(std::string, collectives_sizes, "8,64M,4",
          "smallest and largest message of the sweep in bytes, and the factor between sizes");
ABSL_FLAG(std::string, fault, "none",
          "fault injection on --fault-rank at step --fault-iter: hang, exit, kill, slow or mismatch (calls "
          "another collective)");
ABSL_FLAG(int, fault_rank, Config().fault_rank, "rank of the fault");
ABSL_FLAG(int, fault_iter, Config().fault_iter, "step of the fault");
ABSL_FLAG(std::string, device, "auto",
          "where tensors live: cuda (one GPU per rank), cpu, or auto: cuda where every rank has a GPU");
ABSL_FLAG(int, threads, Config().device.threads,
          "LibTorch's intra-op threads per rank; 0: OMP_NUM_THREADS, else 1 where ranks share a node, else "
          "all cores");
ABSL_FLAG(int, nproc, Config().nproc,
          "ranks to start if no launcher did; 0: those of --mesh, or one per core, at most 8");
ABSL_FLAG(std::string, timeout, "10m",
          "how long a rank may wait for another before the job is ended and the rank named: 5s, 2m");
ABSL_FLAG(std::string, outputs, Config().outputs,
          "directory for history, plots, trace and profile (default: outputs/test_dist/DATE-TIME)");
ABSL_FLAG(std::string, history, Config().history,
          "HDF5 file with all steps, readable by xarray, ncdump and h5py (default: history.h5 in --outputs)");
ABSL_FLAG(std::string, csv, Config().csv, "also export the history as comma-separated values to this file");
ABSL_FLAG(std::string, json_lines, Config().json_lines, "also export one JSON object per step to this file");
ABSL_FLAG(std::string, tensorboard, Config().tensorboard,
          "also export TensorBoard event files to this directory");
ABSL_FLAG(bool, plots, Config().plots, "plot all metrics, in the terminal and as files");
ABSL_FLAG(bool, trace, Config().trace, "write a Chrome trace of all ranks, for Perfetto");

namespace plait::dist_test {
namespace {

struct Variable {
  const char* name;
  const char* flag;
};
// In this order: where two set the same flag, the later one wins.
constexpr std::array<Variable, 11> kVariables = {{{"TRAIN_ITERS", "train_iters"},
                                                  {"BATCH_SIZE", "batch_size"},
                                                  {"INPUT_SIZE", "input_size"},
                                                  {"OUTPUT_SIZE", "output_size"},
                                                  {"LAYERS", "layer_sizes"},
                                                  {"SIZES", "layer_sizes"},
                                                  {"LAYER_SIZES", "layer_sizes"},
                                                  {"DTYPE", "dtype"},
                                                  {"WARMUP", "warmup"},
                                                  {"LOG_FREQ", "log_freq"},
                                                  {"SEED", "seed"}}};

constexpr std::pair<const char*, FaultKind> kFaults[] = {
    {"none", FaultKind::kNone}, {"hang", FaultKind::kHang}, {"exit", FaultKind::kExit},
    {"kill", FaultKind::kKill}, {"slow", FaultKind::kSlow}, {"mismatch", FaultKind::kMismatch}};

constexpr std::pair<const char*, const char*> kTypes[] = {{"float32", "float32"},   {"fp32", "float32"},
                                                          {"bfloat16", "bfloat16"}, {"bf16", "bfloat16"},
                                                          {"float16", "float16"},   {"fp16", "float16"}};

template <typename Table>
std::string Choices(const Table& table) {
  std::vector<std::string> names;
  for (const auto& [name, value] : table) names.emplace_back(name);
  return absl::StrJoin(names, ", ");
}

template <typename Value, std::size_t kSize>
absl::StatusOr<Value> Choice(const char* flag, const std::string& text,
                             const std::pair<const char*, Value> (&table)[kSize]) {
  for (const auto& [name, value] : table) {
    if (text == name) return value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", text, ": expected one of ", Choices(table)));
}

absl::StatusOr<std::vector<std::int64_t>> Sizes(const std::string& text) {
  std::vector<std::int64_t> sizes;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    std::int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size) || size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--layer-sizes=", text, ": expected positive integers such as 1024,512"));
    }
    sizes.push_back(size);
  }
  return sizes;
}

// "5s", "2m", "1h", or seconds.
absl::StatusOr<double> Seconds(const std::string& text) {
  constexpr std::pair<char, double> kUnits[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
  absl::string_view number = text;
  double factor = 1, seconds = 0;
  for (const auto& [unit, length] : kUnits) {
    if (!number.empty() && number.back() == unit) {
      factor = length;
      number.remove_suffix(1);
      break;
    }
  }
  if (!absl::SimpleAtod(number, &seconds) || !(seconds > 0) || seconds * factor > 1e7) {
    return absl::InvalidArgumentError(
        absl::StrCat("--timeout=", text, ": expected a time such as 5s, 2m or 1h"));
  }
  return seconds * factor;
}

// "64M"
bool ParseBytes(absl::string_view text, std::int64_t* bytes) {
  constexpr std::pair<char, int> kUnits[] = {{'K', 10}, {'M', 20}, {'G', 30}};
  int shift = 0;
  for (const auto& [unit, bits] : kUnits) {
    if (!text.empty() && text.back() == unit) shift = bits;
  }
  if (shift > 0) text.remove_suffix(1);
  if (!absl::SimpleAtoi(text, bytes) || *bytes < 1 || *bytes > (std::int64_t{1} << 40) >> shift) return false;
  *bytes <<= shift;
  return true;
}

absl::Status TakeSizes(const std::string& text, Config& config) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  if (parts.size() == 3 && ParseBytes(parts[0], &config.smallest_bytes) &&
      ParseBytes(parts[1], &config.largest_bytes) && absl::SimpleAtoi(parts[2], &config.size_factor)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--collectives-sizes=", text, ": expected smallest, largest and factor such as 8,64M,4"));
}

absl::Status CheckNumbers(const Config& config) {
  const std::pair<const char*, std::int64_t> positive[] = {{"train-iters", config.train_iters},
                                                           {"log-freq", config.log_freq},
                                                           {"batch-size", config.batch_size},
                                                           {"input-size", config.input_size},
                                                           {"output-size", config.output_size}};
  for (const auto& [flag, value] : positive) {
    if (value < 1)
      return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", value, ": expected at least 1"));
  }
  const std::pair<const char*, std::int64_t> not_negative[] = {{"warmup", config.warmup},
                                                               {"fault-rank", config.fault_rank},
                                                               {"fault-iter", config.fault_iter},
                                                               {"threads", config.device.threads},
                                                               {"nproc", config.nproc}};
  for (const auto& [flag, value] : not_negative) {
    if (value < 0)
      return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", value, ": expected 0 or more"));
  }
  if (config.warmup + 1 >= config.train_iters) {
    return absl::InvalidArgumentError(absl::StrCat("--train-iters=", config.train_iters,
                                                   ": no step is left after --warmup=", config.warmup,
                                                   "; steps 0 to ", config.warmup, " are not recorded"));
  }
  if (!(config.lr > 0))
    return absl::InvalidArgumentError(absl::StrCat("--lr=", config.lr, ": expected more than 0"));
  return absl::OkStatus();
}

}  // namespace

base::ToolUsage Usage() {
  return {
      .name = "test_dist",
      .summary =
          "Tests a cluster by training a small network with data parallelism on random samples: prints one "
          "line per step, timers and plots, and writes a trace and a history.",
      .examples = {"test_dist --nproc=2",
                   "test_dist --nproc=2 --train-iters=500 --dtype=bfloat16 --log-freq=50",
                   "test_dist --nproc=4 --strategy=fsdp --mesh=dp_replicate=2,dp_shard=2",
                   "mpirun -n 8 test_dist --history=run.h5", "test_dist --nproc=4 --collectives",
                   "test_dist --nproc=4 --fault=hang --fault-rank=2 --fault-iter=5 --timeout=5s"},
      .groups = {{"Steps", {"train_iters", "warmup", "log_freq", "batch_size", "seed"}},
                 {"Network", {"input_size", "output_size", "layer_sizes", "dtype", "lr"}},
                 {"Parallelism", {"strategy", "mesh", "bucket_bytes"}},
                 {"Collectives", {"collectives", "collectives_sizes"}},
                 {"Fault injection", {"fault", "fault_rank", "fault_iter"}},
                 {"Ranks and devices", {"nproc", "device", "threads", "timeout"}},
                 {"Files", {"outputs", "history", "csv", "json_lines", "tensorboard", "plots", "trace"}}}};
}

absl::Status TakeEnvironment(const char* (*lookup)(const char* name)) {
  for (const Variable& variable : kVariables) {
    const char* value = lookup(variable.name);
    if (value == nullptr || *value == '\0') continue;
    std::string error;
    if (!absl::FindCommandLineFlag(variable.flag)->ParseFrom(value, &error)) {
      return absl::InvalidArgumentError(absl::StrCat("environment variable ", variable.name, "=", value, ": ",
                                                     error, "; unset it or correct it"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Config> ConfigFromFlags() {
  Config c;
  c.train_iters = absl::GetFlag(FLAGS_train_iters);
  c.warmup = absl::GetFlag(FLAGS_warmup);
  c.log_freq = absl::GetFlag(FLAGS_log_freq);
  c.batch_size = absl::GetFlag(FLAGS_batch_size);
  c.input_size = absl::GetFlag(FLAGS_input_size);
  c.output_size = absl::GetFlag(FLAGS_output_size);
  PLAIT_ASSIGN_OR_RETURN(c.layer_sizes, Sizes(absl::GetFlag(FLAGS_layer_sizes)));
  PLAIT_ASSIGN_OR_RETURN(c.dtype, Choice("dtype", absl::GetFlag(FLAGS_dtype), kTypes));
  c.lr = absl::GetFlag(FLAGS_lr);
  c.seed = absl::GetFlag(FLAGS_seed);
  const absl::StatusOr<parallel::Strategy> strategy = parallel::ParseStrategy(absl::GetFlag(FLAGS_strategy));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(strategy.status(), "--strategy"));
  c.strategy = *strategy;
  c.mesh = absl::GetFlag(FLAGS_mesh);
  PLAIT_ASSIGN_OR_RETURN(c.device.kind, device::ParseDeviceKind(absl::GetFlag(FLAGS_device)));
  c.device.threads = absl::GetFlag(FLAGS_threads);
  c.collectives = absl::GetFlag(FLAGS_collectives);
  PLAIT_RETURN_IF_ERROR(TakeSizes(absl::GetFlag(FLAGS_collectives_sizes), c));
  PLAIT_ASSIGN_OR_RETURN(c.fault, Choice("fault", absl::GetFlag(FLAGS_fault), kFaults));
  c.fault_rank = absl::GetFlag(FLAGS_fault_rank);
  c.fault_iter = absl::GetFlag(FLAGS_fault_iter);
  c.nproc = absl::GetFlag(FLAGS_nproc);
  PLAIT_ASSIGN_OR_RETURN(c.timeout_seconds, Seconds(absl::GetFlag(FLAGS_timeout)));
  c.outputs = base::FromUser(absl::GetFlag(FLAGS_outputs));
  c.history = base::FromUser(absl::GetFlag(FLAGS_history));
  c.csv = base::FromUser(absl::GetFlag(FLAGS_csv));
  c.json_lines = base::FromUser(absl::GetFlag(FLAGS_json_lines));
  c.tensorboard = base::FromUser(absl::GetFlag(FLAGS_tensorboard));
  c.plots = absl::GetFlag(FLAGS_plots);
  c.trace = absl::GetFlag(FLAGS_trace);
  PLAIT_RETURN_IF_ERROR(CheckNumbers(c));
  return c;
}

std::string FlagSettings() { return base::Settings(Usage()); }

std::string RetiredFlags() {
  if (absl::GetFlag(FLAGS_bucket_bytes) == 0) return "";
  return "--bucket-bytes has no effect any more: gradients are reduced layer by layer; leave it out";
}

std::vector<std::int64_t> Widths(const Config& config) {
  std::vector<std::int64_t> widths = {config.input_size};
  widths.insert(widths.end(), config.layer_sizes.begin(), config.layer_sizes.end());
  widths.push_back(config.output_size);
  return widths;
}

absl::StatusOr<std::vector<comm::MeshAxis>> MeshAxes(const Config& config, int ranks) {
  PLAIT_ASSIGN_OR_RETURN(std::vector<comm::MeshAxis> axes,
                         training::MeshOf(config.mesh, {.strategy = config.strategy}, ranks));
  if (config.strategy == parallel::Strategy::kDdp) return std::vector<comm::MeshAxis>{{"dp", ranks}};
  return axes;
}

}  // namespace plait::dist_test
