#include "tools/gpt_training/settings.h"

#include <c10/core/ScalarType.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/training/mesh.h"

namespace plait::gpt_training {

using training::AtLeast;
using training::OnResume;

GptSettings::GptSettings() : TextSettings({.sequence = "block_size", .learning_rate = "learning_rate"}) {
  batch_size = 12;
  seed = 1337;
  trace = true;
}

void GptSettings::Bind(training::SettingsTable& table) {
  table.Group("Model");
  table.Add("preset", &preset,
            "sizes and their training by name: shakespeare-cpu, shakespeare, gpt2, gpt2-medium, gpt2-large, "
            "gpt2-xl, llama2B, llama7B; other flags change parts of it",
            OnResume::kPreset);
  table.Add("n_layer", &n_layer, "blocks of the model", OnResume::kSame);
  table.Add("n_head", &n_head, "attention heads per layer", OnResume::kSame);
  table.Add("n_embd", &n_embd, "width of the model, a multiple of --n-head", OnResume::kSame);
  table.Add(sequence_flag, &sequence, "context length in tokens", OnResume::kSame);
  table.Add("vocab_size", &vocab_size,
            "tokens of the model, at least those of the text's tokenizer; 0: as many as that has",
            OnResume::kSame);
  table.Add("dropout", &dropout, "dropout probability", OnResume::kSame);
  table.Add("bias", &bias, "biases in linear layers and norms", OnResume::kSame);
  BindExperts(table);
  BindText(table,
           "text file, directory of .txt files, or token files: a directory of prepare_text's or a FILE.bin "
           "(default: Debian's license texts)",
           "GPT-2");
}

void GptSettings::BindExperts(training::SettingsTable& table) {
  table.Group("Mixture of experts");
  table.Add("moe", &moe.used,
            "experts in place of the mlp of blocks; --mesh=...,ep=N spreads them over data ranks",
            OnResume::kSame);
  table.Add("moe_experts", &moe.experts, "experts of a block", OnResume::kSame);
  table.Add("moe_top_k", &moe.top_k, "experts per token", OnResume::kSame);
  table.Add("moe_every", &moe.every, "every N-th block has experts", OnResume::kSame);
  table.Add("moe_hidden", &moe.hidden, "width of an expert; 0: four times --n-embd", OnResume::kSame);
  table.Add("moe_shared_hidden", &moe.shared_hidden, "width of an expert that all tokens share; 0: none",
            OnResume::kSame);
  table.Add("moe_gate", &moe.gate, "top-k, noisy-top-k, switch, gshard, or bias: without a balance loss",
            OnResume::kSame);
  table.Add("moe_balance_weight", &moe.balance_weight, "weight of the gate's balance loss", OnResume::kSame);
  table.Add("moe_z_weight", &moe.z_weight, "weight of the router's z loss", OnResume::kSame);
  table.Add("moe_bias_rate", &moe.bias_rate, "how far the bias gate moves its biases per step",
            OnResume::kSame);
  table.Add("moe_capacity_factor", &moe.capacity_factor,
            "capacity of an expert as a multiple of the mean rows per expert; rows beyond it are dropped; 0: "
            "unlimited",
            OnResume::kSame);
  table.Add("moe_chunks", &moe.chunks,
            "parts of a rank's tokens, of which one is sent while another is computed");
  table.Add(
      "moe_replicas", &moe.replicas,
      "copies of hot experts on other ranks of ep: home (none), shadow (those that pay), eplb, balanced");
  table.Add("moe_replica_slots", &moe.replica_slots, "maximum number of copies on a rank");
  table.Add("moe_link_bytes_per_second", &moe.link_bytes_per_second,
            "link bandwidth of a rank, for --moe-replicas=shadow");
  table.Add("moe_rank_flops", &moe.rank_flops,
            "operations per second that products reach, for --moe-replicas=shadow");
}

absl::Status GptSettings::CheckGiven(const training::SettingsTable& table) const {
  if (!moe.used && !table.Given("moe")) PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("moe_", "--moe"));
  PLAIT_RETURN_IF_ERROR(moe.gate == "bias"
                            ? table.CheckNoneGiven("moe_balance_weight", "a --moe-gate with a balance loss")
                            : table.CheckNoneGiven("moe_bias_rate", "--moe-gate=bias"));
  if (moe.replicas == "home") {
    PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("moe_replica_slots", "a --moe-replicas other than home"));
  }
  if (moe.replicas != "shadow") {
    for (const char* of_costs : {"moe_link_bytes_per_second", "moe_rank_flops"})
      PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven(of_costs, "--moe-replicas=shadow"));
  }
  return TextSettings::CheckGiven(table);
}

