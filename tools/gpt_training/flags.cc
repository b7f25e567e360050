#include "tools/gpt_training/flags.h"

#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "tools/gpt_training/presets.h"

using plait::gpt_training::Config;

ABSL_FLAG(std::string, preset, Config().preset,
          "sizes and their training by name: shakespeare-cpu, shakespeare, gpt2, gpt2-medium, gpt2-large, "
          "gpt2-xl, llama2B, llama7B; other flags change parts of it");
ABSL_FLAG(std::int64_t, n_layer, Config().n_layer, "blocks of the model");
ABSL_FLAG(std::int64_t, n_head, Config().n_head, "heads of an attention");
ABSL_FLAG(std::int64_t, n_embd, Config().n_embd, "width of the model, a multiple of --n-head");
ABSL_FLAG(std::int64_t, block_size, Config().block_size, "tokens that the model sees at once");
ABSL_FLAG(double, dropout, Config().dropout, "share of activations that are dropped in training");
ABSL_FLAG(bool, bias, Config().bias, "linear layers and norms have biases");
ABSL_FLAG(std::string, data, Config().data,
          "text to learn: a file, or a folder of *.txt; empty: the licences of this Debian machine");
ABSL_FLAG(std::string, tokenizer, Config().tokenizer, "characters, or gpt2: byte pairs from --bpe-folder");
ABSL_FLAG(std::string, bpe_folder, Config().bpe_folder, "folder with GPT-2's vocab.json and merges.txt");
ABSL_FLAG(bool, prepare_only, Config().prepare_only, "prepares the text, says what it has, and ends");
ABSL_FLAG(std::int64_t, max_iters, Config().max_iters, "steps of the optimizer");
ABSL_FLAG(std::int64_t, batch_size, Config().batch_size, "blocks of a micro-batch on each rank");
ABSL_FLAG(std::int64_t, global_batch_size, Config().global_batch_size,
          "blocks of a micro-batch on all ranks together, which may get unequal parts; 0: --batch-size on "
          "each");
ABSL_FLAG(int, gradient_accumulation_steps, Config().gradient_accumulation_steps, "micro-batches of a step");
ABSL_FLAG(bool, reduce_each_micro_batch, Config().reduce_each_micro_batch,
          "zero2 and fsdp: gradients travel after each micro-batch, and ranks keep shares in between");
ABSL_FLAG(double, learning_rate, Config().learning_rate, "largest learning rate of AdamW");
ABSL_FLAG(double, min_lr, Config().min_lr, "learning rate from --lr-decay-iters on");
ABSL_FLAG(std::int64_t, warmup_iters, Config().warmup_iters, "steps over which the learning rate rises");
ABSL_FLAG(std::int64_t, lr_decay_iters, Config().lr_decay_iters, "step at which its cosine ends");
ABSL_FLAG(bool, decay_lr, Config().decay_lr, "warm-up and cosine; without, the learning rate is constant");
ABSL_FLAG(double, weight_decay, Config().weight_decay, "of matrices and embeddings, decoupled");
ABSL_FLAG(double, beta1, Config().beta1, "AdamW's decay of the mean of gradients");
ABSL_FLAG(double, beta2, Config().beta2, "AdamW's decay of the mean of their squares");
ABSL_FLAG(double, grad_clip, Config().grad_clip,
          "gradients of a larger norm, over all parameters, are scaled down to it; 0: none");
ABSL_FLAG(std::uint64_t, seed, Config().seed, "of initial parameters, blocks, dropout and samples");
ABSL_FLAG(std::string, dtype, Config().dtype,
          "of parameters and activations in work: float32, bfloat16, float16 (with loss scaling) or float64; "
          "the optimizer has float32, or float64");
ABSL_FLAG(std::string, strategy, Config().strategy,
          "what ranks keep whole: ddp all, zero1 parameters and gradients, zero2 parameters, fsdp nothing");
ABSL_FLAG(std::string, mesh, Config().mesh,
          "ranks along replicas and shares, dp_replicate=2,dp_shard=2; empty: all on one axis");
ABSL_FLAG(bool, reshard_after_forward, Config().reshard_after_forward,
          "fsdp: a block is dropped after its forward pass and gathered again for its backward pass");
