#include "tools/dist_test/config.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "tools/training/mesh.h"
#include "tools/training/settings_table.h"

namespace plait::dist_test {
namespace {

using training::SettingsTable;

// In this order: where two set the same flag, the later one wins.
constexpr std::pair<const char*, const char*> kVariables[] = {{"TRAIN_ITERS", "train_iters"},
                                                              {"BATCH_SIZE", "batch_size"},
                                                              {"INPUT_SIZE", "input_size"},
                                                              {"OUTPUT_SIZE", "output_size"},
                                                              {"LAYERS", "layer_sizes"},
                                                              {"SIZES", "layer_sizes"},
                                                              {"LAYER_SIZES", "layer_sizes"},
                                                              {"DTYPE", "dtype"},
                                                              {"WARMUP", "warmup"},
                                                              {"LOG_FREQ", "log_freq"},
                                                              {"SEED", "seed"}};

constexpr std::pair<const char*, const char*> kTypes[] = {{"float32", "float32"},   {"fp32", "float32"},
                                                          {"bfloat16", "bfloat16"}, {"bf16", "bfloat16"},
                                                          {"float16", "float16"},   {"fp16", "float16"}};

// Settings as the user writes them.
struct Texts {
  std::string layer_sizes = "1024,512,256,128", strategy = "ddp", device = "auto", timeout = "10m",
              collectives_sizes = "8,64M,4";
};

void Bind(Config& c, Texts& texts, SettingsTable& table) {
  table.Group("Steps");
  table.Add("train_iters", &c.train_iters, "number of steps");
  table.Add("warmup", &c.warmup,
            "index of the last step that is neither logged nor recorded; the first steps allocate memory");
  table.Add("log_freq", &c.log_freq, "log every N steps");
  table.Add("batch_size", &c.batch_size, "samples per step and rank");
  table.Add("seed", &c.seed, "random seed of initial parameters and samples");
  table.Group("Network");
  table.Add("input_size", &c.input_size, "inputs of the network");
  table.Add("output_size", &c.output_size, "outputs of the network");
  table.Add("layer_sizes", &texts.layer_sizes, "widths of the hidden layers");
  table.Add("dtype", &c.dtype,
            "dtype of matrix products: float32, bfloat16 or float16; parameters, gradients and loss are "
            "float32");
  table.Add("lr", &c.lr, "learning rate of Adam");
  table.Group("Parallelism");
  table.Add("strategy", &texts.strategy,
            "what is replicated: ddp: everything; zero1: all but optimizer state; zero2: parameters; fsdp: "
            "nothing");
  table.Add("mesh", &c.mesh,
            "ranks along each axis, such as dp_replicate=2,dp_shard=2 (default: all on the strategy's axis)");
  table.Add("bucket_bytes", &c.bucket_bytes, "no effect: gradients are reduced layer by layer");
  table.Group("Collectives");
  table.Add("collectives", &c.collectives,
            "instead of training, benchmark every collective over message sizes and groups, and every pair "
            "of ranks");
  table.Add("collectives_sizes", &texts.collectives_sizes,
            "smallest and largest message of the sweep in bytes, and the factor between sizes");
  table.Group("Fault injection");
  table.Add("fault", &c.fault,
            "fault injection on --fault-rank at step --fault-iter: hang, exit, kill, slow or mismatch (calls "
            "another collective)");
  table.Add("fault_rank", &c.fault_rank, "rank of the fault");
  table.Add("fault_iter", &c.fault_iter, "step of the fault");
  table.Group("Ranks and devices");
  table.Add("nproc", &c.nproc,
            "ranks to start if no launcher did; 0: those of --mesh, or one per core, at most 8");
  table.Add("device", &texts.device,
            "where tensors live: cuda (one GPU per rank), cpu, or auto: cuda where every rank has a GPU");
  table.Add("threads", &c.device.threads,
            "LibTorch's intra-op threads per rank; 0: OMP_NUM_THREADS, else 1 where ranks share a node, else "
            "all cores");
  table.Add("timeout", &texts.timeout,
            "how long a rank may wait for another before the job is ended and the rank named: 5s, 2m");
  table.Group("Files");
  table.Add("outputs", &c.outputs,
            "directory for history, plots, trace and profile (default: outputs/test_dist/DATE-TIME)");
  table.Add(
      "history", &c.history,
      "HDF5 file with all steps, readable by xarray, ncdump and h5py (default: history.h5 in --outputs)");
  table.Add("csv", &c.csv, "also export the history as comma-separated values to this file");
  table.Add("json_lines", &c.json_lines, "also export one JSON object per step to this file");
  table.Add("tensorboard", &c.tensorboard, "also export TensorBoard event files to this directory");
  table.Add("plots", &c.plots, "plot all metrics, in the terminal and as files");
  table.Add("trace", &c.trace, "write a Chrome trace of all ranks, for Perfetto");
}

base::ToolUsage Usage(SettingsTable& table) {
  return table.Usage(
      "test_dist",
      "Tests a cluster by training a small network with data parallelism on random samples: prints one line "
      "per step, timers and plots, and writes a trace and a history.",
      {"test_dist --nproc=2", "test_dist --nproc=2 --train-iters=500 --dtype=bfloat16 --log-freq=50",
       "test_dist --nproc=4 --strategy=fsdp --mesh=dp_replicate=2,dp_shard=2",
       "mpirun -n 8 test_dist --history=run.h5", "test_dist --nproc=4 --collectives",
       "test_dist --nproc=4 --fault=hang --fault-rank=2 --fault-iter=5 --timeout=5s"});
}

absl::Status TakeEnvironment(SettingsTable& table) {
  for (const auto& [name, flag] : kVariables) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const absl::Status taken = table.SetDefault(flag, value);
    if (taken.ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat("environment variable ", name, "=", value, ": ",
                                                   taken.message(), "; unset it or correct it"));
  }
  return absl::OkStatus();
}

absl::Status Wrong(const char* flag, absl::string_view text, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", text, ": expected ", expected));
}

// "fp16" becomes "float16".
absl::Status CheckChoices(Config& config) {
  std::vector<std::string> types;
  std::string dtype;
  for (const auto& [name, type] : kTypes) {
    types.emplace_back(name);
    if (config.dtype == name) dtype = type;
  }
  if (dtype.empty()) return Wrong("dtype", config.dtype, "one of " + absl::StrJoin(types, ", "));
  config.dtype = dtype;
  constexpr const char* kFaults[] = {"none", "hang", "exit", "kill", "slow", "mismatch"};
  for (const char* fault : kFaults) {
    if (config.fault == fault) return absl::OkStatus();
  }
  return Wrong("fault", config.fault, "one of " + absl::StrJoin(kFaults, ", "));
}

absl::Status TakeLayers(const std::string& text, Config& config) {
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    std::int64_t& size = config.layer_sizes.emplace_back();
    if (!absl::SimpleAtoi(part, &size) || size < 1) {
      return Wrong("layer-sizes", text, "positive integers such as 1024,512");
    }
  }
  return absl::OkStatus();
}

