// Bytes that each rank sends along tp, cp, pp and ep in a training step, as comm counts them, against formulas of the
// layers' shapes: exactly. Bandwidth-optimal collectives of N ranks send 2 P (N-1)/N for an all-reduce of P bytes,
// P (N-1)/N for a reduce-scatter or an all-to-all, and (N-1) p for an all-gather of parts of p bytes.
#include <ATen/Context.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "models/gpt/gpt.h"
#include "models/llama/llama.h"
#include "models/moe/distribute.h"
#include "models/vit/vit.h"
#include "parallel/context/data_mesh.h"
#include "parallel/context/local_batch.h"
#include "parallel/moe/expert_mesh.h"
#include "parallel/moe/planner.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"
#include "parallel/tensor/parallelize.h"
#include "tests/parity/staged_training.h"

namespace plait::parity {
namespace {

using comm::Operation;
using comm::testing::World;
using models::Batch;
using parallel::ScheduleKind;
using parallel::Strategy;

constexpr std::int64_t kFloat = 4;  // bytes
constexpr std::int64_t kSamples = 4, kSequence = 8, kVocabulary = 13, kLayers = 8, kWidth = 16, kHeads = 8;
constexpr std::int64_t kHeadWidth = kWidth / kHeads, kHidden = 11, kClasses = 5;
constexpr std::int64_t kRows = kSamples * kSequence;       // of the residual stream
constexpr std::int64_t kStream = kRows * kWidth * kFloat;  // its bytes
constexpr int kMicroBatches = 8;

using Model = std::shared_ptr<models::SplitModuleModel>;

Model MakeGpt() {
  at::manual_seed(11);
  return std::make_shared<gpt::Gpt>(gpt::GptOptions{.vocab_size = kVocabulary,
                                                    .block_size = kSequence,
                                                    .n_layer = kLayers,
                                                    .n_head = kHeads,
                                                    .n_embd = kWidth,
                                                    .bias = true},
                                    at::kFloat);
}

Model MakeLlama(std::int64_t key_heads) {
  at::manual_seed(11);
  return std::make_shared<llama::Llama>(llama::LlamaOptions{.vocab_size = kVocabulary,
                                                            .max_seq_len = kSequence,
                                                            .dim = kWidth,
                                                            .n_layers = kLayers,
                                                            .n_heads = kHeads,
                                                            .n_kv_heads = key_heads,
                                                            .hidden = kHidden},
                                        at::kFloat);
}

// As many tokens as the texts have.
Model MakeVit() {
  at::manual_seed(11);
  return std::make_shared<vit::Vit>(vit::VitOptions{.image_size = 2 * kSequence,
                                                    .patch_size = 2 * kSequence / 4,
                                                    .channels = 1,
                                                    .dim = kWidth,
                                                    .depth = kLayers,
                                                    .heads = kHeads,
                                                    .head_dim = kHeadWidth,
                                                    .mlp_dim = kHidden,
                                                    .classes = kClasses,
                                                    .pool = vit::Pool::kMean},
                                    at::kFloat);
}
constexpr std::int64_t kVitStream = 2 * kStream;  // 4 x 4 patches

Batch TextBatch(std::int64_t sequence) {
  const at::Tensor text = at::randint(kVocabulary, {kSamples, sequence + 1}, at::kLong);
  return {text.narrow(1, 0, sequence).contiguous(), text.narrow(1, 1, sequence).contiguous()};
}
Batch ImageBatch() {
  return {at::randn({kSamples, 1, 2 * kSequence, 2 * kSequence}),
          at::randint(kClasses, {kSamples}, at::kLong)};
}

// By operation, of this rank; what was not called is not there.
using Sent = std::map<Operation, std::int64_t>;

class Counter {
 public:
  explicit Counter(std::string axis) : axis_(std::move(axis)), before_(Now()) {}
  Sent Bytes() const { return Since(&comm::OperationStats::wire_bytes); }
  Sent Calls() const { return Since(&comm::OperationStats::calls); }

 private:
  comm::AxisStats Now() const {
    const comm::Stats& stats = World().stats();
    return stats.count(axis_) > 0 ? stats.at(axis_) : comm::AxisStats();
  }
  Sent Since(std::int64_t comm::OperationStats::*number) const {
    Sent sent;
    const comm::AxisStats now = Now();
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i].*number != before_[i].*number)
        sent[static_cast<Operation>(i)] = now[i].*number - before_[i].*number;
    }
    return sent;
  }

  std::string axis_;
  comm::AxisStats before_;
};

