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

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/flags.h"
#include "comm/device_mesh.h"
#include "parallel/offload/state_store.h"
#include "parallel/plan/available_memory.h"
#include "parallel/sharding/strategy.h"

namespace plait::training {

// What a resumed run does where the checkpoint's run had another value. Where the flag is not given, kSame
// and kAdopt take the checkpoint's.
enum class OnResume {
  kSame,   // it shapes the model, its arithmetic or the order of the data: an error
  kAdopt,  // goes on with the new value, and says so
  kFree,   // goes on: places, ranks, memory, what is printed
};

using NamedValues = std::map<std::string, std::string>;

class SettingsTable {
 public:
  // Flags that are added from now on belong to this group of the help.
  void Group(const std::string& title);
  // `value` outlives the table; what it is now is the default. `old_name`: still accepted.
  void Add(const std::string& name, base::BoundFlag::Value value, const std::string& help,
           OnResume on_resume = OnResume::kFree, const std::string& old_name = "");

  // Refers to the table.
  base::ToolUsage Usage(const std::string& program, const std::string& summary,
                        const std::vector<std::string>& examples);
  // Whether the user gave the flag.
  bool Given(const std::string& name) const;
  // All values by name.
  NamedValues Values() const;
  // Those that a checkpoint keeps: all but kFree.
  NamedValues Kept() const;
  // Takes over what a checkpoint has kept, for flags that were not given. InvalidArgument "NAME is X there
  // and Y here" for the first given kSame one that differs. `changes`: "NAME X -> Y" of given kAdopt ones.
  // Names that `kept` lacks stay as they are.
  absl::Status Adopt(const NamedValues& kept, std::vector<std::string>* changes);

 private:
  std::vector<base::BoundFlag> flags_;
  std::vector<OnResume> on_resume_;  // by flag
  std::vector<base::FlagGroup> groups_;
};

// What all training programs share. Programs choose other defaults in their constructors.
struct Settings {
  virtual ~Settings() = default;

  std::uint64_t seed = 1;
  std::int64_t batch_size = 64;
  std::int64_t global_batch_size = 0;
  int gradient_accumulation_steps = 1;

  std::string dtype = "float32";
  std::string strategy = "ddp", mesh = "";
  bool reshard_after_forward = true, prefetch = true, reduce_each_micro_batch = false;
  std::string activation_checkpointing = "none";
  std::string offload = "none";
  bool offload_params = false;
  std::string memory_limit = "0";

  int nproc = 0, threads = 1;
  double timeout = 600;

  std::string outputs, history, checkpoint_dir, resume;
  bool plots = true, trace = false;
  std::int64_t checkpoint_interval = 0;
  int keep_last = 2;

  // Every flag of the program.
  virtual void Bind(SettingsTable& table) = 0;
  // After parsing, and again after a checkpoint's values were taken over: settings that follow from others.
  virtual void Complete(const std::vector<comm::MeshAxis>&) {}
  // An error where `folder`, given with --resume, holds what only another version of the program reads.
  virtual absl::Status CheckResume(const std::string&) const { return absl::OkStatus(); }
  // InvalidArgument, one line with the flag's name, for what cannot work on a mesh of these axes.
  virtual absl::Status Check(const std::vector<comm::MeshAxis>& axes) const = 0;
  // Whether blocks may be solved layer-parallel: the mesh then has an axis lp.
  virtual bool layer_parallel() const { return false; }
  // Types besides float32 and float64.
  virtual std::vector<std::string> narrow_types() const { return {"bfloat16"}; }
  // Whether one rank suffices, unless more are asked for.
  virtual bool runs_on_one_rank() const { return false; }

  // Of masters, and of parameters and activations in computation.
  at::ScalarType master_type() const;
  virtual at::ScalarType compute_type() const;
  parallel::Strategy parsed_strategy() const;  // of checked settings
  parallel::StateStoreOptions state_offload() const;
  // Memory of this host for all its ranks.
  parallel::NodeMemory memory(int ranks_on_host) const;
  // Samples of a micro-batch over all data ranks.
  std::int64_t GlobalBatch(int data_ranks) const;
  std::int64_t SamplesPerRank(int data_ranks) const;  // at most
  // The mesh on so many ranks. Errors of the strategy and of MeshOf.
  absl::StatusOr<std::vector<comm::MeshAxis>> Axes(int ranks) const;

 protected:
  // Groups of flags. `samples`: what a batch consists of.
  void BindBatch(SettingsTable& table, const std::string& samples);
  void BindParallel(SettingsTable& table);  // ranks, sharding, arithmetic and memory
  void BindFiles(SettingsTable& table, const std::string& draws);
  // Of the members above.
  absl::Status CheckShared(const std::vector<comm::MeshAxis>& axes) const;
};

// InvalidArgument "--FLAG=VALUE: ...", for Check().
absl::Status AtLeast(const char* flag, double value, double least);
absl::Status Positive(const char* flag, double value);
absl::Status Between(const char* flag, double value, double low, double high);  // both included
absl::Status Fraction(const char* flag, double value);                          // 0 to below 1
absl::Status OneOf(const char* flag, const std::string& value, const std::vector<std::string>& choices);

int DataRanks(const std::vector<comm::MeshAxis>& axes);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_SETTINGS_H_
