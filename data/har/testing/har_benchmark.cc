// Speed of reading, windowing and opening human-activity data. Run: bazel run -c opt //data/har:har_benchmark
#include <benchmark/benchmark.h>

#include <filesystem>

#include "data/har/prepare.h"
#include "data/har/recordings.h"
#include "data/har/synthetic.h"
#include "data/har/text.h"
#include "data/testing/har_files.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

std::string Folder() { return fs::temp_directory_path() / "plait_har_benchmark"; }

// 1000 + 500 windows; the full archive has 7352 + 2947.
void BM_ReadText(benchmark::State& state) {
  WriteHarText(SyntheticHar(1000, 500, 1), Folder());
  std::int64_t bytes = 0;
  for (const std::string& file : HarTextFiles(Folder())) bytes += fs::file_size(file);
  for (auto _ : state) {
    if (!ReadHarText(Folder()).ok()) state.SkipWithError("text");
  }
  state.SetBytesProcessed(state.iterations() * bytes);
  state.SetItemsProcessed(state.iterations() * 1500);
  fs::remove_all(Folder());
}
BENCHMARK(BM_ReadText)->Unit(benchmark::kMillisecond);

// Items are windows. Generated recordings of 30 subjects: about a fifth of the real windows.
void BM_WindowsOf(benchmark::State& state) {
  const Recordings recordings = MadeRecordings(30);
  std::int64_t windows = 0;
  for (auto _ : state) {
    const SequenceSet set = WindowsOf(recordings);
    windows += set.train.samples() + set.test.samples();
  }
  state.SetItemsProcessed(windows);
}
BENCHMARK(BM_WindowsOf)->Unit(benchmark::kMillisecond);

// As many windows as the archive has, with their checksums.
void BM_ReadPrepared(benchmark::State& state) {
  fs::create_directories(Folder());
  const std::string path = Folder() + "/prepared.h5";
  if (!WritePrepared(path, SyntheticHar(7352, 2947, 1), "").ok()) state.SkipWithError("write");
  for (auto _ : state) {
    if (!ReadPrepared(path, {}).ok()) state.SkipWithError("read");
  }
  fs::remove_all(Folder());
}
BENCHMARK(BM_ReadPrepared)->Unit(benchmark::kMillisecond);

// What every start after the first costs: find, verify, read.
void BM_OpenHarFromCache(benchmark::State& state) {
  const HarOptions options{.cache_dir = Folder(), .synthetic = true};
  for (auto _ : state) {
    if (!OpenHar(options, {}).ok()) state.SkipWithError("open");
  }
  fs::remove_all(Folder());
}
BENCHMARK(BM_OpenHarFromCache)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plait::data

BENCHMARK_MAIN();