std::int64_t AllReduced(std::int64_t bytes, int ranks) { return 2 * bytes * (ranks - 1) / ranks; }
std::int64_t Scattered(std::int64_t bytes, int ranks) { return bytes * (ranks - 1) / ranks; }

void Split(models::SplitModuleModel& model, const comm::DeviceMesh& mesh, bool sequence_parallel) {
  const auto plan = tensor_parallel::DefaultPlan(model, mesh.axis("tp").size());
  ASSERT_TRUE(tensor_parallel::Parallelize(model, mesh, plan, {.sequence_parallel = sequence_parallel}).ok());
}

using LossOf =
    std::function<at::Tensor(models::BlockModel& model, const Batch& batch, const models::BlockRunner& run)>;
at::Tensor LossOfModel(models::BlockModel& model, const Batch& batch, const models::BlockRunner& run) {
  return models::RunModel(model, batch, run).sum;
}

// Of the second step along `axis`: the first one has set-up too.
Sent StepBytes(models::SplitModuleModel& model, const comm::DeviceMesh& mesh,
               std::vector<models::ParameterUnit> units, Strategy strategy, const Batch& batch,
               const std::string& axis, const LossOf& loss = LossOfModel, int micro_batches = 1) {
  const auto dp = *parallel::DataParallel::Create(mesh, std::move(units), {.strategy = strategy});
  parallel::ShardedOptimizer optimizer(*dp, {.lr = 1e-3});
  const auto run = [&](std::size_t block, const models::BlockState& x, const models::BlockContext& context) {
    return dp->Run(
        block, [&](const models::BlockState& in) { return model.blocks()[block]->Forward(in, context); }, x);
  };
  Sent sent;
  for (int step = 0; step < 2; ++step) {
    const Counter counter(axis);
    for (int k = 0; k < micro_batches; ++k) {
      dp->Backward(dp->Forward([&] { return loss(model, batch, run); }), {.last = k + 1 == micro_batches});
    }
    EXPECT_TRUE(optimizer.Step({.clip_norm = 1}).status.ok());
    model.EndStep(/*updated=*/true);
    sent = counter.Bytes();
  }
  dp->WaitForParameters();
  return sent;
}

Sent TensorBytes(const Model& model, const Batch& batch, bool sequence_parallel,
                 const LossOf& loss = LossOfModel) {
  const auto mesh = *comm::DeviceMesh::Create(World(), {{"dp_replicate", 1}, {"tp", World().size()}});
  Split(*model, mesh, sequence_parallel);
  return StepBytes(*model, mesh, model->units(), Strategy::kDdp, batch, "tp", loss);
}

// A layer reduces the residual stream where attention and MLP end and, of their inputs, the gradients; so do the
// embedding and the head, once each. The loss has the largest logit, a sum and the target's logit of each row.
constexpr std::int64_t kReductions = 4 * kLayers + 2, kOfLoss = 3 * kRows * kFloat;
// Gradients that are parts under sequence parallelism: two norms and the biases of two row layers in each GPT
// block, the last norm and the positions; two norms in each Llama block and the last one.
constexpr std::int64_t kGptParts = ((4 + 2) * kLayers * kWidth + 2 * kWidth + kSequence * kWidth) * kFloat;
constexpr std::int64_t kLlamaParts = (2 * kLayers + 1) * kWidth * kFloat;
constexpr std::int64_t kVitParts = (4 + 2) * kLayers * kWidth * kFloat;

// The same bytes in other operations: all-gathers of rows and reduce-scatters.
Sent SequenceParallelBytes(std::int64_t gathers, std::int64_t scatters, std::int64_t stream,
                           std::int64_t reduced) {
  const int n = World().size();
  return {{Operation::kAllReduce, AllReduced(reduced, n)},
          {Operation::kAllGather, gathers * (n - 1) * (stream / n)},
          {Operation::kReduceScatter, scatters * Scattered(stream, n)}};
}

TEST(TensorAxisBytes, Gpt) {
  const Batch batch = TextBatch(kSequence);
  const Sent whole = {{Operation::kAllReduce, AllReduced(kReductions * kStream + kOfLoss, World().size())}};
  EXPECT_EQ(TensorBytes(MakeGpt(), batch, false), whole);
  EXPECT_EQ(TensorBytes(MakeGpt(), batch, true),
            SequenceParallelBytes(kReductions, kReductions, kStream, kOfLoss + kGptParts));
}

