// Writes a made-up sweep for sweep_file_test.py: write_sweep_file PATH.
#include <cstdio>

#include "tools/collectives_sweep/sweep_file.h"

int main(int argc, char** argv) {
  using namespace plait::collectives_sweep;
  if (argc != 2) return 2;
  Sweep sweep = {.groups = {"world"}, .sizes = {8, 64, 512}, .rows = {}};
  for (int size = 0; size < 3; ++size) {
    const Times seconds = {1e-6 * (size + 1), 5e-7, 1e-5};
    sweep.rows.push_back({.operation = Swept::kAllReduce,
                          .ranks = 2,
                          .size = size,
                          .message = {sweep.sizes[size], sweep.sizes[size] / 4},
                          .seconds = seconds});
  }
  sweep.rows.push_back({.operation = Swept::kBarrier, .ranks = 2, .seconds = {4e-6, 3e-6, 5e-6}});
  const PairMatrix pairs = {2, 1000000, {"a", "b"}, false, {0, 5e-7, 5e-7, 0}, {0, 1e-3, 1e-3, 0}};
  SweepOptions options;
  options.operations = {Swept::kAllReduce, Swept::kBarrier};
  const absl::Status status = WriteSweep(argv[1], sweep, pairs, options, {{"command", "µ test"}});
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
