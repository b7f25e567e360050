// Load balance of experts: columns of the history of a model with experts. A row is a token routed to one expert.
//
//   expert_load_3          rows of each expert of block 3 over all ranks and micro-batches; vector along `expert`
//   moe_overload_factor    rows of the busiest rank / mean over the ranks of its group; maximum over blocks
//   moe_max_violation      rows of the busiest expert / mean - 1; maximum over blocks (MaxVio; Wang et al.,
//                          arXiv:2408.15664)
//   moe_dead_experts       number of experts without a row, summed over blocks
//   moe_dropped            fraction of rows dropped over capacity
//
// A rank reports the blocks of its own stages, and nothing if they have no experts. Local.
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
  ExpertLoad() = default;  // of a model without experts
  // `model` must outlive this.
  explicit ExpertLoad(models::BlockModel& model);

  std::vector<Recorded> metrics() const;
  std::vector<std::string> heat_maps() const;  // names of the vector metrics

  // Appends the values of the last step. They refer to this object: names as long as it lives, values until the next
  // call.
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
