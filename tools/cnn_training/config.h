// All settings of a training run, with their defaults: the one place where these are chosen.
//
//   Config config;                                                      // the defaults
//   config.strategy = "zero2";
//   PLAIT_RETURN_IF_ERROR(Check(config, /*ranks=*/4));                  // before any work
//   PLAIT_ASSIGN_OR_RETURN(const MeshShape mesh, MeshOf(config, 4));
//
// Local.
#ifndef PLAIT_TOOLS_CNN_TRAINING_CONFIG_H_
#define PLAIT_TOOLS_CNN_TRAINING_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "parallel/sharding/strategy.h"
#include "tools/training_program/mesh_flag.h"
#include "tools/training_program/offload_flag.h"

namespace plait::cnn_training {

struct Config {
  // Of PyTorch's MNIST example for fully sharded training.
  std::int64_t batch_size = 64;         // samples of a step on each rank
  std::int64_t test_batch_size = 1000;  // the same of a test
  int epochs = 10;
  double lr = 1e-3;
  double gamma = 0.7;  // of the learning rate, per epoch
  double weight_decay = 0.01;
  double dropout1 = 0.25, dropout2 = 0.5;
  std::uint64_t seed = 1;

  std::string dtype = "float32";  // of parameters and activations: float32, bfloat16, float64
  std::string strategy = "fsdp";  // ddp, zero1, zero2, fsdp: parallel/sharding/strategy.h
  std::string mesh = "";          // "dp_replicate=2,dp_shard=2"; empty: all ranks on the strategy's axis
  // Layers computed again in backward: a policy of parallel/activation_checkpoint.
  std::string activation_checkpoints = "none";
  training_program::Offload offload = {};

  std::string data = "";         // a folder of IDX files; empty: Fashion-MNIST, or its stand-in
  std::int64_t max_samples = 0;  // of training and of testing, the first ones; 0: all

  int nproc = 0;  // 0: the mesh's ranks, else one per core, at most 8; only without a launcher
  double timeout_seconds = 600;

  std::string outputs = "";  // folder; empty: outputs/train_cnn/STAMP
  std::string history = "";  // empty: history.h5 in it
  bool plots = true;
  std::string checkpoint_dir = "";
  std::int64_t checkpoint_every = 0;  // steps; 0: at the end of each epoch
  int keep_last = 2;                  // checkpoints; 0: all
  std::string resume = "";            // a checkpoint, or the folder that holds them
  std::string save_model = "";        // a folder for model.safetensors, or a file
};

using training_program::MeshShape;

// Errors as those of training_program::MeshOf.
absl::StatusOr<MeshShape> MeshOf(const Config& config, int ranks);

// Of a checked config.
parallel::Strategy StrategyOf(const Config& config);

// InvalidArgument, one line with the flag's name, for what cannot work on `ranks` ranks.
absl::Status Check(const Config& config, int ranks);

}  // namespace plait::cnn_training

#endif  // PLAIT_TOOLS_CNN_TRAINING_CONFIG_H_