// "5s", "2m", "1h", or seconds.
absl::Status TakeTimeout(const std::string& text, Config& config) {
  const bool plain = !text.empty() && absl::ascii_isdigit(text.back());
  absl::Duration timeout;
  if (absl::ParseDuration(plain ? text + "s" : text, &timeout)) {
    config.timeout_seconds = absl::ToDoubleSeconds(timeout);
    if (config.timeout_seconds > 0 && config.timeout_seconds <= 1e7) return absl::OkStatus();
  }
  return Wrong("timeout", text, "a time such as 5s, 2m or 1h");
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
  return Wrong("collectives-sizes", text, "smallest, largest and factor such as 8,64M,4");
}

absl::Status CheckNumbers(const Config& config) {
  const std::pair<const char*, std::int64_t> positive[] = {{"train-iters", config.train_iters},
                                                           {"log-freq", config.log_freq},
                                                           {"batch-size", config.batch_size},
                                                           {"input-size", config.input_size},
                                                           {"output-size", config.output_size}};
  for (const auto& [flag, value] : positive) {
    if (value < 1) return Wrong(flag, absl::StrCat(value), "at least 1");
  }
  const std::pair<const char*, std::int64_t> not_negative[] = {{"warmup", config.warmup},
                                                               {"fault-rank", config.fault_rank},
                                                               {"fault-iter", config.fault_iter},
                                                               {"threads", config.device.threads},
                                                               {"nproc", config.nproc}};
  for (const auto& [flag, value] : not_negative) {
    if (value < 0) return Wrong(flag, absl::StrCat(value), "0 or more");
  }
  if (config.warmup + 1 >= config.train_iters) {
    return absl::InvalidArgumentError(absl::StrCat("--train-iters=", config.train_iters,
                                                   ": no step is left after --warmup=", config.warmup,
                                                   "; steps 0 to ", config.warmup, " are not recorded"));
  }
  if (config.fault != "none" && config.fault_iter >= config.train_iters) {
    return absl::InvalidArgumentError(absl::StrCat("--fault-iter=", config.fault_iter, ": there are ",
                                                   config.train_iters, " steps; expected 0 to ",
                                                   config.train_iters - 1));
  }
  return config.lr > 0 ? absl::OkStatus() : Wrong("lr", absl::StrCat(config.lr), "more than 0");
}

