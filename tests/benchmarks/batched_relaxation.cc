// What relaxation of many steps at once gives, against one after another and against a serial sweep:
//
//   bazel run //tests/benchmarks:batched_relaxation -- --device=cuda
//
// Forward passes of one rank in float32, each the median of --repeats, in turns: the serial sweep, eager and replayed as
// a CUDA graph; the layer-parallel solver (--levels, --cfactor, --iterations, FCF-relaxation on coarse levels), steps
// one by one and together; LibTorch's own GRU (cuDNN on a GPU). "error" is that of the layer-parallel state, which is
// not converged. Behind the table, of each network: from which length on steps together beat the best serial way.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/flags.h"
#include "base/status_macros.h"
#include "tests/benchmarks/captured_work.h"
#include "tests/benchmarks/networks_to_relax.h"
#include "tests/benchmarks/spread.h"
#include "tools/device/device.h"

ABSL_FLAG(std::string, device, "auto", "cpu, cuda, or auto: cuda where there is a GPU");
ABSL_FLAG(std::string, networks, "gru,dense,conv,transformer", "of these");
ABSL_FLAG(std::string, steps, "64,256,1024", "lengths: steps of a sequence, layers of a network");
ABSL_FLAG(std::string, batches, "1,16,128", "samples");
ABSL_FLAG(std::string, hidden, "64,256", "units, channels, width");
ABSL_FLAG(int, levels, 3, "levels of the solver");
ABSL_FLAG(int, cfactor, 8, "coarsening factor");
ABSL_FLAG(int, iterations, 2, "of the solver");
ABSL_FLAG(int, repeats, 5, "timed repetitions, after one that is not");
ABSL_FLAG(int, threads, 1, "of LibTorch, on the processor");

namespace plait::benchmarks {
namespace {

base::ToolUsage Usage() {
  return {.name = "batched_relaxation",
          .summary = "Layer-parallel steps together against one by one and against serial sweeps.",
          .examples = {"batched_relaxation --device=cuda",
                       "batched_relaxation --device=cpu --steps=64 --batches=16 --hidden=64 --repeats=3"}};
}

constexpr double kNone = std::numeric_limits<double>::infinity();

// Seconds, kNone where there is no such way.
struct Times {
  double serial = kNone, graph = kNone, library = kNone, one_by_one = kNone, together = kNone;
  double error = 0;
  double best_serial() const { return std::min({serial, graph, library}); }
};

absl::StatusOr<std::vector<std::int64_t>> Numbers(const char* flag, const std::string& text) {
  std::vector<std::int64_t> numbers;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    std::int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, "=", text, ": expected positive numbers, such as 16,64"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<at::Device> ChosenDevice() {
  const std::string name = absl::GetFlag(FLAGS_device);
  const bool has_gpu = at::detail::getCUDAHooks().deviceCount() > 0;
  if (name == "cpu" || (name == "auto" && !has_gpu)) return at::Device(at::kCPU);
  if (name != "cuda" && name != "auto") {
    return absl::InvalidArgumentError(absl::StrCat("--device=", name, ": expected auto, cpu or cuda"));
  }
  if (!has_gpu)
    return absl::FailedPreconditionError("--device=cuda: LibTorch finds no GPU here; use --device=cpu");
  return at::Device(at::kCUDA, 0);
}

double SecondsOf(at::Device device, const std::function<void()>& work) {
  const double start = device::SecondsWhenDone(device);
  work();
  return device::SecondsWhenDone(device) - start;
}

Times Measure(const NetworkToRelax& network, at::Device device) {
  const at::NoGradGuard no_grad;
  Times times;
  const at::Tensor exact = network.serial();
  times.error = ((network.together() - exact).norm() / exact.norm()).item<double>();
  const auto quiet = [](const std::function<at::Tensor()>& run) -> std::function<void()> {
    if (run == nullptr) return nullptr;
    return [run] { run(); };
  };
  const std::vector<std::pair<std::function<void()>, double*>> ways = {
      {quiet(network.serial), &times.serial},
      {Capture(device, quiet(network.serial)), &times.graph},
      {quiet(network.by_library), &times.library},
      {quiet(network.one_by_one), &times.one_by_one},
      {quiet(network.together), &times.together}};
  std::vector<std::vector<double>> samples(ways.size());
  for (int repeat = 0; repeat <= absl::GetFlag(FLAGS_repeats); ++repeat) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (ways[i].first == nullptr) continue;
      const double seconds = SecondsOf(device, ways[i].first);
      if (repeat > 0) samples[i].push_back(seconds);
    }
  }
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (!samples[i].empty()) *ways[i].second = SpreadOf(samples[i]).median;
  }
  return times;
}