ABSL_FLAG(bool, prefetch, Config().prefetch, "fsdp: the next block is gathered while one is in work");
ABSL_FLAG(std::string, activation_checkpointing, Config().activation_checkpointing,
          "blocks that are computed again for their backward pass: none, full (all), every-2, or names with "
          "stars: transformer.h.1*");
ABSL_FLAG(std::string, offload, "none",
          "optimizer's state, with masters in mixed precision: none (in memory), or a folder for files");
ABSL_FLAG(bool, offload_params, false, "with --offload and fsdp: this rank's share of the parameters too");
ABSL_FLAG(std::string, memory_limit, "0",
          "bytes of a rank, such as 8G; a run that needs more does not start. 0: the host's, shared by its "
          "ranks");
ABSL_FLAG(std::int64_t, eval_interval, Config().eval_interval,
          "steps from one estimate of the losses, with a sample, to the next; 0: none");
ABSL_FLAG(std::int64_t, eval_iters, Config().eval_iters, "batches of each such estimate");
ABSL_FLAG(std::int64_t, log_interval, Config().log_interval, "steps from one line to the next");
ABSL_FLAG(std::string, sample_prompt, Config().sample_prompt, "what samples begin with");
ABSL_FLAG(std::int64_t, sample_tokens, Config().sample_tokens, "tokens of a sample; 0: no samples");
ABSL_FLAG(std::string, peak_flops, "none",
          "floating-point operations per second that a rank can do, for mfu: a number, measure (a product of "
          "matrices), or none");
ABSL_FLAG(std::string, checkpoint_dir, Config().checkpoint_dir,
          "where to keep the state of the run, and at SIGTERM; then the exit code is 143");
ABSL_FLAG(std::int64_t, checkpoint_interval, Config().checkpoint_interval,
          "steps from one checkpoint to the next; 0: with each estimate of the losses");
ABSL_FLAG(int, keep_last, Config().keep_last, "checkpoints that are kept");
ABSL_FLAG(std::string, resume, Config().resume, "a checkpoint, or the folder that has some, to go on from");
ABSL_FLAG(std::string, init_from, Config().init_from,
          "scratch, resume (from --checkpoint-dir), or a folder with GPT-2 in Hugging Face's layout");
ABSL_FLAG(std::string, outputs, Config().outputs,
          "folder for history, plots and trace; empty: outputs/train_gpt/DATE-TIME");
ABSL_FLAG(std::string, history, Config().history,
          "HDF5 file of all steps (xarray, ncdump and h5py open it); empty: history.h5 in --outputs");
ABSL_FLAG(bool, plots, Config().plots, "draws the plots, in the terminal and as files");
ABSL_FLAG(bool, trace, Config().trace, "writes a Chrome trace of all ranks (Perfetto opens it)");
ABSL_FLAG(int, nproc, Config().nproc,
          "starts itself on so many ranks where no launcher did; 0: those of --mesh, else one per core, at "
          "most 8");
ABSL_FLAG(double, timeout, Config().timeout_seconds,
          "seconds a rank may wait for another before the job ends and names it");