// What a loss over gathered logits would send: right numbers, which only the bytes give away.
TEST(TensorAxisBytes, GatheredLogitsAreSeen) {
  const Batch batch = TextBatch(kSequence);
  const LossOf gathers = [](models::BlockModel& model, const Batch& b, const models::BlockRunner& run) {
    const at::Tensor logits = models::RunOutput(model, b, run).flatten(0, 1);
    return at::cross_entropy_loss(logits, b.targets.flatten(), {}, at::Reduction::Sum);
  };
  const Sent split = TensorBytes(MakeGpt(), batch, false),
             gathered = TensorBytes(MakeGpt(), batch, false, gathers);
  EXPECT_NE(gathered, split);
  // The loss's own three numbers of each row are not reduced.
  EXPECT_EQ(gathered.at(Operation::kAllReduce), AllReduced(kReductions * kStream, World().size()));
  EXPECT_EQ(split.count(Operation::kAllGather), 0u);
  EXPECT_GT(gathered.count(Operation::kAllGather), 0u);
}

TEST(TensorAxisBytes, LlamaWithKeyHeadsThatDivideAndThatDoNot) {
  const Batch batch = TextBatch(kSequence);
  for (const std::int64_t key_heads : {8, 1}) {
    // Key heads that all ranks compute: each has gradients of those that its own queries look at.
    const std::int64_t keys = key_heads == 1 ? 2 * kLayers * key_heads * kHeadWidth * kWidth * kFloat : 0;
    const Sent whole = {
        {Operation::kAllReduce, AllReduced(kReductions * kStream + kOfLoss + keys, World().size())}};
    EXPECT_EQ(TensorBytes(MakeLlama(key_heads), batch, false), whole);
    EXPECT_EQ(TensorBytes(MakeLlama(key_heads), batch, true),
              SequenceParallelBytes(kReductions, kReductions, kStream, kOfLoss + kLlamaParts + keys));
  }
}

// Ends are on all ranks: under sequence parallelism rows are gathered for the head and in the first backward.
TEST(TensorAxisBytes, Vit) {
  const Sent whole = {{Operation::kAllReduce, AllReduced(4 * kLayers * kVitStream, World().size())}};
  EXPECT_EQ(TensorBytes(MakeVit(), ImageBatch(), false), whole);
  EXPECT_EQ(TensorBytes(MakeVit(), ImageBatch(), true),
            SequenceParallelBytes(4 * kLayers + 2, 4 * kLayers, kVitStream, kVitParts));
}

// A sequence of 7 tokens is padded to 8 for chunks and parts; with 8 ranks a ring has 16 chunks. Gradients go along the
// data axes, of which cp is one.
void ExpectContextBytes(context_parallel::ContextKind kind, std::int64_t key_heads, int shards) {
  const int n = World().size() / shards;
  const auto mesh =
      *comm::DeviceMesh::Create(World(), {{"dp_replicate", 1}, {"dp_shard", shards}, {"cp", n}, {"tp", 1}});
  const Model model = MakeLlama(key_heads);
  const context_parallel::ContextAxis axis(mesh.axis("cp"), kind);
  const Strategy strategy = shards > 1 ? Strategy::kFsdp : Strategy::kDdp;
  const Batch batch = context_parallel::LocalBatch(axis, TextBatch(kSequence - 1));
  const Sent sent =
      StepBytes(*model, *context_parallel::DataMesh(mesh, strategy), model->units(), strategy, batch, "cp");
  const bool ring = kind == context_parallel::ContextKind::kRing;
  const std::int64_t tokens = ring && n == 8 ? 2 : kSequence / n;  // of a rank, with padding
  const auto bytes = [&](std::int64_t heads) { return kSamples * heads * tokens * kHeadWidth * kFloat; };
  if (ring) {
    // Keys and values travel forward and backward, and their gradients once all the way round.
    EXPECT_EQ(sent,
              (Sent{{Operation::kSend, kLayers * ((n - 1) + (n - 1) + (n - 1)) * 2 * bytes(key_heads)}}));
    return;
  }
  // Queries, keys, values and the output, forward and backward; key heads that do not divide, once per query head.
  const std::int64_t keys = key_heads % n == 0 ? key_heads : kHeads;
  EXPECT_EQ(sent,
            (Sent{{Operation::kAllToAll, kLayers * 2 * Scattered(2 * bytes(kHeads) + 2 * bytes(keys), n)}}));
}

