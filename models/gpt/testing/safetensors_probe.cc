// What safetensors_transformers_test.py asks of the library: safetensors_probe COMMAND ARGUMENT...
//   run FOLDER BATCH TYPE OUT     reads a model as TYPE (float32, float64) and {"tokens", "targets"}; writes
//                                 "logits", "loss" and each parameter's gradient under its name
//   save FOLDER BIAS GELU         writes a model with random numbers: BIAS yes or no, GELU exact or tanh
//   copy FOLDER OUT BYTES         reads a model, writes it again in shards of BYTES
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "data/safetensors/file.h"
#include "data/safetensors/writer.h"
#include "models/gpt/gpt.h"
#include "models/gpt/safetensors.h"

namespace plait::gpt {
namespace {

namespace st = data::safetensors;
using Arguments = std::vector<std::string>;

absl::StatusOr<at::Tensor> Tokens(const st::File& file, const std::string& name) {
  PLAIT_ASSIGN_OR_RETURN(const st::TensorView view, file.Find(name));
  const at::Tensor tokens = at::empty(view.info.shape, at::kLong);
  PLAIT_RETURN_IF_ERROR(file.ReadInto(name, {st::DType::kI64, view.info.shape}, tokens.data_ptr()));
  return tokens;
}

absl::StatusOr<Gpt> Load(const std::string& folder, at::ScalarType type) {
  PLAIT_ASSIGN_OR_RETURN(const HuggingFaceGpt2 files, HuggingFaceGpt2::Open(folder));
  Gpt gpt(files.options(), type);
  PLAIT_RETURN_IF_ERROR(files.ReadAll(gpt));
  return gpt;
}

absl::Status Run(const Arguments& arguments) {
  PLAIT_ASSIGN_OR_RETURN(Gpt gpt,
                         Load(arguments.at(0), arguments.at(2) == "float64" ? at::kDouble : at::kFloat));
  PLAIT_ASSIGN_OR_RETURN(const st::File batch, st::File::Open(arguments.at(1)));
  PLAIT_ASSIGN_OR_RETURN(const at::Tensor tokens, Tokens(batch, "tokens"));
  PLAIT_ASSIGN_OR_RETURN(const at::Tensor targets, Tokens(batch, "targets"));
  std::vector<std::pair<std::string, at::Tensor>> results = {{"logits", gpt.Forward(tokens).detach()}};
  const models::LossSum sum = models::RunModel(gpt, {.inputs = tokens, .targets = targets});
  const at::Tensor loss = sum.sum.div(sum.count);
  loss.backward();
  results.emplace_back("loss", loss.detach());
  for (const models::ParameterUnit& unit : gpt.units()) {
    for (const models::ParameterSpec& parameter : unit.parameters) {
      results.emplace_back(parameter.name, parameter.tensor.grad());
    }
  }
  std::vector<st::TensorView> views;
  for (auto& [name, tensor] : results) {
    tensor = tensor.to(at::kDouble).contiguous();
    views.push_back({name, {st::DType::kF64, tensor.sizes().vec()}, tensor.const_data_ptr()});
  }
  return st::WriteFile(arguments.at(3), views, {{"format", "pt"}});
}

absl::Status Save(const Arguments& arguments) {
  const Gpt gpt({.vocab_size = 23,
                 .block_size = 16,
                 .n_layer = 2,
                 .n_head = 4,
                 .n_embd = 32,
                 .bias = arguments.at(1) == "yes",
                 .gelu = arguments.at(2) == "tanh" ? Gelu::kTanh : Gelu::kExact},
                at::kFloat);
  for (const at::Tensor& parameter : gpt.parameters()) {
    const at::Tensor numbers = at::randn(parameter.sizes());
    parameter.detach().copy_(parameter.dim() == 2 ? numbers.mul_(0.2) : numbers.mul_(0.2).add_(0.8));
  }
  return SaveHuggingFaceGpt2(gpt, arguments.at(0));
}

absl::Status Copy(const Arguments& arguments) {
  PLAIT_ASSIGN_OR_RETURN(const Gpt gpt, Load(arguments.at(0), at::kFloat));
  SaveOptions options;
  PLAIT_CHECK(absl::SimpleAtoi(arguments.at(2), &options.max_shard_bytes));
  return SaveHuggingFaceGpt2(gpt, arguments.at(1), options);
}

int Main(int argc, char** argv) {
  PLAIT_CHECK(argc > 2) << "safetensors_probe run|save|copy ARGUMENT...";
  const std::string command = argv[1];
  const Arguments arguments(argv + 2, argv + argc);
  const absl::Status status = command == "run"    ? Run(arguments)
                              : command == "save" ? Save(arguments)
                                                  : Copy(arguments);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace plait::gpt

int main(int argc, char** argv) { return plait::gpt::Main(argc, argv); }
