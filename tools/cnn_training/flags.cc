#include "tools/cnn_training/flags.h"

#include <cstdint>

#include "absl/flags/flag.h"
#include "base/path.h"

using plait::cnn_training::Config;

ABSL_FLAG(std::int64_t, batch_size, Config().batch_size, "samples of a step on each rank");
ABSL_FLAG(std::int64_t, test_batch_size, Config().test_batch_size,
          "samples of a pass of the test on each rank");
ABSL_FLAG(int, epochs, Config().epochs, "how often to go through the data");
ABSL_FLAG(double, lr, Config().lr, "learning rate of AdamW in the first epoch");
ABSL_FLAG(double, gamma, Config().gamma, "factor of the learning rate from one epoch to the next");
ABSL_FLAG(double, weight_decay, Config().weight_decay, "of all parameters");
ABSL_FLAG(double, dropout1, Config().dropout1, "share of the convolutions' outputs that is dropped");
ABSL_FLAG(double, dropout2, Config().dropout2, "share of the hidden units that is dropped");
ABSL_FLAG(std::uint64_t, seed, Config().seed,
          "of the initial parameters, the order of the samples, and dropout");
ABSL_FLAG(std::string, dtype, Config().dtype,
          "of parameters and activations: float32, bfloat16 (with float32 masters) or float64");
ABSL_FLAG(std::string, strategy, Config().strategy,
          "what ranks keep whole: ddp all, zero1 not the optimizer's state, zero2 not gradients either, fsdp "
          "nothing");
ABSL_FLAG(std::string, mesh, Config().mesh,
          "ranks along both axes, dp_replicate=2,dp_shard=2; by default all on the axis of the strategy");
ABSL_FLAG(std::string, activation_checkpoints, Config().activation_checkpoints,
          "layers that are computed again in backward: none, full, every=2, or names such as conv1,conv2");
ABSL_FLAG(std::string, offload, "none",
          "optimizer's state, with masters in mixed precision: none (in memory), or a folder for files");
ABSL_FLAG(bool, offload_params, false, "with --offload and fsdp: this rank's share of the parameters too");
ABSL_FLAG(std::string, data, Config().data,
          "a folder of IDX files (MNIST); by default Fashion-MNIST of Debian's package "
          "dataset-fashion-mnist, else a synthetic stand-in");
ABSL_FLAG(std::int64_t, max_samples, Config().max_samples,
          "of training and of testing, the first so many; 0: all");
ABSL_FLAG(int, nproc, Config().nproc,
          "starts itself on so many ranks where no launcher did; 0: as the mesh says, else one per core, at "
          "most 8");
ABSL_FLAG(double, timeout, Config().timeout_seconds,
          "seconds a rank may wait for another before the job ends and names it");
ABSL_FLAG(std::string, outputs, Config().outputs,
          "folder for history and plots; empty: outputs/train_cnn/DATE-TIME");
ABSL_FLAG(std::string, history, Config().history,
          "HDF5 file of all epochs (xarray, ncdump and h5py open it); empty: history.h5 in --outputs");
ABSL_FLAG(bool, plots, Config().plots, "draws the plots, in the terminal and as files");
ABSL_FLAG(std::string, checkpoint_dir, Config().checkpoint_dir,
          "folder for checkpoints: as often as said, at SIGTERM and before the job's time is over; then the "
          "exit code is 143");
ABSL_FLAG(std::int64_t, checkpoint_every, Config().checkpoint_every,
          "steps from one checkpoint to the next; 0: one at the end of each epoch");
ABSL_FLAG(int, keep_last, Config().keep_last, "checkpoints that stay; 0: all");
ABSL_FLAG(std::string, resume, Config().resume, "a checkpoint, or the folder that holds them, to go on from");
ABSL_FLAG(std::string, save_model, Config().save_model,
          "an existing folder for model.safetensors, at the end");

namespace plait::cnn_training {

base::ToolUsage Usage() {
  return {.name = "train_cnn",
          .summary =
              "Trains a convolutional network on MNIST or Fashion-MNIST, its parameters, gradients and "
              "optimizer state whole on every rank or sharded over ranks.",
          .examples = {"train_cnn", "train_cnn --nproc=2 --strategy=fsdp --epochs=20 --data=mnist",
                       "mpirun -n 4 train_cnn --mesh=dp_replicate=2,dp_shard=2 --checkpoint-dir=run"},
          .groups = {{"Training",
                      {"batch_size", "test_batch_size", "epochs", "lr", "gamma", "weight_decay", "dropout1",
                       "dropout2", "seed"}},
                     {"Arithmetic and memory",
                      {"dtype", "strategy", "mesh", "activation_checkpoints", "offload", "offload_params"}},
                     {"Data", {"data", "max_samples"}},
                     {"Ranks", {"nproc", "timeout"}},
                     {"Files",
                      {"outputs", "history", "plots", "checkpoint_dir", "checkpoint_every", "keep_last",
                       "resume", "save_model"}}}};
}

Config ConfigFromFlags() {
  Config c;
  c.batch_size = absl::GetFlag(FLAGS_batch_size);
  c.test_batch_size = absl::GetFlag(FLAGS_test_batch_size);
  c.epochs = absl::GetFlag(FLAGS_epochs);
  c.lr = absl::GetFlag(FLAGS_lr);
  c.gamma = absl::GetFlag(FLAGS_gamma);
  c.weight_decay = absl::GetFlag(FLAGS_weight_decay);
  c.dropout1 = absl::GetFlag(FLAGS_dropout1);
  c.dropout2 = absl::GetFlag(FLAGS_dropout2);
  c.seed = absl::GetFlag(FLAGS_seed);
  c.dtype = absl::GetFlag(FLAGS_dtype);
  c.strategy = absl::GetFlag(FLAGS_strategy);
  c.mesh = absl::GetFlag(FLAGS_mesh);
  c.activation_checkpoints = absl::GetFlag(FLAGS_activation_checkpoints);
  c.offload = {.folder = training_program::OffloadFolder(absl::GetFlag(FLAGS_offload)),
               .parameters = absl::GetFlag(FLAGS_offload_params)};
  c.data = base::FromUser(absl::GetFlag(FLAGS_data));
  c.max_samples = absl::GetFlag(FLAGS_max_samples);
  c.nproc = absl::GetFlag(FLAGS_nproc);
  c.timeout_seconds = absl::GetFlag(FLAGS_timeout);
  c.outputs = base::FromUser(absl::GetFlag(FLAGS_outputs));
  c.history = base::FromUser(absl::GetFlag(FLAGS_history));
  c.plots = absl::GetFlag(FLAGS_plots);
  c.checkpoint_dir = base::FromUser(absl::GetFlag(FLAGS_checkpoint_dir));
  c.checkpoint_every = absl::GetFlag(FLAGS_checkpoint_every);
  c.keep_last = absl::GetFlag(FLAGS_keep_last);
  c.resume = base::FromUser(absl::GetFlag(FLAGS_resume));
  c.save_model = base::FromUser(absl::GetFlag(FLAGS_save_model));
  return c;
}

std::string FlagSettings() { return base::Settings(Usage()); }

}  // namespace plait::cnn_training
