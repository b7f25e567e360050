// Seconds of a training step (forward, loss, backward) of the serial GRU, one thread:
//
//   bazel run //models/gru:gru_benchmark -- [repeats] [classic|implicit|bfloat16|all]
//
// prints, per variant, `gru_step program=plait variant=classic median=0.0801 min=0.0790 max=0.0840
// cpu_median=0.0800 repeats=20`; cpu_median is CPU time, the better measure on a shared machine.
// models/gru/torch_gru_benchmark.py prints the same line for torch.nn.GRU and can alternate between both.
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "models/gru/sequence_classifier.h"

namespace {

struct Variant {
  const char* name;
  plait::gru::GruKind kind;
  plait::gru::GruProducts products;
};

constexpr Variant kVariants[] = {
    {"classic", plait::gru::GruKind::kClassic, plait::gru::GruProducts::kFull},
    {"implicit", plait::gru::GruKind::kImplicit, plait::gru::GruProducts::kFull},
    {"bfloat16", plait::gru::GruKind::kClassic, plait::gru::GruProducts::kBFloat16},
};

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Measure(const Variant& variant, int repeats) {
  plait::gru::SequenceClassifier classifier({{{9, 100, 2, variant.kind, variant.products}, {}}, 6},
                                            at::kFloat);
  const at::Tensor x = at::randn({100, 128, 9});
  const at::Tensor labels = at::randint(6, {100}, at::kLong);
  std::vector<double> seconds, cpu_seconds;
  for (int i = 0; i <= repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = ThreadSeconds();
    for (at::Tensor& p : classifier.parameters()) p.mutable_grad().reset();
    // One thread: backward runs on this one too.
    at::cross_entropy_loss(classifier.Forward(x), labels).backward();
    if (i == 0) continue;  // allocates
    cpu_seconds.push_back(ThreadSeconds() - cpu_start);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::printf("gru_step program=plait variant=%s median=%.4f min=%.4f max=%.4f cpu_median=%.4f repeats=%d\n",
              variant.name, Median(seconds), *std::min_element(seconds.begin(), seconds.end()),
              *std::max_element(seconds.begin(), seconds.end()), Median(cpu_seconds), repeats);
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 20;
  const char* only = argc > 2 ? argv[2] : "all";
  if (repeats < 1) {
    std::fprintf(stderr, "gru_benchmark: repeats must be a positive number, is %s\n", argv[1]);
    return 1;
  }
  at::set_num_threads(1);
  for (const Variant& variant : kVariants) {
    if (!std::strcmp(only, "all") || !std::strcmp(only, variant.name)) Measure(variant, repeats);
  }
  return 0;
}
