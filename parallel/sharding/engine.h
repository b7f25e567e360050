// The units of a DataParallel, and when each of them is unsharded and reduced. Private to parallel/sharding.
//
// A Use is a recorded forward pass of some units whose backward may follow. A hook on the gradient of its output
// begins it: the units are held and their gradients expected. It ends with the last gradient of its units, or with the
// micro-batch. Uses that have not begun by the next optimizer step are dropped: their parameters have changed.
#ifndef PLAIT_PARALLEL_SHARDING_ENGINE_H_
#define PLAIT_PARALLEL_SHARDING_ENGINE_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parallel/sharding/data_parallel.h"
#include "parallel/sharding/reductions.h"
#include "parallel/sharding/unit.h"
#include "parallel/sharding/unit_parts.h"

namespace plait::parallel {

using UnitIndices = std::vector<std::size_t>;

class DataParallel::Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(const comm::DeviceMesh& m, std::vector<models::ParameterUnit> u, const DataParallelOptions& o);
  ~Engine();

  // Collective; call in this order.
  absl::Status MakeStore();
  void MakeUnits(const InitializeUnit& initialize);

  // Holds units for its lifetime.
  class Holds {
   public:
    Holds(Engine& engine, const UnitIndices& units);  // starts the all-gathers
    ~Holds();
    Holds(const Holds&) = delete;
    Holds& operator=(const Holds&) = delete;

   private:
    Engine& engine_;
    const UnitIndices units_;
  };

  UnitIndices UnitsOfBlocks(std::size_t block, std::size_t count) const;
  void Wait(const UnitIndices& units);
  bool IsInStage(std::ptrdiff_t block) const;
  // Returns `block` if it is in the stage, else the block that runs after the stage; negative: none.
  std::ptrdiff_t OrFollowing(std::ptrdiff_t block) const;
  // At a stage's end: holds the block that follows, if prefetch is on or it is one of `units`, which are unsharded.
  void HoldFollowing(const UnitIndices& units);
  // With prefetch: starts the all-gathers of a block ahead of its use. Indices outside the model are ignored.
  void GatherBlock(std::ptrdiff_t block);
  // Starts reading a block's shards from the store.
  void PrefetchBlock(std::ptrdiff_t block) const;
  void PrefetchUnit(std::size_t unit) const;
  void AdvanceGathers();
  void ReshardUnheld();

  // Records a forward pass of `units` with these outputs: their backward will hold the units; if `held`, they are held
  // from now on. `block` is the first block of the pass, or negative for the root units.
  void RecordUse(UnitIndices units, std::ptrdiff_t block, bool held, const std::vector<at::Tensor>& outputs);
  void BeginUse(std::int64_t use);
  void EndUses();
  void ForgetUses();
  void OnGradient(std::size_t unit, std::size_t parameter);
  void CheckInBackward(const char* what) const;

  void SumPartialGradients();
  double GradientNorm() const;
  void BroadcastBuffers();

  comm::DeviceMesh mesh;
  std::vector<models::ParameterUnit> model;
  DataParallelOptions options;
  BufferPool pool;
  absl::Status status;
  std::unique_ptr<StateStore> store;         // of masters; null: in memory
  std::vector<std::unique_ptr<Unit>> units;  // of the model, root units in parts
  std::vector<std::size_t> first_unit;       // by unit of the model, and one more
  std::vector<UnitIndices> blocks;           // units of each block
  UnitIndices roots;
  std::vector<Shard> shards;
  std::vector<ReplicatedTensor> replicated_tensors;
  std::unique_ptr<Reductions> reductions;
  std::optional<StageBlocks> stage;        // none: all blocks, forward and then backward
  std::unique_ptr<const Holds> following;  // of the block after the stage, until it is used
  std::map<const void*, std::pair<std::size_t, std::size_t>> by_parameter;  // unit and index in it
  bool in_backward = false;
  bool reduced = false;  // gradients are reduced, a step must follow
  bool partial = false;  // SumPartialGradients has not run yet
  bool broken = false;   // an exception left a backward

 private:
  struct Use {
    UnitIndices units;
    std::ptrdiff_t block = -1;
    bool held = false;
  };
  UnitContext* ContextOf(const models::ParameterUnit& unit);
  void AddUnit(const models::ParameterUnit& unit, const UnitPart& part);
  void AddReplicated(const models::ParameterUnit& unit);
  void BroadcastReplicated(const ReplicatedTensor& replicated);
  bool IsPrimary(const models::ParameterUnit& unit, const models::ParameterSpec& parameter) const;
  const at::Tensor& FirstTrained() const;
  void End(std::size_t unit);

  at::TensorOptions master_options_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<UnitContext>> contexts_;  // by axes
  std::map<std::int64_t, Use> uses_;  // recorded, not begun
  std::int64_t next_use_ = 0;
  std::vector<int> begun_holds_;  // by unit
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_ENGINE_H_