absl::Status GptSettings::CheckExperts() const {
  const auto flag = [](const char* name, const std::string& value, const absl::Status& status) {
    return base::Prefixed(status, absl::StrCat("--", name, "=", value));
  };
  if (!moe.used) {
    if (training::ExpertRanks(mesh) == 1) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--mesh=", mesh, ": a model without experts; expected --moe"));
  }
  PLAIT_RETURN_IF_ERROR(flag("moe-gate", moe.gate, moe::ParseGateKind(moe.gate).status()));
  moe::PlacementPolicy policy;
  PLAIT_RETURN_IF_ERROR(flag("moe-replicas", moe.replicas, moe::ParsePlacementPolicy(moe.replicas, &policy)));
  constexpr double kMostParts = 1 << 20;
  PLAIT_RETURN_IF_ERROR(training::Between("moe-experts", moe.experts, 1, kMostParts));
  PLAIT_RETURN_IF_ERROR(training::Between("moe-top-k", moe.top_k, 1, moe.experts));
  PLAIT_RETURN_IF_ERROR(training::Between("moe-every", moe.every, 1, n_layer));
  PLAIT_RETURN_IF_ERROR(AtLeast("moe-hidden", moe.hidden, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("moe-shared-hidden", moe.shared_hidden, 0));
  PLAIT_RETURN_IF_ERROR(training::Between("moe-chunks", moe.chunks, 1, kMostParts));
  PLAIT_RETURN_IF_ERROR(training::Between("moe-replica-slots", moe.replica_slots, 0, kMostParts));
  PLAIT_RETURN_IF_ERROR(AtLeast("moe-capacity-factor", moe.capacity_factor, 0));
  if (!save_model.empty() || !initial_model().empty()) {
    return absl::InvalidArgumentError(
        "--moe: GPT-2's files have no experts; leave --save-model and --init-from out, and keep "
        "--checkpoint-dir");
  }
  return base::Prefixed(moe::Validate(Experts()), "--moe");
}

moe::MoeOptions GptSettings::Experts() const {
  if (!moe.used) return {};
  moe::MoeOptions options = {.hidden = moe.hidden == 0 ? 4 * n_embd : moe.hidden,
                             .bias = bias,
                             .shared_hidden = moe.shared_hidden,
                             .chunks = static_cast<int>(moe.chunks)};
  options.gate.kind = moe::ParseGateKind(moe.gate).value_or(moe::GateKind::kTopK);
  options.gate.experts = static_cast<int>(moe.experts);
  options.gate.k = static_cast<int>(moe.top_k);
  options.gate.balance_weight = moe.balance_weight;
  options.gate.z_weight = moe.z_weight;
  options.gate.bias_rate = moe.bias_rate;
  options.gate.capacity_factor = moe.capacity_factor;
  static_cast<void>(moe::ParsePlacementPolicy(moe.replicas, &options.planner.policy));
  options.planner.replica_slots = static_cast<int>(moe.replica_slots);
  options.planner.cost = {.link_bytes_per_second = moe.link_bytes_per_second,
                          .rank_flops_per_second = moe.rank_flops,
                          .width = n_embd,
                          .hidden = options.hidden,
                          .element_bytes = static_cast<int>(c10::elementSize(compute_type())),
                          // That are left in the step, in the mean.
                          .micro_batches = (gradient_accumulation_steps + 1) / 2};
  return options;
}

void GptSettings::TakeSizes(const gpt::GptOptions& options) {
  n_layer = options.n_layer;
  n_head = options.n_head;
  n_embd = options.n_embd;
  bias = options.bias;
  if (vocab_size > 0) vocab_size = options.vocab_size;  // 0: the model's
}

absl::Status GptSettings::Check(const std::vector<comm::MeshAxis>& axes) const {
  PLAIT_RETURN_IF_ERROR(AtLeast("n-layer", n_layer, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("n-head", n_head, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("n-embd", n_embd, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("vocab-size", vocab_size, 0));
  PLAIT_RETURN_IF_ERROR(training::Fraction("dropout", dropout));
  if (n_embd % n_head != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--n-embd=", n_embd, ": must be a multiple of --n-head=", n_head));
  }
  PLAIT_RETURN_IF_ERROR(CheckExperts());
  PLAIT_RETURN_IF_ERROR(CheckLayers(axes, "n-layer", n_layer));
  return CheckText(axes);
}

void GptSettings::ChooseTraining(gpt::GptOptions& options) const {
  options.dropout = dropout;
  const moe::MoeOptions experts = Experts();
  moe::GateOptions& gate = options.moe.gate;
  gate.balance_weight = experts.gate.balance_weight;
  gate.z_weight = experts.gate.z_weight;
  gate.bias_rate = experts.gate.bias_rate;
  gate.capacity_factor = experts.gate.capacity_factor;
  options.moe.chunks = experts.chunks;
  options.moe.planner = experts.planner;
}

text_training::ModelOptions GptSettings::Options(std::int64_t vocabulary_size) const {
  return gpt::GptOptions{.vocab_size = vocabulary_size,
                         .block_size = sequence,
                         .n_layer = n_layer,
                         .n_head = n_head,
                         .n_embd = n_embd,
                         .dropout = dropout,
                         .bias = bias,
                         .moe = Experts(),
                         .moe_every = moe.every};
}

}  // namespace plait::gpt_training