TEST(ContextAxisBytes, RingAndUlyssesAloneAndWithFsdp) {
  using context_parallel::ContextKind;
  for (const ContextKind kind : {ContextKind::kRing, ContextKind::kUlysses}) {
    for (const std::int64_t key_heads : {8, 2}) {
      ExpectContextBytes(kind, key_heads, /*shards=*/1);
      if (World().size() > 2) ExpectContextBytes(kind, key_heads, /*shards=*/2);
    }
  }
}

// Every token goes to all experts.
constexpr int kExperts = 8;
struct ExpertBytes {
  Sent sent;  // along ep
  std::int64_t census = 0;
};
ExpertBytes ExpertBytesOf(const moe::PlannerOptions& planner, int micro_batches) {
  at::manual_seed(11);
  gpt::Gpt model(
      {.vocab_size = kVocabulary,
       .block_size = kSequence,
       .n_layer = kLayers,
       .n_head = kHeads,
       .n_embd = kWidth,
       .moe = {.gate = {.experts = kExperts, .k = kExperts}, .hidden = kHidden, .planner = planner}},
      at::kFloat);
  const int n = World().size();
  const auto mesh = *moe::ExpertMesh(*comm::DeviceMesh::Create(World(), {{"dp_replicate", n}, {"tp", 1}}), n);
  EXPECT_TRUE(moe::DistributeExperts(model, mesh).ok());
  const Batch batch = TextBatch(kSequence);
  const Counter census("tokens");
  ExpertBytes bytes;
  bytes.sent = StepBytes(model, mesh, model.units(), Strategy::kDdp, batch, "ep", LossOfModel, micro_batches);
  bytes.census = census.Bytes().at(Operation::kAllGather);
  return bytes;
}

// Each row goes to each rank, whatever the router says: forward and backward there and back, with a place of three numbers,
// a weight, and its gradient, for each expert elsewhere. And a census of all ranks.
TEST(ExpertAxisBytes, EveryRowToEveryRank) {
  const int n = World().size();
  const std::int64_t places = kRows * (kExperts - kExperts / n);
  const std::int64_t of_layer = 4 * (n - 1) * kStream + places * (3 * 4 + 2 * kFloat);
  const ExpertBytes bytes = ExpertBytesOf({}, 1);
  EXPECT_EQ(bytes.sent, (Sent{{Operation::kAllToAll, kLayers * (n - 1) * 2 * 8},
                              {Operation::kAllToAllV, kLayers * of_layer}}));
  EXPECT_EQ(bytes.census, 2 * kLayers * (n - 1) * (kExperts + 2) * 4);
}

// Of all ranks: weights travel once in a step, gradients with each micro-batch.
TEST(ExpertAxisBytes, ReplicasAreFetchedOncePerStep) {
  constexpr int kSlots = 2;
  const auto total = [](const ExpertBytes& bytes) {
    std::int64_t sum = bytes.sent.at(Operation::kAllToAllV);
    World().AllReduce(comm::BufferOf(absl::MakeSpan(&sum, 1)));
    return sum;
  };
  const moe::PlannerOptions planner = {.policy = moe::PlacementPolicy::kEplb, .replica_slots = kSlots};
  const std::int64_t of_expert = (2 * kWidth * kHidden + kHidden + kWidth) * kFloat;
  moe::Census census(World().size(), kExperts);
  for (int rank = 0; rank < World().size(); ++rank) {
    for (int expert = 0; expert < kExperts; ++expert) census.at(rank, expert) = kRows;
  }
  const moe::ExpertPlacement placement = moe::PlanPlacement(planner, census);
  std::int64_t replicas = 0;
  for (int rank = 0; rank < World().size(); ++rank)
    replicas += kLayers * placement.replicas(rank) * of_expert;
  EXPECT_GT(replicas, 0);
  const std::int64_t rows = total(ExpertBytesOf(planner, 1)) - 2 * replicas;
  EXPECT_GT(rows, 0);
  for (const int micro_batches : {2, 5}) {
    EXPECT_EQ(total(ExpertBytesOf(planner, micro_batches)), micro_batches * (rows + replicas) + replicas);
  }
}

struct Stages {
  ScheduleKind schedule;
  int ranks, tp = 1;
  bool sequence_parallel = false;
};

