// Cost of one draw. Run: bazel run //data/history:history_benchmark
#include <benchmark/benchmark.h>

#include <filesystem>

#include "data/history/history.h"

namespace plait::data {
namespace {

void BM_Append(benchmark::State& state) {
  const std::string path = std::filesystem::temp_directory_path() / "history_benchmark.h5";
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".journal");
  auto history = *History::Create(path, {});
  for (auto _ : state) {
    const absl::Status status = history->Append({{"loss", 1.0},
                                                 {"dt", 2.0},
                                                 {"dt_forward", 3.0},
                                                 {"dt_backward", 4.0},
                                                 {"residual_forward", 5.0},
                                                 {"residual_backward", 6.0}});
    if (!status.ok()) state.SkipWithError(std::string(status.message()).c_str());
  }
  if (!history->Close().ok()) state.SkipWithError("close");
  std::filesystem::remove(path);
}
BENCHMARK(BM_Append);

}  // namespace
}  // namespace plait::data

BENCHMARK_MAIN();
