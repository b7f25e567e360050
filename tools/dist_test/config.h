// Settings of test_dist: flags, and the environment variables that set their defaults.
#ifndef PLAIT_TOOLS_DIST_TEST_CONFIG_H_
#define PLAIT_TOOLS_DIST_TEST_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/flags.h"
#include "comm/device_mesh.h"
#include "parallel/sharding/strategy.h"
#include "tools/device/device.h"

namespace plait::dist_test {

enum class FaultKind { kNone, kHang, kExit, kKill, kSlow, kMismatch };

struct Config {
  int train_iters = 100;
  int warmup = 0;
  int log_freq = 1;
  std::int64_t batch_size = 64;
  std::int64_t input_size = 128;
  std::int64_t output_size = 128;
  std::vector<std::int64_t> layer_sizes = {1024, 512, 256, 128};
  std::string dtype = "float32";  // of matrix products; or bfloat16, float16
  double lr = 1e-3;
  std::uint64_t seed = 1234;

  parallel::Strategy strategy = parallel::Strategy::kDdp;
  std::string mesh = "";  // "dp_replicate=2,dp_shard=2"; empty: all ranks on the strategy's axis
  device::DeviceRequest device;

  bool collectives = false;
  std::int64_t smallest_bytes = 8;  // message sizes of the sweep
  std::int64_t largest_bytes = std::int64_t{64} << 20;
  int size_factor = 4;

  FaultKind fault = FaultKind::kNone;
  int fault_rank = 0;
  int fault_iter = 10;

  int nproc = 0;  // 0: the ranks of the mesh, or one per core, at most 8
  double timeout_seconds = 600;

  std::string outputs = "";                                 // directory; empty: outputs/test_dist/STAMP
  std::string history = "";                                 // empty: history.h5 in `outputs`
  std::string csv = "", json_lines = "", tensorboard = "";  // exports of the history; empty: none
  bool plots = true;
  bool trace = true;
};

base::ToolUsage Usage();

// Call before the flags are parsed: values of flags override them. Reads TRAIN_ITERS, BATCH_SIZE, INPUT_SIZE,
// OUTPUT_SIZE, LAYER_SIZES (or SIZES, or LAYERS), DTYPE (fp16, bf16), WARMUP, LOG_FREQ, SEED. InvalidArgument
// names the variable.
absl::Status TakeEnvironment(const char* (*lookup)(const char* name));

// InvalidArgument, in one line, for values that cannot work. Relative paths are resolved against the user's
// directory.
absl::StatusOr<Config> ConfigFromFlags();

// "Namespace(train_iters=100, ...)"
std::string FlagSettings();

// A warning about flags that no longer have an effect, where one is given; empty otherwise.
std::string RetiredFlags();

// All widths of the network, including input and output.
std::vector<std::int64_t> Widths(const Config& config);

// The mesh of `ranks` ranks: one axis "dp" for ddp, else "dp_replicate" and "dp_shard". Errors as those of
// training::MeshOf.
absl::StatusOr<std::vector<comm::MeshAxis>> MeshAxes(const Config& config, int ranks);

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_CONFIG_H_
