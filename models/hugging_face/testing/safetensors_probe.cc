// The program that transformers_test.py and transformers_vit_test.py run: safetensors_probe COMMAND ARGUMENT...
//   run FOLDER BATCH TYPE OUT     reads a model as TYPE (float32, float64) and {"inputs", "targets"}; writes
//                                 "logits", "loss" and each parameter's gradient under its name
//   save-gpt2 FOLDER BIAS GELU    writes a model with random weights: BIAS yes or no, GELU exact or tanh
//   save-llama FOLDER KV_HEADS
//   save-vit FOLDER BIAS          BIAS: of queries, keys and values
//   copy FOLDER OUT BYTES         reads a model, writes it again in shards of BYTES
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>

#include <cstdio>
#include <map>
#include <memory>
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
#include "models/hugging_face/safetensors.h"
#include "models/llama/llama.h"
#include "models/llama/safetensors.h"
#include "models/vit/safetensors.h"
#include "models/vit/vit.h"

namespace plait::hugging_face {
namespace {

namespace st = data::safetensors;
using Arguments = std::vector<std::string>;

// int64 or float32.
absl::StatusOr<at::Tensor> TensorIn(const st::File& file, const std::string& name) {
  PLAIT_ASSIGN_OR_RETURN(const st::TensorView view, file.Find(name));
  const at::Tensor values =
      at::empty(view.info.shape, view.info.dtype == st::DType::kI64 ? at::kLong : at::kFloat);
  PLAIT_RETURN_IF_ERROR(file.ReadInto(name, view.info, values.data_ptr()));
  return values;
}

absl::StatusOr<std::unique_ptr<models::ModuleModel>> Load(const std::string& folder, at::ScalarType type) {
  const auto read = [&](const auto& files,
                        auto model) -> absl::StatusOr<std::unique_ptr<models::ModuleModel>> {
    PLAIT_RETURN_IF_ERROR(files.ReadAll(*model));
    return model;
  };
  PLAIT_ASSIGN_OR_RETURN(const std::string kind, ModelTypeOf(folder));
  if (kind == "llama") {
    PLAIT_ASSIGN_OR_RETURN(const llama::HuggingFaceLlama files, llama::HuggingFaceLlama::Open(folder));
    return read(files, std::make_unique<llama::Llama>(files.options(), type));
  }
  if (kind == "vit") {
    PLAIT_ASSIGN_OR_RETURN(const vit::HuggingFaceVit files, vit::HuggingFaceVit::Open(folder));
    return read(files, std::make_unique<vit::Vit>(files.options(), type));
  }
  PLAIT_ASSIGN_OR_RETURN(const gpt::HuggingFaceGpt2 files, gpt::HuggingFaceGpt2::Open(folder));
  return read(files, std::make_unique<gpt::Gpt>(files.options(), type));
}

absl::Status SaveAs(const models::ModuleModel& model, const std::string& folder, const SaveOptions& options) {
  const auto* gpt = dynamic_cast<const gpt::Gpt*>(&model);
  if (gpt != nullptr) return gpt::SaveHuggingFaceGpt2(*gpt, folder, options);
  const auto* vit = dynamic_cast<const vit::Vit*>(&model);
  if (vit != nullptr) return vit::SaveHuggingFaceVit(*vit, folder, {}, options);
  return llama::SaveHuggingFaceLlama(dynamic_cast<const llama::Llama&>(model), folder, options);
}

absl::Status Run(const Arguments& arguments) {
  PLAIT_ASSIGN_OR_RETURN(const auto model,
                         Load(arguments.at(0), arguments.at(2) == "float64" ? at::kDouble : at::kFloat));
  PLAIT_ASSIGN_OR_RETURN(const st::File batch, st::File::Open(arguments.at(1)));
  PLAIT_ASSIGN_OR_RETURN(at::Tensor inputs, TensorIn(batch, "inputs"));
  PLAIT_ASSIGN_OR_RETURN(const at::Tensor targets, TensorIn(batch, "targets"));
  if (inputs.is_floating_point()) inputs = inputs.to(model->parameters()[0].scalar_type());
  std::vector<std::pair<std::string, at::Tensor>> results = {{"logits", model->Forward(inputs).detach()}};
  const models::LossSum sum = models::RunModel(*model, {.inputs = inputs, .targets = targets});
  const at::Tensor loss = sum.sum.div(sum.count);
  loss.backward();
  results.emplace_back("loss", loss.detach());
  for (const models::ParameterUnit& unit : model->units()) {
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

void Draw(const models::ModuleModel& model) {
  for (const at::Tensor& parameter : model.parameters()) {
    const at::Tensor numbers = at::randn(parameter.sizes());
    parameter.detach().copy_(parameter.dim() >= 2 ? numbers.mul_(0.2) : numbers.mul_(0.2).add_(0.8));
  }
}

absl::Status SaveGpt2(const Arguments& arguments) {
  const gpt::Gpt gpt({.vocab_size = 23,
                      .block_size = 16,
                      .n_layer = 2,
                      .n_head = 4,
                      .n_embd = 32,
                      .bias = arguments.at(1) == "yes",
                      .gelu = arguments.at(2) == "tanh" ? gpt::Gelu::kTanh : gpt::Gelu::kExact},
                     at::kFloat);
  Draw(gpt);
  return SaveAs(gpt, arguments.at(0), {});
}

absl::Status SaveLlama(const Arguments& arguments) {
  llama::LlamaOptions options = {.vocab_size = 23,
                                 .max_seq_len = 16,
                                 .dim = 32,
                                 .n_layers = 2,
                                 .n_heads = 4,
                                 .hidden = 44,
                                 .norm_eps = 0.01,
                                 .rope_theta = 50};
  PLAIT_CHECK(absl::SimpleAtoi(arguments.at(1), &options.n_kv_heads));
  const llama::Llama llama(options, at::kFloat);
  Draw(llama);
  return SaveAs(llama, arguments.at(0), {});
}

absl::Status SaveVit(const Arguments& arguments) {
  const vit::Vit vit({.image_size = 12,
                      .patch_size = 4,
                      .dim = 32,
                      .depth = 2,
                      .heads = 4,
                      .head_dim = 8,
                      .mlp_dim = 44,
                      .classes = 7,
                      .qkv_bias = arguments.at(1) == "yes",
                      .pool = vit::Pool::kClassToken,
                      .norm_eps = 0.01},
                     at::kFloat);
  Draw(vit);
  return SaveAs(vit, arguments.at(0), {});
}

absl::Status Copy(const Arguments& arguments) {
  PLAIT_ASSIGN_OR_RETURN(const auto model, Load(arguments.at(0), at::kFloat));
  SaveOptions options;
  PLAIT_CHECK(absl::SimpleAtoi(arguments.at(2), &options.max_shard_bytes));
  return SaveAs(*model, arguments.at(1), options);
}

int Main(int argc, char** argv) {
  const std::map<std::string, absl::Status (*)(const Arguments&)> commands = {{"run", Run},
                                                                              {"save-gpt2", SaveGpt2},
                                                                              {"save-llama", SaveLlama},
                                                                              {"save-vit", SaveVit},
                                                                              {"copy", Copy}};
  const auto command = commands.find(argc > 2 ? argv[1] : "");
  PLAIT_CHECK(command != commands.end())
      << "safetensors_probe run|save-gpt2|save-llama|save-vit|copy ARGUMENT...";
  const absl::Status status = command->second(Arguments(argv + 2, argv + argc));
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace plait::hugging_face

int main(int argc, char** argv) { return plait::hugging_face::Main(argc, argv); }