// How often a rank sends a hidden state on, and as often a gradient back, of each micro-batch.
struct Neighbours {
  int after, before;  // stages on other ranks behind and in front of this rank's stages
};
Neighbours NeighboursOf(const Stages& s, int rank) {
  const int not_last = rank + 1 < s.ranks ? 1 : 0, not_first = rank > 0 ? 1 : 0;
  // A round goes on from the last rank to the first one.
  if (s.schedule == ScheduleKind::kInterleaved) return {1 + not_last, 1 + not_first};
  // A V goes to the last rank and back; both its tips stay where they are.
  if (s.schedule == ScheduleKind::kZbv) return {not_last + not_first, not_last + not_first};
  return {not_last, not_first};
}

class StagedModel {
 public:
  StagedModel(const Model& model, const Stages& s)
      : mesh_(*comm::DeviceMesh::Create(
            World(), {{"pp", s.ranks}, {"dp_replicate", World().size() / s.ranks / s.tp}, {"tp", s.tp}})) {
    if (s.tp > 1) Split(*model, mesh_, s.sequence_parallel);
    training_.emplace(*model, mesh_, StagedOptions{.schedule = s.schedule, .micro_batches = kMicroBatches});
  }
  void Step(const Batch& batch) {
    training_->pipeline->Run([&](int) { return parallel::PipelineMicroBatch{batch}; });
    EXPECT_TRUE(training_->optimizer->Step({.clip_norm = 1}).status.ok());
    training_->dp->WaitForParameters();
  }
  int rank() const { return mesh_.axis("pp").rank(); }

 private:
  comm::DeviceMesh mesh_;
  std::optional<StagedTraining> training_;
};

void ExpectStageBytes(const Model& model, const Stages& s, std::int64_t tied_bytes) {
  SCOPED_TRACE(std::string(Name(s.schedule)) + " on " + std::to_string(s.ranks));
  StagedModel staged(model, s);
  const Neighbours neighbours = NeighboursOf(s, staged.rank());
  const std::int64_t messages = kMicroBatches * (neighbours.after + neighbours.before);
  const Batch batch = TextBatch(kSequence);
  const Counter shapes("pp_shapes");
  staged.Step(batch);
  const Counter counter("pp"), ends("pp_ends");
  staged.Step(batch);
  // Told once for each stage behind.
  EXPECT_EQ(shapes.Calls()[Operation::kSend], neighbours.after);
  EXPECT_EQ(counter.Bytes(),
            (Sent{{Operation::kSend, messages * kStream / (s.sequence_parallel ? s.tp : 1)}}));
  // The gradient of an embedding that both ends have. The ends of a V are on one rank.
  const bool is_end = staged.rank() == 0 || staged.rank() + 1 == s.ranks;
  const bool sums = tied_bytes > 0 && is_end && s.schedule != ScheduleKind::kZbv;
  EXPECT_EQ(ends.Bytes(), sums ? (Sent{{Operation::kAllReduce, AllReduced(tied_bytes, 2)}}) : Sent());
}

TEST(StageAxisBytes, EverySchedule) {
  const int ranks = World().size();
  for (const ScheduleKind schedule : parallel::kScheduleKinds) {
    for (int stages = 2; stages <= std::min(ranks, 4); stages *= 2) {
      ExpectStageBytes(MakeGpt(), {schedule, stages}, kVocabulary * kWidth * kFloat);
      ExpectStageBytes(MakeLlama(2), {schedule, stages}, 0);
    }
    if (ranks == 8 && schedule != ScheduleKind::kInterleaved && schedule != ScheduleKind::kZbv) {
      ExpectStageBytes(MakeGpt(), {schedule, 8}, kVocabulary * kWidth * kFloat);
    }
  }
}

// Between stages of split layers hidden states are whole, or under sequence parallelism a rank's rows. Rank 0 of 2
// has the even rows of a table of 13.
TEST(StageAxisBytes, StagesOfSplitLayers) {
  if (World().size() < 4) return;
  for (const bool sequence_parallel : {false, true}) {
    ExpectStageBytes(MakeLlama(2), {ScheduleKind::k1F1B, 2, 2, sequence_parallel}, 0);
    const std::int64_t table_rows = World().rank() % 2 == 0 ? kVocabulary / 2 : kVocabulary - kVocabulary / 2;
    ExpectStageBytes(MakeGpt(), {ScheduleKind::kZbH1, 2, 2, sequence_parallel}, table_rows * kWidth * kFloat);
  }
}

}  // namespace
}  // namespace plait::parity
