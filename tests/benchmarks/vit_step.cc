// Forward and backward passes of a vision transformer on one thread, beside peer_vit.py:
//
//   vit_step step=3 loss=7.0312 dt=0.812 cpu=0.811
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/sin.h>
#include <time.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/flags.h"
#include "base/keep_freed_memory.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "data/safetensors/writer.h"
#include "models/vit/vit.h"

ABSL_FLAG(std::string, preset, "vit-small", "sizes of models/vit/options.h");
ABSL_FLAG(std::string, dtype, "float32", "float32, bfloat16 (parameters and activations) or float64");
ABSL_FLAG(std::int64_t, batch_size, 8, "images");
ABSL_FLAG(std::int64_t, steps, 10, "passes, each on the same images");
ABSL_FLAG(bool, math, false, "attention by batched products");
ABSL_FLAG(std::string, write_initial, "", "safetensors file for the initial values, in float64");

namespace plait::benchmarks {
namespace {

namespace st = data::safetensors;

double ProcessorSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// sin(0.37 n^2) for n = 0, 1, ...; image k has class 7 k modulo their number. peer_vit.py has the same.
models::Batch BatchOf(const vit::VitOptions& o, std::int64_t images, at::ScalarType type) {
  const at::Tensor n =
      at::arange(images * o.channels * o.image_size * o.image_size, at::kDouble).remainder(100003);
  return {at::sin(n * n * 0.37).view({images, o.channels, o.image_size, o.image_size}).to(type),
          at::remainder(at::arange(images, at::kLong) * 7, o.classes)};
}

absl::Status WriteInitial(const vit::Vit& model, const std::string& path) {
  std::vector<at::Tensor> kept;
  std::vector<st::TensorView> views;
  for (const models::ParameterUnit& unit : model.units()) {
    for (const models::ParameterSpec& parameter : unit.parameters) {
      kept.push_back(parameter.tensor.detach().to(at::kDouble).contiguous());
      views.push_back(
          {parameter.name, {st::DType::kF64, kept.back().sizes().vec()}, kept.back().const_data_ptr()});
    }
  }
  return st::WriteFile(path, views, {{"format", "pt"}});
}

absl::Status Run() {
  PLAIT_ASSIGN_OR_RETURN(vit::VitOptions options, vit::PresetNamed(absl::GetFlag(FLAGS_preset)));
  if (absl::GetFlag(FLAGS_math)) options.attention = vit::Attention::kMath;
  const std::string dtype = absl::GetFlag(FLAGS_dtype);
  if (dtype != "float32" && dtype != "float64" && dtype != "bfloat16") {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype=", dtype, ": expected float32, bfloat16 or float64"));
  }
  const at::ScalarType type = dtype == "float64"    ? at::kDouble
                              : dtype == "bfloat16" ? at::kBFloat16
                                                    : at::kFloat;
  at::set_num_threads(1);
  vit::Vit model(options, type);
  const std::string initial = base::FromUser(absl::GetFlag(FLAGS_write_initial));
  if (!initial.empty()) PLAIT_RETURN_IF_ERROR(WriteInitial(model, initial));
  const models::Batch batch = BatchOf(options, absl::GetFlag(FLAGS_batch_size), type);
  for (std::int64_t step = 0; step < absl::GetFlag(FLAGS_steps); ++step) {
    for (const at::Tensor& parameter : model.parameters()) parameter.mutable_grad() = at::Tensor();
    const double begin = NowSeconds(), cpu_begin = ProcessorSeconds();
    const models::LossSum loss = models::RunModel(model, batch);
    const at::Tensor mean = loss.sum.div(loss.count);
    mean.backward();
    std::printf("vit_step step=%lld loss=%.17g dt=%.6f cpu=%.6f\n", static_cast<long long>(step),
                mean.item<double>(), NowSeconds() - begin, ProcessorSeconds() - cpu_begin);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace plait::benchmarks

int main(int argc, char** argv) {
  using namespace plait;
  base::ParseFlagsOrExit(argc, argv,
                         {.name = "vit_step",
                          .summary = "Forward and backward passes of a vision transformer, timed.",
                          .examples = {"vit_step --preset=vit-small --dtype=bfloat16"},
                          .groups = {}},
                         0);
  base::KeepFreedMemory();
  const absl::Status status = benchmarks::Run();
  if (!status.ok()) std::fprintf(stderr, "vit_step: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
