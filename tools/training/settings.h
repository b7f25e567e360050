// Settings of a training program: members of a struct, each bound once to its flag.
//
//   struct CnnSettings final : training::Settings {
//     double gamma = 0.7;
//     void Bind(SettingsTable& table) override {
//       table.Group("Training");
//       table.Add("gamma", &gamma, "factor of the learning rate per epoch", OnResume::kAdopt);
//       BindFiles(table, "epochs");  // and other groups that all programs share
//     }
//   };
//
// Local.
#ifndef PLAIT_TOOLS_TRAINING_SETTINGS_H_
#define PLAIT_TOOLS_TRAINING_SETTINGS_H_

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/device_mesh.h"
#include "models/model_sizes.h"
#include "parallel/context/context_axis.h"
#include "parallel/offload/state_store.h"
#include "parallel/pipeline/schedule.h"
#include "parallel/plan/available_memory.h"
#include "parallel/sharding/strategy.h"
#include "tools/device/device.h"
#include "tools/training/layer_parallel_settings.h"
#include "tools/training/settings_table.h"

namespace plait::training {

// What all training programs share. Programs choose other defaults in their constructors.
struct Settings {
  virtual ~Settings() = default;

  std::uint64_t seed = 1;
  std::int64_t batch_size = 64;
  std::int64_t global_batch_size = 0;
  int gradient_accumulation_steps = 1;
  bool reproducible = false;
  int reproducible_leaves = 8;

  std::string dtype = "float32";
  std::string strategy = "ddp", mesh = "";
  bool sequence_parallel = false;
  std::string context_attention = "ring";
  bool reshard_after_forward = true, prefetch = true, reduce_each_micro_batch = false;
  // Of micro-batches (gradient_accumulation_steps) over the stages of pp; chunks as in parallel::ScheduleOptions.
  std::string pipeline_schedule = "1f1b";
  int pipeline_chunks = 0;
  LayerParallelSettings lp;  // of programs that have the axis lp
  std::string activation_checkpointing = "none";
  std::string offload = "none";
  bool offload_params = false;
  std::string memory_limit = "0";
  bool dry_run = false;

  int nproc = 0, threads = 1;
  std::string device = "auto";
  double timeout = 600;
  double grace = 600;

  std::string outputs, history, checkpoint_dir, resume;
  std::string history_name = "history.h5";  // of the program; in --outputs, where --history is empty
  bool plots = true, trace = false;
  bool eval_only = false;
  std::int64_t checkpoint_interval = 0;
  int keep_last = 2;

  // Every flag of the program.
  virtual void Bind(SettingsTable& table) = 0;
  // After parsing: sets others where a flag, such as --preset, stands for them (SettingsTable::SetDefault).
  virtual absl::Status ChooseDefaults(SettingsTable&) { return absl::OkStatus(); }
  // After parsing, and again after a checkpoint's values were taken over: settings that follow from others.
  virtual void Complete(const std::vector<comm::MeshAxis>&) {}
  // An error where `folder`, given with --resume, holds what only another version of the program reads.
  virtual absl::Status CheckResume(const std::string&) const { return absl::OkStatus(); }
  // InvalidArgument, one line with the flag's name, for what cannot work on a mesh of these axes.
  virtual absl::Status Check(const std::vector<comm::MeshAxis>& axes) const = 0;
  // Of the model that checked settings make, as far as data do not decide: what a checkpoint must be able to hold whose run
  // had them.
  virtual models::ModelSizes Sizes() const { return {}; }
  // Axes that the mesh has besides dp_replicate and dp_shard (training::MeshOptions).
  virtual std::vector<std::string> mesh_axes() const { return {}; }
  // That has all ranks where --mesh is not given (training::MeshOptions).
  virtual std::string default_axis() const { return ""; }
  // Whether the solver's steps are the blocks of the model; else a block solves within it, as a recurrent net does.
  virtual bool blocks_are_steps() const { return true; }
  // Types besides float32 and float64.
  virtual std::vector<std::string> narrow_types() const { return {"bfloat16"}; }
  // Whether the model begins with values from a file, which --eval-only can take in place of a checkpoint's.
  virtual bool has_initial_model() const { return false; }
  // Whether one rank suffices, unless more are asked for.
  virtual bool runs_on_one_rank() const { return false; }

  // Of masters, and of parameters and activations in computation.
  at::ScalarType master_type() const;
  virtual at::ScalarType compute_type() const;
  parallel::Strategy parsed_strategy() const;          // of checked settings
  context_parallel::ContextKind context_kind() const;  // of checked settings
  parallel::StateStoreOptions state_offload() const;
  device::DeviceRequest device_request() const;  // of checked settings
  // Memory that this host has for all its ranks, of which this one computes on `device`.
  parallel::NodeMemory memory(int ranks_on_host, at::Device device) const;
  // Ranks to start where neither a launcher, --nproc nor --mesh says how many: one per GPU, or one per core.
  int DefaultRanks() const;
  // Samples of a micro-batch over all data ranks.
  std::int64_t GlobalBatch(int data_ranks) const;
  // Samples of a step over all data ranks.
  std::int64_t StepSamples(int data_ranks) const;
  // Equal parts of these that each are a micro-batch of one rank; 0: not --reproducible.
  int leaves() const { return reproducible ? reproducible_leaves : 0; }
  // Of a step, on each data rank; and the samples of one there, at most.
  int MicroBatches(int data_ranks) const;
  std::int64_t SamplesPerRank(int data_ranks) const;
  // What each rank of pp does in a step. Errors begin with the flag.
  absl::StatusOr<parallel::Schedule> PipelineSchedule(int pipeline_ranks, int data_ranks) const;
  int expert_ranks() const;  // along ep; of checked settings
  // The mesh on so many ranks. Errors of the strategy and of MeshOf.
  absl::StatusOr<std::vector<comm::MeshAxis>> Axes(int ranks) const;

 protected:
  // Groups of flags. `samples`: what a batch consists of.
  void BindBatch(SettingsTable& table, const std::string& samples);
  void BindParallel(SettingsTable& table);  // ranks, sharding, arithmetic and memory
  void BindFiles(SettingsTable& table, const std::string& draws);
  // For models whose samples have `tokens` tokens, as `flag` says: whether --sequence-parallel can split them.
  absl::Status CheckTokens(const std::vector<comm::MeshAxis>& axes, const std::string& flag,
                           std::int64_t tokens) const;
  // Where blocks are the steps of the solver: their number, as `flag` says it, against levels and factors.
  absl::Status CheckLayers(const std::vector<comm::MeshAxis>& axes, const std::string& flag,
                           std::int64_t blocks) const;
  // Of the members above.
  absl::Status CheckShared(const std::vector<comm::MeshAxis>& axes) const;

 private:
  absl::Status CheckReproducible(const std::vector<comm::MeshAxis>& axes) const;
  absl::Status CheckLayerParallel(const std::vector<comm::MeshAxis>& axes) const;
};

// InvalidArgument "--FLAG=VALUE: ...", for Check().
absl::Status AtLeast(const char* flag, double value, double least);
absl::Status Positive(const char* flag, double value);
absl::Status Between(const char* flag, double value, double low, double high);  // both included
absl::Status Fraction(const char* flag, double value);                          // 0 to below 1
absl::Status OneOf(const char* flag, const std::string& value, const std::vector<std::string>& choices);

int DataRanks(const std::vector<comm::MeshAxis>& axes);
// 1 where they do not have it.
int RanksAlong(const std::vector<comm::MeshAxis>& axes, const std::string& name);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_SETTINGS_H_