std::string Milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", seconds * 1e3);
  return seconds == kNone ? "-" : text;
}

void PrintLine(const std::string& kind, const NetworkSize& size, const Times& t) {
  std::printf("%-12s %6lld %6lld %6lld %10s %10s %10s %11s %10s %8.2f %8.2f %9.1e\n", kind.c_str(),
              static_cast<long long>(size.steps), static_cast<long long>(size.batch),
              static_cast<long long>(size.hidden), Milliseconds(t.serial).c_str(),
              Milliseconds(t.graph).c_str(), Milliseconds(t.library).c_str(),
              Milliseconds(t.one_by_one).c_str(), Milliseconds(t.together).c_str(), t.one_by_one / t.together,
              t.best_serial() / t.together, t.error);
  std::fflush(stdout);
}

// The shortest length from which on all lengths are quicker together than the best serial way; 0: none is.
std::int64_t Crossover(const std::map<std::int64_t, Times>& by_steps) {
  std::int64_t from = 0;
  for (auto it = by_steps.rbegin(); it != by_steps.rend() && it->second.together < it->second.best_serial();
       ++it) {
    from = it->first;
  }
  return from;
}

absl::Status Run() {
  if (absl::GetFlag(FLAGS_repeats) < 1) return absl::InvalidArgumentError("--repeats: must be at least 1");
  PLAIT_ASSIGN_OR_RETURN(const at::Device device, ChosenDevice());
  PLAIT_ASSIGN_OR_RETURN(const auto lengths, Numbers("steps", absl::GetFlag(FLAGS_steps)));
  PLAIT_ASSIGN_OR_RETURN(const auto batches, Numbers("batches", absl::GetFlag(FLAGS_batches)));
  PLAIT_ASSIGN_OR_RETURN(const auto widths, Numbers("hidden", absl::GetFlag(FLAGS_hidden)));
  at::set_num_threads(std::max(1, absl::GetFlag(FLAGS_threads)));
  const mgrit::LayerParallelOptions options =
      mgrit::MakeLayerParallelOptions(absl::GetFlag(FLAGS_levels), absl::GetFlag(FLAGS_cfactor),
                                      absl::GetFlag(FLAGS_iterations), /*backward_iterations=*/1);
  std::printf("Device: %s; levels %d, cfactor %d, iterations %d; milliseconds of a forward pass\n",
              device.str().c_str(), absl::GetFlag(FLAGS_levels), absl::GetFlag(FLAGS_cfactor),
              absl::GetFlag(FLAGS_iterations));
  std::printf("%-12s %6s %6s %6s %10s %10s %10s %11s %10s %8s %8s %9s\n", "network", "steps", "batch",
              "hidden", "serial", "graph", "libtorch", "one by one", "together", "gain", "/serial", "error");
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::map<std::int64_t, Times>> all;
  const std::vector<std::string> kinds = absl::StrSplit(absl::GetFlag(FLAGS_networks), ',');
  for (const std::string& kind : kinds) {
    for (const std::int64_t hidden : widths) {
      for (const std::int64_t batch : batches) {
        for (const std::int64_t steps : lengths) {
          PLAIT_RETURN_IF_ERROR(mgrit::LayerParallel::Check(options, steps));
          const NetworkSize size = {.steps = steps, .batch = batch, .hidden = hidden};
          PLAIT_ASSIGN_OR_RETURN(const NetworkToRelax network, MakeNetwork(kind, size, options, device));
          const Times times = Measure(network, device);
          PrintLine(kind, size, times);
          all[{kind, hidden, batch}][steps] = times;
        }
      }
    }
  }
  double best = 0;
  for (const auto& [key, by_steps] : all) {
    const std::int64_t from = Crossover(by_steps);
    std::printf("%s, hidden %lld, batch %lld: together beats the best serial way %s\n",
                std::get<0>(key).c_str(), static_cast<long long>(std::get<1>(key)),
                static_cast<long long>(std::get<2>(key)),
                from == 0 ? "at none of these lengths" : absl::StrCat("from ", from, " steps on").c_str());
    for (const auto& [steps, times] : by_steps) best = std::max(best, times.best_serial() / times.together);
  }
  std::printf("Best: %.2f times as quick as the best serial way\n", best);
  return absl::OkStatus();
}

}  // namespace
}  // namespace plait::benchmarks

int main(int argc, char** argv) {
  plait::base::ParseFlagsOrExit(argc, argv, plait::benchmarks::Usage());
  const absl::Status status = plait::benchmarks::Run();
  if (!status.ok()) std::fprintf(stderr, "batched_relaxation: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
