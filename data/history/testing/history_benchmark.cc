// Cost of one draw, as a training program sees it. Run: bazel run -c opt //data/history:history_benchmark
//
// Each case appends draws of ten metrics for as long as the benchmark runs, commits included.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "data/history/history.h"
#include "data/history/sinks.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

// A folder of its own, removed at the end.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / "plait_history_benchmark") {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

void AppendAll(benchmark::State& state, History& history, std::int64_t vectors) {
  const std::vector<double> values(64, 1.0 / 3);
  const Vector many[] = {{"dt_per_rank", values}, {"gradient_norms", values}};
  double loss = 2.5;
  for (auto _ : state) {
    loss *= 0.9999;
    const Scalar scalars[] = {{"iter", 1},
                              {"loss", loss},
                              {"dt", loss / 3},
                              {"dtf", loss / 7},
                              {"dtb", loss / 9},
                              {"dto", 1e-3},
                              {"sps", 1e4},
                              {"comm_bytes_dp", 3350528},
                              {"comm_in_flight_dp", 1.25e-3},
                              {"comm_exposed_dp", 0.25e-3}};
    const absl::Status status = history.Append(scalars, absl::MakeConstSpan(many, vectors));
    if (!status.ok()) state.SkipWithError(std::string(status.message()).c_str());
  }
  if (!history.Close().ok()) state.SkipWithError("close");
  state.SetItemsProcessed(state.iterations());
}

// Argument: how many vectors of 64 numbers a draw has besides its ten numbers.
void BM_Append(benchmark::State& state) {
  const Folder folder;
  auto history = *History::Create(folder / "run.h5", {});
  AppendAll(state, *history, state.range(0));
}
BENCHMARK(BM_Append)->ArgName("vectors")->Arg(0)->Arg(2);

void BM_AppendWithCsv(benchmark::State& state) {
  const Folder folder;
  auto history = *History::Create(folder / "run.h5", {});
  history->AddSink(*MakeCsvSink(folder / "run.csv"));
  AppendAll(state, *history, 0);
}
BENCHMARK(BM_AppendWithCsv);

void BM_AppendWithJsonLines(benchmark::State& state) {
  const Folder folder;
  auto history = *History::Create(folder / "run.h5", {});
  history->AddSink(*MakeJsonLinesSink(folder / "run.jsonl"));
  AppendAll(state, *history, 0);
}
BENCHMARK(BM_AppendWithJsonLines);

void BM_AppendWithTensorboard(benchmark::State& state) {
  const Folder folder;
  auto history = *History::Create(folder / "run.h5", {});
  history->AddSink(*MakeTensorboardSink(folder / "tb", {}));
  AppendAll(state, *history, 0);
}
BENCHMARK(BM_AppendWithTensorboard);

void BM_AppendWithAllExports(benchmark::State& state) {
  const Folder folder;
  auto history = *History::Create(folder / "run.h5", {});
  history->AddSink(*MakeCsvSink(folder / "run.csv"));
  history->AddSink(*MakeJsonLinesSink(folder / "run.jsonl"));
  history->AddSink(*MakeTensorboardSink(folder / "tb", {}));
  AppendAll(state, *history, 0);
}
BENCHMARK(BM_AppendWithAllExports);

}  // namespace
}  // namespace plait::data

BENCHMARK_MAIN();