// Flags without effect.
absl::Status CheckGiven(const Config& config, const SettingsTable& table) {
  if (!config.collectives) return table.CheckNoneGiven("collectives_sizes", "--collectives");
  for (const char* file : {"history", "csv", "json_lines", "tensorboard", "trace"}) {
    PLAIT_RETURN_IF_ERROR(
        table.CheckNoneGiven(file, "--collectives to be left out, which writes sweep.h5 in --outputs"));
  }
  for (const char* of_training :
       {"train_iters", "warmup", "log_freq", "batch_size", "input_size", "output_size", "layer_sizes",
        "dtype", "lr", "strategy", "mesh", "bucket_bytes", "fault", "seed"}) {
    PLAIT_RETURN_IF_ERROR(
        table.CheckNoneGiven(of_training, "--collectives to be left out, which trains nothing"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Config> ReadConfig(int argc, char** argv, int rank) {
  Config config;
  Texts texts;
  SettingsTable table;
  Bind(config, texts, table);
  PLAIT_RETURN_IF_ERROR(TakeEnvironment(table));
  const base::ToolUsage usage = Usage(table);
  base::ParseFlagsOrExit(argc, argv, usage, rank);
  config.settings_line = base::Settings(usage);
  config.values = table.Values();
  PLAIT_RETURN_IF_ERROR(CheckGiven(config, table));
  PLAIT_RETURN_IF_ERROR(TakeLayers(texts.layer_sizes, config));
  PLAIT_RETURN_IF_ERROR(CheckChoices(config));
  const absl::StatusOr<parallel::Strategy> strategy = parallel::ParseStrategy(texts.strategy);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(strategy.status(), "--strategy"));
  config.strategy = *strategy;
  PLAIT_ASSIGN_OR_RETURN(config.device.kind, device::ParseDeviceKind(texts.device));
  if (config.collectives && config.device.kind == device::DeviceKind::kCuda) {
    return absl::InvalidArgumentError(
        "--device=cuda: --collectives measures MPI's collectives of host memory; expected cpu");
  }
  if (config.collectives) config.device.kind = device::DeviceKind::kCpu;
  PLAIT_RETURN_IF_ERROR(TakeSizes(texts.collectives_sizes, config));
  PLAIT_RETURN_IF_ERROR(TakeTimeout(texts.timeout, config));
  for (std::string* path :
       {&config.outputs, &config.history, &config.csv, &config.json_lines, &config.tensorboard}) {
    *path = base::FromUser(*path);
  }
  PLAIT_RETURN_IF_ERROR(CheckNumbers(config));
  return config;
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
