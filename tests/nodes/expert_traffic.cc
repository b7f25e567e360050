// expert_traffic ROUTING TOKENS CALLS: forward and backward passes of an expert layer on all ranks, compared with one
// process; expert_traffic_test.py counts the bytes that leave the nodes.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "comm/communicator.h"
#include "comm/session_main.h"
#include "parallel/moe/layer.h"

namespace {

using plait::comm::Communicator;
using plait::moe::ExchangeRanks;
using plait::moe::ExpertLayer;
using plait::moe::ExpertPlacement;
using plait::moe::ExpertWeights;

constexpr int kExperts = 8, kK = 4;
constexpr std::int64_t kWidth = 1024, kHidden = 8;

at::Tensor Random(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed), at::kFloat);
}

// k consecutive experts from a multiple of k on (blocks), or from any number on (spread).
at::Tensor Routing(const std::string& kind, std::int64_t tokens, int rank) {
  at::Tensor experts = at::empty({tokens, kK}, at::kLong);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t number = 7 * t + rank,
                       first = kind == "blocks" ? number % (kExperts / kK) * kK : number % kExperts;
    for (std::int64_t j = 0; j < kK; ++j) experts[t][j] = (first + j) % kExperts;
  }
  return experts;
}

struct Pass {
  Pass(ExchangeRanks ranks, const std::string& routing, std::int64_t tokens, int rank)
      : layer(ranks, {.experts = kExperts}),
        placement(ranks.comm().size(), kExperts),
        x(Random({tokens, kWidth}, 100 + rank).requires_grad_(true)),
        experts(Routing(routing, tokens, rank)) {
    const int me = ranks.comm().rank();
    const auto home = [&](const at::Tensor& all) {
      return all.narrow(0, placement.first_home_expert(me), placement.home_experts(me))
          .clone()
          .requires_grad_(true);
    };
    weights.in = home(Random({kExperts, kHidden, kWidth}, 1) / 32);
    weights.out = home(Random({kExperts, kWidth, kHidden}, 2) / 3);
  }
  at::Tensor Run() {
    x.mutable_grad() = at::Tensor();
    const at::Tensor y = layer.Forward(
        x, experts, at::full(experts.sizes(), 0.25, at::kFloat).requires_grad_(true), weights, placement);
    y.backward(x.detach());
    return y.detach();
  }
  ExpertLayer layer;
  ExpertPlacement placement;
  at::Tensor x, experts;
  ExpertWeights weights;
};

absl::Status Exchange(const Communicator& world, const std::string& routing, std::int64_t tokens, int calls) {
  Pass pass(ExchangeRanks(world), routing, tokens, world.rank()),
      alone(ExchangeRanks(), routing, tokens, world.rank());
  const at::Tensor expected = alone.Run();
  for (int call = 0; call < calls; ++call) {
    const at::Tensor y = pass.Run();
    const bool same =
        at::allclose(y, expected, 1e-4, 1e-5) && at::allclose(pass.x.grad(), alone.x.grad(), 1e-4, 1e-5);
    const absl::Status mine =
        same ? absl::OkStatus()
             : absl::InternalError(absl::StrCat("rank ", world.rank(), ": not as one process"));
    if (absl::Status all = world.Agree(mine); !all.ok()) return all;
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  return plait::comm::RunMain(argc, argv, {}, [&](plait::comm::Session& session) {
    if (argc != 4) return absl::InvalidArgumentError("expected ROUTING TOKENS CALLS");
    return Exchange(session.world(), argv[1], std::atoll(argv[2]), std::atoi(argv[3]));
  });
}
