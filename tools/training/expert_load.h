// How the rows of a step spread over experts and ranks: columns of the history of a model with experts.
//
//   expert_load_3          rows of each expert of block 3, of all ranks and micro-batches, along `expert`
//   moe_overload_factor    rows of the rank that computes most / mean of the ranks of its group, the worst block
//   moe_max_violation      rows of the busiest expert / mean - 1, the worst block (MaxVio; Wang et al., arXiv:2408.15664)
//   moe_dead_experts       without a row, of all blocks
//   moe_dropped            share of the rows that capacity dropped
//
// Of the blocks of this rank's stages; nothing where they have no experts. Local.
#ifndef PLAIT_TOOLS_TRAINING_EXPERT_LOAD_H_
#define PLAIT_TOOLS_TRAINING_EXPERT_LOAD_H_

#include <string>
#include <vector>

#include "data/history/metric.h"
#include "models/block_model.h"
#include "tools/training/run_outputs.h"

namespace plait::moe {
class MoeMlp;
}

namespace plait::training {

class ExpertLoad {
 public:
  ExpertLoad() = default;  // of no model
  // `model` outlives this.
  explicit ExpertLoad(models::BlockModel& model);

  std::vector<Recorded> metrics() const;
  std::vector<std::string> heat_maps() const;  // of these, the vectors

  // Appends those of the step that has ended. Names and values live as long as this object, values until the next call.
  void TakeStep(std::vector<data::Scalar>& scalars, std::vector<data::Vector>& vectors);

 private:
  struct Layer {
    const moe::MoeMlp* mlp;
    std::string name;  // of its column
    std::vector<double> rows;
  };
  std::vector<Layer> layers_;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_EXPERT_LOAD_H_