namespace plait::gpt_training {
namespace {

// What presets choose.
void SetFlags(const Config& c) {
  absl::SetFlag(&FLAGS_n_layer, c.n_layer);
  absl::SetFlag(&FLAGS_n_head, c.n_head);
  absl::SetFlag(&FLAGS_n_embd, c.n_embd);
  absl::SetFlag(&FLAGS_block_size, c.block_size);
  absl::SetFlag(&FLAGS_dropout, c.dropout);
  absl::SetFlag(&FLAGS_max_iters, c.max_iters);
  absl::SetFlag(&FLAGS_batch_size, c.batch_size);
  absl::SetFlag(&FLAGS_learning_rate, c.learning_rate);
  absl::SetFlag(&FLAGS_min_lr, c.min_lr);
  absl::SetFlag(&FLAGS_lr_decay_iters, c.lr_decay_iters);
  absl::SetFlag(&FLAGS_beta2, c.beta2);
  absl::SetFlag(&FLAGS_eval_interval, c.eval_interval);
  absl::SetFlag(&FLAGS_eval_iters, c.eval_iters);
}

// "8G", "512M" or bytes.
absl::StatusOr<double> Bytes(const std::string& text) {
  constexpr std::pair<char, double> kUnits[] = {{'K', 1 << 10}, {'M', 1 << 20}, {'G', 1 << 30}};
  absl::string_view number = text;
  double factor = 1, count = 0;
  for (const auto& [unit, size] : kUnits) {
    if (number.empty() || number.back() != unit) continue;
    factor = size;
    number.remove_suffix(1);
    break;
  }
  if (!absl::SimpleAtod(number, &count) || count < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--memory-limit=", text, ": expected a size such as 8G"));
  }
  return count * factor;
}

absl::StatusOr<double> PeakFlops(const std::string& text) {
  double flops = 0;
  if (text == "none") return 0;
  if (text == "measure") return -1;
  if (absl::SimpleAtod(text, &flops) && flops > 0) return flops;
  return absl::InvalidArgumentError(
      absl::StrCat("--peak-flops=", text, ": expected a number such as 312e12, measure or none"));
}

void TakeTraining(Config& c) {
  c.max_iters = absl::GetFlag(FLAGS_max_iters);
  c.batch_size = absl::GetFlag(FLAGS_batch_size);
  c.global_batch_size = absl::GetFlag(FLAGS_global_batch_size);
  c.gradient_accumulation_steps = absl::GetFlag(FLAGS_gradient_accumulation_steps);
  c.reduce_each_micro_batch = absl::GetFlag(FLAGS_reduce_each_micro_batch);
  c.learning_rate = absl::GetFlag(FLAGS_learning_rate);
  c.min_lr = absl::GetFlag(FLAGS_min_lr);
  c.warmup_iters = absl::GetFlag(FLAGS_warmup_iters);
  c.lr_decay_iters = absl::GetFlag(FLAGS_lr_decay_iters);
  c.decay_lr = absl::GetFlag(FLAGS_decay_lr);
  c.weight_decay = absl::GetFlag(FLAGS_weight_decay);
  c.beta1 = absl::GetFlag(FLAGS_beta1);
  c.beta2 = absl::GetFlag(FLAGS_beta2);
  c.grad_clip = absl::GetFlag(FLAGS_grad_clip);
  c.seed = absl::GetFlag(FLAGS_seed);
}

void TakeModelAndText(Config& c) {
  c.preset = absl::GetFlag(FLAGS_preset);
  c.n_layer = absl::GetFlag(FLAGS_n_layer);
  c.n_head = absl::GetFlag(FLAGS_n_head);
  c.n_embd = absl::GetFlag(FLAGS_n_embd);
  c.block_size = absl::GetFlag(FLAGS_block_size);
  c.dropout = absl::GetFlag(FLAGS_dropout);
  c.bias = absl::GetFlag(FLAGS_bias);
  c.data = base::FromUser(absl::GetFlag(FLAGS_data));
  c.tokenizer = absl::GetFlag(FLAGS_tokenizer);
  c.bpe_folder = base::FromUser(absl::GetFlag(FLAGS_bpe_folder));
  c.prepare_only = absl::GetFlag(FLAGS_prepare_only);
}

absl::Status TakeParallel(Config& c) {
  c.dtype = absl::GetFlag(FLAGS_dtype);
  c.strategy = absl::GetFlag(FLAGS_strategy);
  if (c.strategy == "zero3") c.strategy = "fsdp";
  c.mesh = absl::GetFlag(FLAGS_mesh);
  c.reshard_after_forward = absl::GetFlag(FLAGS_reshard_after_forward);
  c.prefetch = absl::GetFlag(FLAGS_prefetch);
  c.offload = {.folder = training_program::OffloadFolder(absl::GetFlag(FLAGS_offload)),
               .parameters = absl::GetFlag(FLAGS_offload_params)};
  c.nproc = absl::GetFlag(FLAGS_nproc);
  c.timeout_seconds = absl::GetFlag(FLAGS_timeout);
  PLAIT_ASSIGN_OR_RETURN(c.memory_limit_bytes, Bytes(absl::GetFlag(FLAGS_memory_limit)));
  PLAIT_ASSIGN_OR_RETURN(c.peak_flops, PeakFlops(absl::GetFlag(FLAGS_peak_flops)));
  c.activation_checkpointing =
      absl::StrReplaceAll(absl::GetFlag(FLAGS_activation_checkpointing), {{"every-", "every="}});
  return absl::OkStatus();
}

void TakeOutputs(Config& c) {
  c.eval_interval = absl::GetFlag(FLAGS_eval_interval);
  c.eval_iters = absl::GetFlag(FLAGS_eval_iters);
  c.log_interval = absl::GetFlag(FLAGS_log_interval);
  c.sample_prompt = absl::GetFlag(FLAGS_sample_prompt);
  c.sample_tokens = absl::GetFlag(FLAGS_sample_tokens);
  c.checkpoint_dir = base::FromUser(absl::GetFlag(FLAGS_checkpoint_dir));
  c.checkpoint_interval = absl::GetFlag(FLAGS_checkpoint_interval);
  c.keep_last = absl::GetFlag(FLAGS_keep_last);
  c.resume = base::FromUser(absl::GetFlag(FLAGS_resume));
  c.init_from = absl::GetFlag(FLAGS_init_from);
  if (c.init_from == "resume" && c.resume.empty()) c.resume = c.checkpoint_dir;
  if (c.init_from != "resume" && c.init_from != "scratch") c.init_from = base::FromUser(c.init_from);
  c.outputs = base::FromUser(absl::GetFlag(FLAGS_outputs));
  c.history = base::FromUser(absl::GetFlag(FLAGS_history));
  c.plots = absl::GetFlag(FLAGS_plots);
  c.trace = absl::GetFlag(FLAGS_trace);
}

}  // namespace

absl::Status TakePreset(int argc, char** argv) {
  std::string name;
  for (int k = 1; k < argc; ++k) {
    const absl::string_view argument = argv[k];
    if (argument == "--preset" && k + 1 < argc) name = argv[k + 1];
    if (argument.substr(0, 9) == "--preset=") name = std::string(argument.substr(9));
  }
  if (name.empty()) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const Config preset, PresetNamed(name));
  SetFlags(preset);
  return absl::OkStatus();
}

