// The layer that bench_moe times: frozen attention, and a mixture of experts spread over all ranks.
//
//   BenchLayer layer(config, /*local_experts=*/8, ranks, cost);
//   PLAIT_ASSIGN_OR_RETURN(const StepFacts facts, layer.Step(0));
//
// h = x + attention(x); y = MoE(h). The loss of a sequence is the negative log softmax, over its tokens, of the sums
// over features of y, at its first token; the loss is the mean over all sequences. x is drawn once. Attention is timed
// separately and not differentiated; the gradient of h is computed. A training step is that of the trainers: one engine
// reduces the gradients of gate and experts, and bfloat16 has float32 masters.
#ifndef PLAIT_TOOLS_MOE_BENCH_BENCH_LAYER_H_
#define PLAIT_TOOLS_MOE_BENCH_BENCH_LAYER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "comm/device_mesh.h"
#include "parallel/moe/cost_model.h"
#include "parallel/moe/exchange.h"
#include "parallel/moe/experts.h"
#include "parallel/moe/layer.h"
#include "parallel/moe/load.h"
#include "parallel/moe/router.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"
#include "tools/moe_bench/config.h"
#include "tools/moe_bench/lines.h"

namespace plait::moe_bench {

struct BenchRanks {
  explicit BenchRanks(const comm::Communicator& all);  // collective

  comm::Communicator world;
  comm::DeviceMesh mesh;  // data ranks, which are one group of experts
  // Axes whose bytes are counted: "tokens" (the census) and "ep".
  comm::Communicator tokens;
  moe::ExchangeRanks experts;
};

// Weights of a rank's experts, drawn from `seed`, with requires_grad.
moe::ExpertWeights DrawExperts(const Config& config, int local_experts, at::ScalarType type,
                               std::uint64_t seed);
// Bytes of the weights of one expert.
std::int64_t ExpertBytes(const moe::ExpertWeights& weights);
moe::ExpertsOptions MlpOf(const Config& config);

// Measurements of this rank in a step; loads and predictions are the same on all ranks.
struct StepFacts {
  double attention_ms = 0, step_ms = 0, forward_ms = 0, backward_ms = 0;
  RankLines lines = {};
  std::int64_t routed_rows = 0;  // (token, expert) pairs of its tokens
  std::int64_t sent_rows = 0;    // rows that it has to send: SentRows (traffic.h)
  std::int64_t wire_bytes = 0;   // sent for routing and experts
  moe::LoadReport load = {};
  std::optional<moe::LoadReport> stale_load = {};  // with the replicas of the previous step
  moe::LoadReport home_load = {};                  // without replicas
  moe::MoeSeconds predicted = {}, predicted_home = {};
};

class BenchLayer {
 public:
  // Collective. `config` and `ranks` must outlive the layer.
  BenchLayer(const Config& config, int local_experts, const BenchRanks& ranks, const moe::MoeCostModel& cost);

  // Collective. Runs and times one step. INTERNAL, the same on all ranks, if the gate's logits are not finite.
  absl::StatusOr<StepFacts> Step(int step);

  bool gate_learns() const;  // false with --workload
  // Bytes of the weights of one expert.
  std::int64_t expert_bytes() const { return ExpertBytes(weights_); }

 private:
  struct Routed;
  at::Tensor WithAttention() const;
  at::Tensor Logits(const at::Tensor& h, const at::Tensor& forced, moe::PassTrace& trace) const;
  at::Tensor ForcedLogits(int step) const;
  at::Tensor Loss(const at::Tensor& y) const;
  void RunExperts(const at::Tensor& h, const Routed& routed, StepFacts& facts);
  void RunDispatch(const at::Tensor& h, const Routed& routed, StepFacts& facts);
  void MakeOptimizer();
  bool trains() const { return config_.mode == Mode::kTrainingStep; }
  void CountLoad(const Routed& routed, StepFacts& facts);

  const Config& config_;
  const BenchRanks& ranks_;
  const moe::MoeCostModel cost_;
  int experts_ = 0;             // of all ranks
  std::int64_t sequences_ = 0;  // of all ranks
  at::Tensor x_, gate_weight_, gate_bias_;
  std::vector<at::Tensor> attention_;  // q, k, v, o
  moe::ExpertWeights weights_;
  // Null unless it trains.
  std::unique_ptr<parallel::DataParallel> engine_;
  std::unique_ptr<parallel::ShardedOptimizer> optimizer_;
  std::optional<moe::ExpertPlacement> previous_;
};

}  // namespace plait::moe_bench

#endif  // PLAIT_TOOLS_MOE_BENCH_BENCH_LAYER_H_
