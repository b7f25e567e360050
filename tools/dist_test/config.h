// Settings of test_dist: flags, and the environment variables that set their defaults.
#ifndef PLAIT_TOOLS_DIST_TEST_CONFIG_H_
#define PLAIT_TOOLS_DIST_TEST_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/device_mesh.h"
#include "parallel/sharding/strategy.h"
#include "tools/device/device.h"
#include "tools/training/settings_table.h"

namespace plait::dist_test {

struct Config {
  int train_iters = 100;
  int warmup = 0;
  int log_freq = 1;
  std::int64_t batch_size = 64;
  std::int64_t input_size = 128;
  std::int64_t output_size = 128;
  std::vector<std::int64_t> layer_sizes;
  std::string dtype = "float32";  // of matrix products; or bfloat16, float16
  double lr = 1e-3;
  std::uint64_t seed = 1234;

  parallel::Strategy strategy = parallel::Strategy::kDdp;
  std::string mesh;               // "dp_replicate=2,dp_shard=2"; empty: all ranks on the strategy's axis
  std::int64_t bucket_bytes = 0;  // without effect
  device::DeviceRequest device;

  bool collectives = false;
  std::int64_t smallest_bytes = 0, largest_bytes = 0;  // message sizes of the sweep
  int size_factor = 0;

  std::string fault = "none";  // or hang, exit, kill, slow, mismatch
  int fault_rank = 0;
  int fault_iter = 10;

  int nproc = 0;  // 0: the ranks of the mesh, or one per core, at most 8
  double timeout_seconds = 0;

  std::string outputs;                       // directory; empty: outputs/test_dist/STAMP
  std::string history;                       // empty: history.h5 in `outputs`
  std::string csv, json_lines, tensorboard;  // exports of the history; empty: none
  bool plots = true;
  bool trace = true;

  std::string settings_line;          // "Namespace(train_iters=100, ...)"
  training::NamedValues values = {};  // all flags by name
};

// For main: parses the command line, as base::ParseFlagsOrExit does. Defaults are those of the environment
// variables TRAIN_ITERS, BATCH_SIZE, INPUT_SIZE, OUTPUT_SIZE, LAYER_SIZES (or SIZES, or LAYERS), DTYPE (fp16,
// bf16), WARMUP, LOG_FREQ, SEED. InvalidArgument, in one line, names the variable or flag whose value cannot
// work. Relative paths are resolved against the user's directory.
absl::StatusOr<Config> ReadConfig(int argc, char** argv, int rank);

// All widths of the network, including input and output.
std::vector<std::int64_t> Widths(const Config& config);

// The mesh of `ranks` ranks: one axis "dp" for ddp, else "dp_replicate" and "dp_shard". Errors as those of
// training::MeshOf.
absl::StatusOr<std::vector<comm::MeshAxis>> MeshAxes(const Config& config, int ranks);

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_CONFIG_H_