base::ToolUsage Usage() {
  return {
      .name = "train_gpt",
      .summary =
          "Trains a GPT on a text, data-parallel in any way: DDP, ZeRO-1, ZeRO-2, FSDP, with or without "
          "replicas.",
      .examples = {"train_gpt --nproc=2 --preset=shakespeare-cpu --strategy=fsdp",
                   "train_gpt --nproc=4 --strategy=fsdp --mesh=dp_replicate=2,dp_shard=2 --data=input.txt",
                   "mpirun -n 2 train_gpt --preset=gpt2 --batch-size=1 --checkpoint-dir=run --keep-last=3"},
      .groups = {
          {"Model", {"preset", "n_layer", "n_head", "n_embd", "block_size", "dropout", "bias"}},
          {"Text", {"data", "tokenizer", "bpe_folder", "prepare_only"}},
          {"Training",
           {"max_iters", "batch_size", "global_batch_size", "gradient_accumulation_steps", "seed"}},
          {"Optimizer",
           {"learning_rate", "min_lr", "warmup_iters", "lr_decay_iters", "decay_lr", "weight_decay", "beta1",
            "beta2", "grad_clip"}},
          {"Ranks",
           {"nproc", "strategy", "mesh", "reshard_after_forward", "prefetch", "reduce_each_micro_batch",
            "timeout"}},
          {"Arithmetic and memory",
           {"dtype", "activation_checkpointing", "offload", "offload_params", "memory_limit"}},
          {"What it says",
           {"eval_interval", "eval_iters", "log_interval", "sample_prompt", "sample_tokens", "peak_flops"}},
          {"Files",
           {"checkpoint_dir", "checkpoint_interval", "keep_last", "resume", "init_from", "outputs", "history",
            "plots", "trace"}}}};
}

absl::StatusOr<Config> ConfigFromFlags() {
  Config c;
  TakeModelAndText(c);
  TakeTraining(c);
  PLAIT_RETURN_IF_ERROR(TakeParallel(c));
  TakeOutputs(c);
  return c;
}

std::string FlagSettings() { return base::Settings(Usage()); }

}  // namespace plait::gpt_training
