// Forward and backward passes of experts' MLPs beside dense layers of the same arithmetic, and of gates:
//
//   moe_experts program=experts dtype=float32 experts=64 sizes=zipf ms=71.25
//
// Each round runs every program once at every setting. With --wait a round begins at a line of standard input, so that
// experts_beside_pytorch.py can take turns.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "base/flags.h"
#include "base/keep_freed_memory.h"
#include "models/linear/linear.h"
#include "models/rowwise/rowwise.h"
#include "parallel/moe/experts.h"
#include "parallel/moe/router.h"

ABSL_FLAG(int, rounds, 5, "rounds; the first one counts, too");
ABSL_FLAG(bool, wait, false, "begin each round at a line of standard input");
ABSL_FLAG(std::string, only, "", "one program alone");
ABSL_FLAG(std::string, dtype, "", "float32 or bfloat16 alone");
ABSL_FLAG(std::int64_t, tokens, 2048, "each goes to two experts");
ABSL_FLAG(int, threads, 1, "of LibTorch and of the kernels");
ABSL_FLAG(int, experts, 0, "8, 32 or 64 alone");

namespace plait::benchmarks {
namespace {

constexpr std::int64_t kWidth = 256, kHidden = 1024, kPerToken = 2;

// Shares 1 / experts, or proportional to 1 / (e + 1); experts_beside_pytorch.py has the same.
std::vector<std::int64_t> OffsetsOf(std::int64_t rows, int experts, bool zipf) {
  double total = 0, sum = 0;
  for (int e = 0; e < experts; ++e) total += zipf ? 1.0 / (e + 1) : 1;
  std::vector<std::int64_t> offsets = {0};
  for (int e = 0; e < experts; ++e) {
    sum += zipf ? 1.0 / (e + 1) : 1;
    offsets.push_back(std::llround(std::floor(rows * (sum / total) + 0.5)));
  }
  return offsets;
}

struct Program {
  std::string name;
  std::function<void()> run;
};

// Experts have the same weights: drawing so many numbers would take longer than what is timed.
at::Tensor Leaf(at::IntArrayRef shape, at::ScalarType type) {
  const at::Tensor drawn = at::randn(shape.size() == 3 ? shape.slice(1) : shape);
  return (drawn * 0.1).to(type).expand(shape).clone(at::MemoryFormat::Contiguous).requires_grad_();
}

using Layer = std::function<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>;
using Function = std::function<at::Tensor(const at::Tensor&)>;

// Two layers, and gradients of all inputs.
std::function<void()> DensePair(std::int64_t rows, at::ScalarType type, const Layer& layer,
                                const Function& between) {
  const at::Tensor x = Leaf({rows, kWidth}, type), w1 = Leaf({kHidden, kWidth}, type),
                   b1 = Leaf({kHidden}, type), w2 = Leaf({kWidth, kHidden}, type), b2 = Leaf({kWidth}, type),
                   of_y = Leaf({rows, kWidth}, type).detach();
  return [=] {
    const at::Tensor y = layer(between(layer(x, w1, b1)), w2, b2);
    torch::autograd::grad({y}, {x, w1, b1, w2, b2}, {of_y});
  };
}

struct Setting {
  at::ScalarType type;
  int experts;
  bool zipf;
};

void RunExperts(const moe::ExpertsOptions& options, const moe::ExpertWeights& weights, const at::Tensor& rows,
                const std::vector<std::int64_t>& offsets, const at::Tensor& of_y) {
  moe::SavedExperts saved;
  moe::ForwardExperts(options, weights, rows, offsets, &saved);
  moe::BackwardExperts(options, weights, saved, offsets, of_y, {});
}

// From tokens to experts, weights, census and balance loss, and the gradients of tokens and weights; noise is drawn.
std::function<void()> Gate(const Setting& s, moe::GateKind kind) {
  const at::Tensor x = Leaf({absl::GetFlag(FLAGS_tokens), kWidth}, s.type),
                   router = Leaf({s.experts, kWidth}, s.type), noise = Leaf({s.experts, kWidth}, s.type);
  const moe::GateOptions options = {
      .kind = kind, .experts = s.experts, .k = kPerToken, .balance_weight = 0.01};
  return [=] {
    const at::Tensor seen = x.to(at::kFloat);
    moe::GateContext context = {.training = true, .seed = 1};
    std::vector<at::Tensor> inputs = {x, router};
    if (kind == moe::GateKind::kNoisyTopK) {
      context.noise_logits = at::linear(seen, noise.to(at::kFloat));
      inputs.push_back(noise);
    }
    const moe::RoutedTokens routed =
        moe::RouteTokens(options, {}, at::linear(seen, router.to(at::kFloat)), context);
    torch::autograd::grad({routed.routing.weights.square().sum() + routed.loss}, inputs);
  };
}

std::vector<Program> ProgramsOf(const Setting& s) {
  const std::int64_t tokens_count = absl::GetFlag(FLAGS_tokens), count = tokens_count * kPerToken;
  const auto random = [&](at::IntArrayRef shape) { return Leaf(shape, s.type).detach(); };
  const moe::ExpertWeights weights = {.in = random({s.experts, kHidden, kWidth}),
                                      .in_bias = random({s.experts, kHidden}),
                                      .out = random({s.experts, kWidth, kHidden}),
                                      .out_bias = random({s.experts, kWidth})};
  const std::vector<std::int64_t> offsets = OffsetsOf(count, s.experts, s.zipf);
  const at::Tensor rows = random({count, kWidth}), of_rows = random({count, kWidth}),
                   tokens = random({tokens_count, kWidth}), of_tokens = random({tokens_count, kWidth}),
                   shares = random({count, 1});
  // Which token each row is of.
  const at::Tensor token = at::arange(count, at::kLong).mul(1237).remainder(count).div(kPerToken, "floor");
  const auto experts = [=](moe::ExpertBackend backend) {
    return [=] { RunExperts({.backend = backend}, weights, rows, offsets, of_rows); };
  };
  const auto none = [](const at::Tensor& x) { return x; };
  const auto own = [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    return linear::Linear(x, w, b);
  };
  const auto theirs = [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    return at::linear(x, w, b);
  };
  return {
      {"dense", DensePair(count, s.type, own,
                          [](const at::Tensor& x) { return rowwise::Gelu(x, rowwise::GeluKind::kExact); })},
      {"experts", experts(moe::ExpertBackend::kGrouped)},
      {"dense-libtorch", DensePair(count, s.type, theirs, [](const at::Tensor& x) { return at::gelu(x); })},
      {"experts-and-rows",
       [=] {
         moe::SavedExperts saved;
         const at::Tensor y =
             moe::ForwardExperts({}, weights, tokens.index_select(0, token), offsets, &saved);
         at::zeros_like(tokens).index_add_(0, token, y * shares);
         const at::Tensor of_y = of_tokens.index_select(0, token) * shares;
         const moe::ExpertGradients g = moe::BackwardExperts({}, weights, saved, offsets, of_y, {});
         at::zeros_like(tokens).index_add_(0, token, g.rows);
       }},
      {"products", DensePair(count, s.type, own, none)},
      {"products-libtorch", DensePair(count, s.type, theirs, none)},
      {"loop", experts(moe::ExpertBackend::kLoop)},
      {"gate", Gate(s, moe::GateKind::kTopK)},
      {"noisy-gate", Gate(s, moe::GateKind::kNoisyTopK)},
  };
}

double RunMilliseconds(const Program& program) {
  const auto begin = std::chrono::steady_clock::now();
  program.run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

// Whether a flag that may name one alone leaves this one.
template <typename T>
bool Left(const absl::Flag<T>& only, const T& name) {
  return absl::GetFlag(only) == T() || absl::GetFlag(only) == name;
}

void RunRound() {
  for (const std::string dtype : {"float32", "bfloat16"}) {
    for (const int experts : {8, 32, 64}) {
      for (const bool zipf : {false, true}) {
        if (!Left(FLAGS_dtype, dtype) || !Left(FLAGS_experts, experts)) continue;
        for (const Program& program :
             ProgramsOf({dtype == "float32" ? at::kFloat : at::kBFloat16, experts, zipf})) {
          if (!Left(FLAGS_only, program.name)) continue;
          program.run();  // into the caches, as far as they hold it
          std::printf("moe_experts program=%s dtype=%s experts=%d sizes=%s ms=%.3f\n", program.name.c_str(),
                      dtype.c_str(), experts, zipf ? "zipf" : "uniform", RunMilliseconds(program));
        }
      }
    }
  }
  std::printf("moe_experts round-ends\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace plait::benchmarks

int main(int argc, char** argv) {
  using namespace plait;
  base::ParseFlagsOrExit(
      argc, argv,
      {.name = "moe_experts",
       .summary = "Forward and backward passes of experts' MLPs, timed beside dense layers.",
       .examples = {"moe_experts --rounds=9"},
       .groups = {}},
      0);
  base::KeepFreedMemory();
  at::set_num_threads(absl::GetFlag(FLAGS_threads));
  std::string line;
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    if (absl::GetFlag(FLAGS_wait) && !std::getline(std::cin, line)) break;
    benchmarks::RunRound();
  }
  return 0;
}
