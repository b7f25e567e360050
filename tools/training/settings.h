// Settings of a training program: a struct whose members are each bound to a flag.
//
//   struct CnnSettings final : training::Settings {
//     double gamma = 0.7;
//     void Bind(SettingsTable& table) override {
//       table.Group("Training");
//       table.Add("gamma", &gamma, "factor of the learning rate per epoch", OnResume::kAdopt);
//       BindFiles(table, "epochs");  // and other groups that all programs share
//     }
//     absl::Status Check(const std::vector<comm::MeshAxis>& axes) const override { return CheckShared(axes); }
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
  // Order of the micro-batches (gradient_accumulation_steps) on the stages of pp; chunks: stages per rank of pp.
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
  double timeout = 600;  // seconds
  double grace = 600;    // seconds

  std::string outputs, history, checkpoint_dir, resume;
  std::string history_name = "history.h5";  // file in --outputs if --history is empty
  bool plots = true, trace = false;
  bool eval_only = false;
  std::int64_t checkpoint_interval = 0;
  int keep_last = 2;

  // Adds every flag of the program to `table`.
  virtual void Bind(SettingsTable& table) = 0;
  // Called after parsing. Sets the defaults that a flag such as --preset implies (SettingsTable::SetDefault).
  virtual absl::Status ChooseDefaults(SettingsTable&) { return absl::OkStatus(); }
  // Called after parsing, and again after a checkpoint's values were adopted. Derives settings from others.
  virtual void Complete(const std::vector<comm::MeshAxis>&) {}
  // Flags whose values follow from others: those that Complete() has set, and the one of two batch sizes that is not used.
  virtual std::vector<std::string> DerivedFlags(const std::vector<comm::MeshAxis>& axes) const;
  // INVALID_ARGUMENT for a given flag that would silently have no effect without another one, where --help does not say
  // so. Called after Complete(), for a run that resumes after its checkpoint's values were adopted.
  virtual absl::Status CheckGiven(const SettingsTable& table) const;
  // Called on rank 0 if `folder`, given with --resume, has no checkpoint: an error if it holds files that only another
  // version of the program reads.
  virtual absl::Status CheckResume(const std::string&) const { return absl::OkStatus(); }
  // INVALID_ARGUMENT for settings that no checkpoint keeps, and a run needs before it adopts a checkpoint's: ranks,
  // device, timeouts, folders. Part of CheckShared().
  virtual absl::Status CheckStart() const;
  // INVALID_ARGUMENT, one line naming the flag, for settings that cannot work on a mesh with these axes.
  virtual absl::Status Check(const std::vector<comm::MeshAxis>& axes) const = 0;
  // For programs without one: the data may take long to make.
  absl::Status CheckNoDryRun() const;
  // Sizes of the model, as far as the settings alone determine them. A checkpoint to resume from that holds less is
  // rejected.
  virtual models::ModelSizes Sizes() const { return {}; }
  // Axes that the program supports besides dp_replicate and dp_shard (training::MeshOptions).
  virtual std::vector<std::string> mesh_axes() const { return {}; }
  // The axis that gets all ranks if --mesh is not given (training::MeshOptions).
  virtual std::string default_axis() const { return ""; }
  // Whether the model's blocks are the steps of the layer-parallel solver; if not, the solver runs within a block, as
  // over the time steps of a recurrent network.
  virtual bool blocks_are_steps() const { return true; }
  // Values of --dtype besides float32 and float64.
  virtual std::vector<std::string> narrow_types() const { return {"bfloat16"}; }
  // Whether the model's initial values come from a file. --eval-only then needs no checkpoint.
  virtual bool has_initial_model() const { return false; }
  // Set once the sizes of such a model are known; before, Check leaves out what concerns them.
  bool sizes_taken = false;
  bool sizes_are_unknown() const { return has_initial_model() && !sizes_taken; }
  // Whether the program starts one rank by default, rather than one per GPU or core.
  virtual bool runs_on_one_rank() const { return false; }

  // Type of master parameters and optimizer state; type of parameters and activations during computation.
  at::ScalarType master_type() const;
  virtual at::ScalarType compute_type() const;
  parallel::Strategy parsed_strategy() const;          // requires checked settings
  context_parallel::ContextKind context_kind() const;  // requires checked settings
  parallel::StateStoreOptions state_offload() const;
  device::DeviceRequest device_request() const;  // requires checked settings
  // Memory available to all `ranks_on_host` ranks of this host together: --memory-limit for each, else the host's
  // memory, or free memory of this rank's GPU times the ranks.
  parallel::NodeMemory memory(int ranks_on_host, at::Device device) const;
  bool has_memory_limit() const;  // from --memory-limit
  absl::Status CheckMemoryLimit() const;
  // Number of ranks to start if no launcher, --nproc or --mesh determines it: one per GPU, else one per core.
  int DefaultRanks() const;
  // Samples of a micro-batch over all data ranks.
  std::int64_t GlobalBatch(int data_ranks) const;
  // Samples of a step over all data ranks.
  std::int64_t StepSamples(int data_ranks) const;
  // With --reproducible, the number of equal parts of a step's samples, each a micro-batch of one rank; else 0.
  int leaves() const { return reproducible ? reproducible_leaves : 0; }
  // Micro-batches of a step on each data rank, and the largest number of samples in one of them.
  int MicroBatches(int data_ranks) const;
  std::int64_t SamplesPerRank(int data_ranks) const;
  // The actions of each rank of pp in a step. INVALID_ARGUMENT, naming the flag, for settings that make no schedule.
  absl::StatusOr<parallel::Schedule> PipelineSchedule(int pipeline_ranks, int data_ranks) const;
  int expert_ranks() const;  // along ep; 1 if --mesh does not name it
  // The mesh of --mesh on `ranks` ranks. INVALID_ARGUMENT for an unknown strategy; errors of MeshOf.
  absl::StatusOr<std::vector<comm::MeshAxis>> Axes(int ranks) const;

 protected:
  // Groups of flags. `samples` and `draws` are words for help texts: what a batch consists of ("sequences"), and what
  // adds a row to the history ("steps").
  void BindBatch(SettingsTable& table, const std::string& samples);
  void BindParallel(SettingsTable& table);  // ranks, sharding, arithmetic and memory
  void BindFiles(SettingsTable& table, const std::string& draws);
  // INVALID_ARGUMENT if --sequence-parallel cannot split samples of `tokens` tokens over tp; `flag` is the flag that
  // determines `tokens`, for the message. `whole`: what passes through the model without being split along cp, tests or samples;
  // empty: nothing.
  absl::Status CheckTokens(const std::vector<comm::MeshAxis>& axes, const std::string& flag,
                           std::int64_t tokens, const std::string& whole) const;
  // INVALID_ARGUMENT if there are more than kMostBlocks blocks, or the layer-parallel solver cannot coarsen `blocks` steps as the --lp-... flags say. `flag` is
  // the flag that determines `blocks`.
  absl::Status CheckLayers(const std::vector<comm::MeshAxis>& axes, const std::string& flag,
                           std::int64_t blocks) const;
  // Checks the members of this struct, for Check().
  absl::Status CheckShared(const std::vector<comm::MeshAxis>& axes) const;

 private:
  absl::Status CheckReproducible(const std::vector<comm::MeshAxis>& axes) const;
  absl::Status CheckLayerParallel(const std::vector<comm::MeshAxis>& axes) const;
};

// More blocks would take minutes and gigabytes to describe, before anything is said about memory.
inline constexpr std::int64_t kMostBlocks = 100'000;

// INVALID_ARGUMENT "--FLAG=VALUE: ..." if the value is out of range; for Check().
absl::Status AtLeast(const char* flag, double value, double least);
absl::Status Positive(const char* flag, double value);
absl::Status Between(const char* flag, double value, double low, double high);  // both included
absl::Status Fraction(const char* flag, double value);                          // 0 to below 1
absl::Status OneOf(const char* flag, const std::string& value, const std::vector<std::string>& choices);

// Ranks that split a batch: along dp_replicate and dp_shard.
int DataRanks(const std::vector<comm::MeshAxis>& axes);
// Size of the axis; 1 if the mesh does not have it.
int RanksAlong(const std::vector<comm::MeshAxis>& axes, const std::string& name);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_SETTINGS_H_
