// What test_dist is asked to do: flags, and the environment variables that stand for them.
#ifndef PLAIT_TOOLS_DIST_TEST_CONFIG_H_
#define PLAIT_TOOLS_DIST_TEST_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/flags.h"

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
  std::string dtype = "float32";  // or bfloat16, float16: of matrix products
  double lr = 1e-3;
  std::uint64_t seed = 1234;
  std::int64_t bucket_bytes = std::int64_t{25} << 20;

  bool collectives = false;
  std::int64_t smallest_bytes = 8;  // of the sweep's messages
  std::int64_t largest_bytes = std::int64_t{64} << 20;
  int size_factor = 4;

  FaultKind fault = FaultKind::kNone;
  int fault_rank = 0;
  int fault_iter = 10;

  int nproc = 0;  // 0: one per core, at most 8
  double timeout_seconds = 600;

  std::string outputs = "";                                 // folder; empty: outputs/test_dist/STAMP
  std::string history = "";                                 // empty: history.h5 in it
  std::string csv = "", json_lines = "", tensorboard = "";  // the same numbers elsewhere; empty: not
  bool plots = true;
  bool trace = true;
};

base::ToolUsage Usage();

// Before the flags are parsed, so that these win: TRAIN_ITERS, BATCH_SIZE, INPUT_SIZE, OUTPUT_SIZE,
// LAYER_SIZES (or SIZES, or LAYERS), DTYPE (fp16, bf16), WARMUP, LOG_FREQ, SEED. InvalidArgument names the
// variable.
absl::Status TakeEnvironment(const char* (*lookup)(const char* name));

// InvalidArgument, in one line, for values that cannot work. Paths are those that the user means.
absl::StatusOr<Config> ConfigFromFlags();

// "Namespace(train_iters=100, ...)"
std::string FlagSettings();

// All widths of the network, input and output included.
std::vector<std::int64_t> Widths(const Config& config);

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_CONFIG_H_
