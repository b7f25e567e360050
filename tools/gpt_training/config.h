// All settings of a training run, with their defaults: the one place where these are chosen.
//
//   PLAIT_ASSIGN_OR_RETURN(Config config, PresetNamed("shakespeare"));   // presets.h
//   config.n_layer = 4;
//   PLAIT_RETURN_IF_ERROR(Check(config, /*ranks=*/4));                    // before any work
//
// Local.
#ifndef PLAIT_TOOLS_GPT_TRAINING_CONFIG_H_
#define PLAIT_TOOLS_GPT_TRAINING_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/training_program/mesh_flag.h"
#include "tools/training_program/offload_flag.h"

namespace plait::gpt_training {

struct Config {
  // Of nanoGPT's setting for processors (Karpathy 2022, config/train_shakespeare_char.py and its README).
  std::string preset = "shakespeare-cpu";
  std::int64_t n_layer = 4;
  std::int64_t n_head = 4;
  std::int64_t n_embd = 128;
  std::int64_t block_size = 64;  // tokens that the model sees at once
  double dropout = 0;
  bool bias = false;  // of linear layers and norms

  std::string data = "";                 // a file or a folder of *.txt; empty: the default text of data/text
  std::string tokenizer = "characters";  // or "gpt2"
  std::string bpe_folder = "";           // of GPT-2's two vocabulary files
  bool prepare_only = false;

  std::int64_t max_iters = 2000;         // steps of the optimizer
  std::int64_t batch_size = 12;          // blocks of a micro-batch on each rank
  std::int64_t global_batch_size = 0;    // the same on all ranks together; 0: batch_size * ranks
  int gradient_accumulation_steps = 1;   // micro-batches of a step
  bool reduce_each_micro_batch = false;  // zero2, fsdp: shares instead of whole gradients in between
  double learning_rate = 1e-3;
  double min_lr = 1e-4;
  std::int64_t warmup_iters = 100;
  std::int64_t lr_decay_iters = 2000;
  bool decay_lr = true;
  double weight_decay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double grad_clip = 1;  // 0: none
  std::uint64_t seed = 1337;

  std::string dtype = "float32";  // of parameters and activations: float32, bfloat16, float16, float64
  std::string strategy = "ddp";   // zero1, zero2, fsdp: parallel/sharding/strategy.h
  std::string mesh = "";          // "dp_replicate=1,dp_shard=2"; empty: all ranks on the strategy's axis
  bool reshard_after_forward = true;
  bool prefetch = true;
  // Blocks computed again in backward: parallel/activation_checkpoint's policies; "every-2" is "every=2".
  std::string activation_checkpointing = "none";
  training_program::Offload offload = {};
  double memory_limit_bytes = 0;  // of a rank; 0: what the host has, shared by its ranks

  std::int64_t eval_interval = 250;  // steps; 0: never
  std::int64_t eval_iters = 20;      // batches of each part of the text
  std::int64_t log_interval = 10;
  std::string sample_prompt = "What is an LLM?";
  std::int64_t sample_tokens = 256;  // at each evaluation; 0: no sample
  // Of a rank, for mfu; 0: none is printed; -1: a matrix product is measured.
  double peak_flops = 0;

  std::string checkpoint_dir = "";
  std::int64_t checkpoint_interval = 0;  // steps; 0: at evaluations
  int keep_last = 2;
  std::string resume = "";            // a checkpoint's folder
  std::string init_from = "scratch";  // "resume", or a folder with a model in Hugging Face's layout
  std::string outputs = "";           // folder; empty: outputs/train_gpt/STAMP
  std::string history = "";           // empty: history.h5 in it
  bool plots = true;
  bool trace = true;

  int nproc = 0;  // 0: the mesh's ranks, else one per core, at most 8
  double timeout_seconds = 600;
};

using training_program::MeshShape;

// Of a checked strategy. Errors as those of training_program::MeshOf.
absl::StatusOr<MeshShape> MeshOf(const Config& config, int ranks);

std::int64_t GlobalBatchSize(const Config& config, int ranks);
// The most blocks that a rank has in a pass.
std::int64_t MicroBatchOfRank(const Config& config, int ranks);
// Of all ranks and micro-batches.
std::int64_t TokensPerStep(const Config& config, int ranks);

// A step at which the losses are estimated: every eval_interval steps and the last. Step 0, before training,
// counts.
bool EvaluatesAt(const Config& config, std::int64_t step);
bool KeepsCheckpointAt(const Config& config, std::int64_t step);

// InvalidArgument, one line with the flag's name, for what cannot work on `ranks` ranks.
absl::Status Check(const Config& config, int ranks);

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_CONFIG_H_
