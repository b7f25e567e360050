// Each expert's weights are sent once to each replica per step, whatever the number of micro-batches, and no replica is
// used after its step. Values are integers, whose sums are exact.
#include "parallel/moe/replicas.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/testing/world.h"
#include "parallel/moe/layer.h"
#include "parallel/moe/placement.h"

namespace plait::moe {
namespace {

using comm::testing::World;

constexpr int kExperts = 9;
constexpr std::int64_t kWidth = 3, kHidden = 4, kValue = 8;  // bytes
constexpr std::int64_t kExpertBytes = (2 * kWidth * kHidden + kHidden + kWidth) * kValue;

bool IsReplica(int expert, int rank, const ExpertPlacement& placement) {
  return rank != placement.home_rank(expert) && (expert + rank) % 3 != 0;
}

// Of the experts from `begin` on alone, the last ones first.
ExpertPlacement Placement(int begin = 0) {
  ExpertPlacement placement(World().size(), kExperts);
  for (int e = kExperts; e-- > begin;) {
    for (int rank = 0; rank < World().size(); ++rank) {
      if (IsReplica(e, rank, placement)) placement.AddReplica(e, rank);
    }
  }
  return placement;
}

struct Replicas {
  std::int64_t sent = 0, brought = 0;  // of this rank's experts elsewhere; of others' here
};
Replicas CountedIn(int begin, int end) {
  const ExpertPlacement homes(World().size(), kExperts);
  Replicas count;
  for (int e = begin; e < end; ++e) {
    for (int rank = 0; rank < World().size(); ++rank) {
      if (!IsReplica(e, rank, homes)) continue;
      if (homes.home_rank(e) == World().rank()) ++count.sent;
      if (rank == World().rank()) ++count.brought;
    }
  }
  return count;
}

// All numbers of an expert are its own, and `more`.
ExpertWeights HomeWeights(double more = 0) {
  const ExpertPlacement homes(World().size(), kExperts);
  const int first = homes.first_home_expert(World().rank());
  const std::int64_t count = homes.home_experts(World().rank());
  const auto values = [&](at::IntArrayRef rest) {
    std::vector<std::int64_t> shape = {count};
    shape.insert(shape.end(), rest.begin(), rest.end());
    at::Tensor all = at::zeros(shape, at::kDouble);
    for (std::int64_t e = 0; e < count; ++e) all[e].fill_(static_cast<double>(first + e) + more);
    return all;
  };
  return {.in = values({kHidden, kWidth}),
          .in_bias = values({kHidden}),
          .out = values({kWidth, kHidden}),
          .out_bias = values({kWidth})};
}

std::int64_t SentBy(const std::function<void()>& work) {
  const auto sent = [] {
    std::int64_t bytes = 0;
    for (const auto& [axis, operations] : World().stats()) {
      for (const comm::OperationStats& operation : operations) bytes += operation.wire_bytes;
    }
    return bytes;
  };
  const std::int64_t before = sent();
  work();
  return sent() - before;
}

class Cache {
 public:
  std::int64_t SentForFetch(const ExpertPlacement& placement, const ExpertWeights& home) {
    return SentBy([&] {
      cache.StartFetch(World(), placement, home);
      weights = cache.WaitForFetch();
    });
  }
  void ExpectWeights(const ExpertPlacement& placement, double more = 0) const {
    const int me = World().rank();
    const auto slots = placement.slots(me).subspan(placement.home_experts(me));
    ASSERT_EQ(weights.out.size(0), slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      for (const at::Tensor& of : {weights.in, weights.in_bias, weights.out, weights.out_bias})
        EXPECT_TRUE(of[row].eq(slots[i] + more).all().item<bool>()) << i;
    }
  }
  ReplicaCache cache;
  ExpertWeights weights;
};

// An expert's parameters once to each replica, and their gradients once back: 2 d h values, and biases.
TEST(ReplicaBytes, OfOneMicroBatch) {
  const int me = World().rank();
  const ExpertPlacement placement = Placement();
  const Replicas all = CountedIn(0, kExperts);
  const ExpertWeights home = HomeWeights();
  Cache cache;
  EXPECT_EQ(cache.SentForFetch(placement, home), all.sent * kExpertBytes);
  cache.ExpectWeights(placement);
  // Each replica's gradient is its rank's number plus one.
  ExpertWeights of_replicas, of_home;
  ForEachTensor(cache.weights, of_replicas,
                [&](const at::Tensor& r, at::Tensor& g) { g = at::full_like(r, me + 1); });
  ForEachTensor(home, of_home, [](const at::Tensor& w, at::Tensor& g) { g = at::full_like(w, 100); });
  EXPECT_EQ(SentBy([&] { ReduceToHome(World(), placement, of_replicas, of_home); }),
            all.brought * kExpertBytes);
  const int first = placement.first_home_expert(me);
  for (int e = first; e < first + placement.home_experts(me); ++e) {
    double expected = 100;
    for (int rank = 0; rank < World().size(); ++rank)
      expected += IsReplica(e, rank, placement) ? rank + 1 : 0;
    for (const at::Tensor& of : {of_home.in, of_home.in_bias, of_home.out, of_home.out_bias}) {
      EXPECT_TRUE(of[e - first].eq(expected).all().item<bool>()) << e;
    }
  }
}

// A fetch brings only what earlier ones did not; the next step has new weights.
TEST(ReplicaBytes, OfAStepOfSeveralMicroBatches) {
  constexpr int kSome = 5;
  Cache cache;
  for (const double step : {0, 100, 200}) {
    const ExpertWeights home = HomeWeights(step);
    EXPECT_EQ(cache.cache.placement(), nullptr);
    EXPECT_EQ(cache.SentForFetch(Placement(kSome), home), CountedIn(kSome, kExperts).sent * kExpertBytes);
    cache.ExpectWeights(Placement(kSome), step);
    const ExpertWeights before = cache.weights;
    EXPECT_EQ(cache.SentForFetch(Placement(), home), CountedIn(0, kSome).sent * kExpertBytes);
    cache.ExpectWeights(Placement(), step);
    EXPECT_EQ(before.out.size(0), CountedIn(kSome, kExperts).brought);
    // Evaluation uses no replicas, and does not drop any.
    EXPECT_EQ(cache.SentForFetch(ExpertPlacement(World().size(), kExperts), HomeWeights(7)), 0);
    EXPECT_FALSE(cache.weights.in.defined());
    EXPECT_EQ(cache.SentForFetch(Placement(), home), 0);
    cache.ExpectWeights(Placement(), step);
    EXPECT_EQ(*cache.cache.placement(), Placement());
    cache.cache.EndStep();
  }
  EXPECT_EQ(cache.cache.version(), 3);
}

// Weights that were updated in place, without EndStep. Detected before any communication.
TEST(StaleReplicas, AreNotUsedWhereWeightsHaveChanged) {
  Cache cache;
  cache.cache.EndStep();
  ExpertWeights home = HomeWeights();
  home.in.fill_(std::nan(""));  // equal to itself here
  cache.SentForFetch(Placement(), home);
  cache.SentForFetch(Placement(), home);
  if (CountedIn(0, kExperts).sent == 0) return;
  home.out_bias.add_(1);
  EXPECT_DEATH(
      cache.SentForFetch(Placement(), home),
      "the replica of expert . in slot . of rank . has the weights of version 1, which have changed on "
      "their home rank since; expected EndStep after each optimizer step");
}

TEST(StaleReplicas, AndPlacementsOfAStepKeepWhatTheyHave) {
  Cache cache;
  cache.SentForFetch(Placement(), HomeWeights());
  EXPECT_DEATH(cache.SentForFetch(Placement(kExperts - 2), HomeWeights()),
               "slots in this step, which the placement changes");
}

TEST(StaleReplicas, HaveNoBackwardAfterTheirStep) {
  const ExpertPlacement placement = Placement();
  ExpertLayer layer(ExchangeRanks(World(), std::vector<int>(World().size(), 0)), {.experts = kExperts});
  const auto leaf = [](const at::Tensor& t) { return t.clone().requires_grad_(true); };
  const ExpertWeights values = HomeWeights();
  const ExpertWeights home = {.in = leaf(values.in),
                              .in_bias = leaf(values.in_bias),
                              .out = leaf(values.out),
                              .out_bias = leaf(values.out_bias)};
  const at::Tensor x = at::ones({2, kWidth}, at::kDouble);
  const at::Tensor experts = at::full({2, 1}, World().rank(), at::kLong),
                   weights = at::ones({2, 1}, at::kDouble);
  const at::Tensor y = layer.Forward(x, experts, weights, home, placement);
  y.sum().backward();  // of this version
  const at::Tensor late = layer.Forward(x, experts, weights, home, placement);
  layer.EndStep();
  if (placement.replicas(World().rank()) == 0) return;
  EXPECT_DEATH(late.sum().backward(),
               absl::StrCat("the replica of expert . in slot . of rank ", World().rank(),
                            " has the weights of version 0, now is version 1; expected the backward pass"));
}

}  // namespace
}  // namespace plait::moe
