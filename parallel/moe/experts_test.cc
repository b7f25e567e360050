// Experts of all backends against float64 products and autograd, with bounds that follow rounding through the layer.
#include "parallel/moe/experts.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "base/keep_freed_memory.h"
#include "base/parallel_for.h"

namespace plait::moe {
namespace {

using Offsets = std::vector<std::int64_t>;

Offsets OffsetsOf(const std::vector<std::int64_t>& counts) {
  Offsets offsets = {0};
  for (const std::int64_t count : counts) offsets.push_back(offsets.back() + count);
  return offsets;
}

struct Inputs {
  ExpertWeights weights;
  at::Tensor rows, of_y;
  Offsets offsets;
};

// Name, tensor of the inputs.
struct Named {
  std::string name;
  at::Tensor tensor;
};
std::vector<Named> AllOf(const ExpertWeights& w) {
  return {{"in", w.in},   {"in_bias", w.in_bias},  {"gate", w.gate}, {"gate_bias", w.gate_bias},
          {"out", w.out}, {"out_bias", w.out_bias}};
}

struct Results {
  at::Tensor y;
  ExpertGradients of;
  std::vector<Named> All() const {
    std::vector<Named> all = AllOf(of.weights);
    all.push_back({"rows", of.rows});
    all.push_back({"values", y});
    return all;
  }
};

at::Tensor Activated(Activation f, const at::Tensor& x) {
  switch (f) {
    case Activation::kGelu:
      return at::gelu(x);
    case Activation::kGeluTanh:
      return at::gelu(x, "tanh");
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kSilu:
      break;
  }
  return at::silu(x);
}

// Fills freed memory with NaN, which the next tensors will reuse.
void PoisonFreedMemory() {
  base::KeepFreedMemory();
  at::full({1 << 22}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
}

Results RunExperts(const ExpertsOptions& options, const Inputs& in) {
  PoisonFreedMemory();
  SavedExperts saved;
  Results results;
  results.y = ForwardExperts(options, in.weights, in.rows, in.offsets, &saved);
  results.of = BackwardExperts(options, in.weights, saved, in.offsets, in.of_y, {});
  return results;
}

// A value and a bound on its rounding error.
struct Rounding {
  double u, stored, function;
};
Rounding RoundingOf(at::ScalarType type) {
  if (type == at::kDouble) return {0x1p-53, 0, 1e-15};
  // Own activations err by less than 2e-7 (1 + x) in values and slopes (models/rowwise/rowwise_test.cc).
  return {0x1p-24, type == at::kBFloat16 ? 0x1p-8 : 0, 1e-6};
}
struct Bounded {
  at::Tensor value, error;
};

// Follows rounding through products and activations, in float64: sums err by 8 u sum |a b| (models/linear/
// linear_test.cc), every stored result by `stored`, twice where backends may store a step between.
class Bounds {
 public:
  explicit Bounds(const Rounding& r) : r_(r) {}
  static Bounded Exact(const at::Tensor& t) { return {t, at::zeros_like(t)}; }
  static Bounded Transposed(const Bounded& a) { return {a.value.t(), a.error.t()}; }

  Bounded Product(const Bounded& a, const Bounded& b, const at::Tensor& bias = {}) const {
    const at::Tensor x = a.value.abs(), y = b.value.abs();
    at::Tensor value = at::matmul(a.value, b.value), size = at::matmul(x, y);
    at::Tensor error = at::matmul(x, b.error) + at::matmul(a.error, y) + at::matmul(a.error, b.error);
    error = error + value.abs() * r_.stored;
    if (bias.defined()) value = value + bias, size = size + bias.abs();
    return Stored({value, error + size * (8 * r_.u)});
  }
  Bounded Times(const Bounded& a, const Bounded& b) const {
    return Stored({a.value * b.value, a.value.abs() * b.error + a.error * b.value.abs() + a.error * b.error +
                                          (a.value * b.value).abs() * (2 * r_.stored)});
  }
  Bounded Plus(const Bounded& a, const Bounded& b) const {
    return Stored({a.value + b.value, a.error + b.error + (a.value.abs() + b.value.abs()) * r_.stored});
  }
  // Slopes of all four are at most 1.13.
  Bounded Activated(Activation f, const Bounded& x) const {
    const at::Tensor value = moe::Activated(f, x.value);
    return Stored({value, x.error * 1.13 + (x.value.abs() + 1) * r_.function + value.abs() * r_.stored});
  }
  // Slopes of GELU and SiLU change by at most 0.9 per unit (gelu''(0) = 0.798; that by tanh: below 0.9); ReLU's jumps
  // where the sign is not certain.
  Bounded Slope(Activation f, const Bounded& x) const {
    const at::Tensor leaf = x.value.detach().clone().requires_grad_();
    const at::Tensor slope = torch::autograd::grad({moe::Activated(f, leaf).sum()}, {leaf})[0];
    const at::Tensor moved =
        f == Activation::kRelu ? (x.value.abs() <= x.error).to(at::kDouble) : x.error * 0.9;
    return {slope, moved + (x.value.abs() + 1) * r_.function};
  }
  Bounded Sum(const Bounded& a) const {
    return Stored({a.value.sum(0), a.error.sum(0) + a.value.abs().sum(0) * (8 * r_.u)});
  }

 private:
  Bounded Stored(const Bounded& a) const {
    return {a.value, a.error + a.value.abs() * (r_.stored + 2 * r_.u) + a.error * r_.stored + 1e-300};
  }
  Rounding r_;
};

// Of one expert: gradients in AllOf's order, of rows, and values.
std::vector<at::Tensor> ErrorsOf(Activation f, const Rounding& rounding, const ExpertWeights& w,
                                 const at::Tensor& rows, const at::Tensor& gradient) {
  const Bounds b(rounding);
  const Bounded x = Bounds::Exact(rows), of_y = Bounds::Exact(gradient), w_in = Bounds::Exact(w.in),
                w_out = Bounds::Exact(w.out);
  const bool gated = w.gate.defined();
  const Bounded in = b.Product(x, Bounds::Transposed(w_in), w.in_bias);
  const Bounded gate = gated ? b.Product(x, Bounds::Transposed(Bounds::Exact(w.gate)), w.gate_bias) : in;
  const Bounded f_gate = b.Activated(f, gate), hidden = gated ? b.Times(f_gate, in) : f_gate;
  const Bounded y = b.Product(hidden, Bounds::Transposed(w_out), w.out_bias);
  const Bounded of_hidden = b.Product(of_y, w_out);
  const Bounded of_gate = b.Times(gated ? b.Times(of_hidden, in) : of_hidden, b.Slope(f, gate));
  const Bounded of_in = gated ? b.Times(of_hidden, f_gate) : of_gate;
  Bounded of_x = b.Product(of_in, w_in);
  if (gated) of_x = b.Plus(of_x, b.Product(of_gate, Bounds::Exact(w.gate)));
  return {b.Product(Bounds::Transposed(of_in), x).error,
          b.Sum(of_in).error,
          b.Product(Bounds::Transposed(of_gate), x).error,
          b.Sum(of_gate).error,
          b.Product(Bounds::Transposed(of_y), hidden).error,
          b.Sum(of_y).error,
          of_x.error,
          y.error};
}

at::Tensor Of(const at::Tensor& t, std::int64_t expert) { return t.defined() ? t[expert] : t; }
at::Tensor Double(const at::Tensor& t) { return t.defined() ? t.to(at::kDouble) : t; }

// The exact results of one expert, by autograd in float64; undefined where there is no such weight.
std::vector<at::Tensor> ExactOf(Activation f, const ExpertWeights& w, const at::Tensor& rows,
                                const at::Tensor& of_y) {
  std::vector<at::Tensor> leaves, inputs;
  for (const Named& named : AllOf(w)) leaves.push_back(named.tensor);
  leaves.push_back(rows);
  for (at::Tensor& leaf : leaves) {
    if (leaf.defined()) inputs.push_back(leaf = leaf.detach().clone().requires_grad_());
  }
  const auto linear = [](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return bias.defined() ? at::matmul(x, weight.t()) + bias : at::matmul(x, weight.t());
  };
  at::Tensor hidden = linear(leaves[6], leaves[0], leaves[1]);
  hidden = w.gate.defined() ? Activated(f, linear(leaves[6], leaves[2], leaves[3])) * hidden
                            : Activated(f, hidden);
  const at::Tensor y = linear(hidden, leaves[4], leaves[5]);
  const std::vector<at::Tensor> found = torch::autograd::grad({y}, inputs, {of_y});
  std::vector<at::Tensor> results;
  std::size_t next = 0;
  for (const at::Tensor& leaf : leaves) results.push_back(leaf.defined() ? found[next++] : at::Tensor());
  results.push_back(y.detach());
  return results;
}

ExpertWeights InDouble(const ExpertWeights& w, std::int64_t e) {
  return {Double(Of(w.in, e)),        Double(Of(w.in_bias, e)), Double(Of(w.gate, e)),
          Double(Of(w.gate_bias, e)), Double(Of(w.out, e)),     Double(Of(w.out_bias, e))};
}

using Setting = std::tuple<at::ScalarType, ExpertBackend>;

class ExpertsTest : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override { at::manual_seed(5); }
  static at::ScalarType Type() { return std::get<0>(GetParam()); }
  static ExpertsOptions Options(Activation f) {
    return {.activation = f, .backend = std::get<1>(GetParam())};
  }

  static Inputs Draw(const std::vector<std::int64_t>& counts, std::int64_t width, std::int64_t hidden,
                     bool gated, bool biases) {
    const auto draw = [&](at::IntArrayRef shape, double scale) {
      return (at::randn(shape, at::kDouble) * scale).to(Type());
    };
    const auto experts = static_cast<std::int64_t>(counts.size());
    Inputs in;
    in.offsets = OffsetsOf(counts);
    in.rows = draw({in.offsets.back(), width}, 1), in.of_y = draw({in.offsets.back(), width}, 1);
    const double of_in = 1 / std::sqrt(width), of_out = 1 / std::sqrt(hidden);
    in.weights = {.in = draw({experts, hidden, width}, of_in), .out = draw({experts, width, hidden}, of_out)};
    if (gated) in.weights.gate = draw({experts, hidden, width}, of_in);
    if (!biases) return in;
    in.weights.in_bias = draw({experts, hidden}, 1);
    in.weights.out_bias = draw({experts, width}, 1);
    if (gated) in.weights.gate_bias = draw({experts, hidden}, 1);
    return in;
  }

  static void ExpectExact(Activation f, const Inputs& in, const Results& results, const std::string& what) {
    const std::vector<Named> all = results.All();
    for (std::size_t e = 0; e + 1 < in.offsets.size(); ++e) {
      const auto rows_of = [&](const at::Tensor& t) {
        return Double(t.narrow(0, in.offsets[e], in.offsets[e + 1] - in.offsets[e]));
      };
      const ExpertWeights w = InDouble(in.weights, static_cast<std::int64_t>(e));
      const std::vector<at::Tensor> exact = ExactOf(f, w, rows_of(in.rows), rows_of(in.of_y)),
                                    errors = ErrorsOf(f, RoundingOf(Type()), w, rows_of(in.rows),
                                                      rows_of(in.of_y));
      for (std::size_t i = 0; i < all.size(); ++i) {
        const std::string which = what + ", expert " + std::to_string(e) + ", " + all[i].name;
        ASSERT_EQ(all[i].tensor.defined(), exact[i].defined()) << which;
        if (!exact[i].defined() || exact[i].numel() == 0) continue;
        const at::Tensor actual =
            i < 6 ? Double(all[i].tensor[static_cast<std::int64_t>(e)]) : rows_of(all[i].tensor);
        ASSERT_EQ(actual.sizes(), exact[i].sizes()) << which;
        EXPECT_FALSE(actual.isnan().any().item<bool>()) << which;
        EXPECT_LE(((actual - exact[i]).abs() / errors[i]).max().item<double>(), 1) << which;
      }
    }
  }
};

constexpr Activation kAll[] = {Activation::kGelu, Activation::kGeluTanh, Activation::kRelu,
                               Activation::kSilu};

TEST_P(ExpertsTest, ValuesAndGradientsAreThoseOfFloat64) {
  const std::vector<std::vector<std::int64_t>> all = {
      {3, 0, 40, 1}, {0, 70, 0}, {65, 14, 15, 33, 29, 0, 0, 2}};
  for (const auto& counts : all) {
    for (const bool gated : {false, true}) {
      for (const Activation f : kAll) {
        const bool biases = counts.size() != 3;
        const Inputs in = Draw(counts, 24, 70, gated, biases);
        ExpectExact(f, in, RunExperts(Options(f), in),
                    std::to_string(counts.size()) + " experts, activation " +
                        std::to_string(static_cast<int>(f)) + (gated ? ", gated" : "") +
                        (biases ? "" : ", no biases"));
      }
    }
  }
}

TEST_P(ExpertsTest, GroupsOf0To65Rows) {
  std::vector<std::int64_t> counts(66);
  for (std::int64_t i = 0; i < 66; ++i) counts[i] = i * 37 % 66;
  const Inputs in = Draw(counts, 16, 33, false, true);
  ExpectExact(Activation::kGelu, in, RunExperts(Options(Activation::kGelu), in), "0 to 65 rows");
}

TEST_P(ExpertsTest, NoRowsAtAll) {
  const Inputs in = Draw({0, 0, 0}, 8, 12, true, true);
  const Results results = RunExperts(Options(Activation::kSilu), in);
  EXPECT_EQ(results.y.sizes(), at::IntArrayRef({0, 8}));
  EXPECT_EQ(results.of.rows.sizes(), at::IntArrayRef({0, 8}));
  const std::vector<Named> weights = AllOf(in.weights), gradients = AllOf(results.of.weights);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_TRUE(gradients[i].tensor.equal(at::zeros_like(weights[i].tensor))) << weights[i].name;
  }
}

// Unwanted gradients are undefined and do not change the others; without `saved` results are the same.
TEST_P(ExpertsTest, GradientsAreComputedAsWanted) {
  const Inputs in = Draw({5, 0, 33}, 16, 24, true, true);
  const ExpertsOptions options = Options(Activation::kSilu);
  const Results both = RunExperts(options, in);
  PoisonFreedMemory();
  EXPECT_TRUE(ForwardExperts(options, in.weights, in.rows, in.offsets, nullptr).equal(both.y));
  SavedExperts saved;
  ForwardExperts(options, in.weights, in.rows, in.offsets, &saved);
  const auto rows =
      BackwardExperts(options, in.weights, saved, in.offsets, in.of_y, {.rows = true, .weights = false});
  const auto weights =
      BackwardExperts(options, in.weights, saved, in.offsets, in.of_y, {.rows = false, .weights = true});
  HiddenGradients kept;
  const auto first = BackwardExperts(options, in.weights, saved, in.offsets, in.of_y,
                                     {.rows = true, .weights = false}, &kept);
  const auto second = BackwardExperts(options, in.weights, saved, in.offsets, in.of_y,
                                      {.rows = false, .weights = true}, &kept);
  EXPECT_TRUE(first.rows.equal(both.of.rows));
  EXPECT_TRUE(rows.rows.equal(both.of.rows));
  EXPECT_FALSE(weights.rows.defined());
  const auto all = AllOf(both.of.weights), of_rows = AllOf(rows.weights), of_weights = AllOf(weights.weights),
             of_second = AllOf(second.weights);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_FALSE(of_rows[i].tensor.defined()) << all[i].name;
    EXPECT_TRUE(of_weights[i].tensor.equal(all[i].tensor)) << all[i].name;
    EXPECT_TRUE(of_second[i].tensor.equal(all[i].tensor)) << all[i].name << " of the second part";
  }
}

// A gradient with strides of zero, as that of a sum has.
TEST_P(ExpertsTest, GradientsMayBeExpanded) {
  Inputs in = Draw({7, 20}, 16, 24, false, true);
  in.of_y = at::ones({1}, in.rows.options()).expand({27, 16});
  Inputs dense = in;
  dense.of_y = in.of_y.contiguous();
  const auto a = RunExperts(Options(Activation::kGelu), in).All(),
             b = RunExperts(Options(Activation::kGelu), dense).All();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].tensor.defined()) continue;
    EXPECT_TRUE(a[i].tensor.equal(b[i].tensor)) << a[i].name;
  }
}

TEST_P(ExpertsTest, ShapesOnMetaTensors) {
  Inputs in = Draw({5, 0, 33}, 16, 24, true, true);
  const auto meta = [](at::Tensor& t) { t = t.to(at::kMeta); };
  for (at::Tensor* t : {&in.rows, &in.of_y, &in.weights.in, &in.weights.in_bias, &in.weights.gate,
                        &in.weights.gate_bias, &in.weights.out, &in.weights.out_bias}) {
    meta(*t);
  }
  const Results results = RunExperts(Options(Activation::kSilu), in);
  EXPECT_EQ(results.y.sizes(), in.rows.sizes());
  EXPECT_EQ(results.of.rows.sizes(), in.rows.sizes());
  const auto weights = AllOf(in.weights), gradients = AllOf(results.of.weights);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(gradients[i].tensor.sizes(), weights[i].tensor.sizes());
    EXPECT_TRUE(gradients[i].tensor.is_meta());
  }
}

const char* NameOf(ExpertBackend backend) {
  return backend == ExpertBackend::kReference ? "Reference"
         : backend == ExpertBackend::kLoop    ? "Loop"
                                              : "Grouped";
}

INSTANTIATE_TEST_SUITE_P(Settings, ExpertsTest,
                         testing::Combine(testing::Values(at::kFloat, at::kBFloat16, at::kDouble),
                                          testing::Values(ExpertBackend::kReference, ExpertBackend::kLoop,
                                                          ExpertBackend::kGrouped)),
                         [](const auto& setting) {
                           return std::string(c10::toString(std::get<0>(setting.param))) +
                                  NameOf(std::get<1>(setting.param));
                         });

// Integers whose sums are exact in every type: the same bits by every backend, in the chunks of any number of threads,
// and one expert at a time.
TEST(ExactExpertsTest, BackendsThreadsAndGroupingsDoNotMatter) {
  at::manual_seed(9);
  const Offsets offsets = OffsetsOf({40, 0, 1, 65, 15, 14});
  const auto draw = [](at::IntArrayRef shape) { return at::randint(-1, 2, shape, at::kDouble); };
  const at::Tensor few = draw({135, 8}) * (at::rand({135, 1}, at::kDouble) < 0.1);
  const Inputs exact = {{.in = draw({6, 5, 8}),
                         .in_bias = draw({6, 5}),
                         .gate = draw({6, 5, 8}),
                         .gate_bias = draw({6, 5}),
                         .out = draw({6, 8, 5}),
                         .out_bias = draw({6, 8})},
                        draw({135, 8}),
                        few,
                        offsets};
  const std::vector<Named> expected = RunExperts({Activation::kRelu, ExpertBackend::kReference}, exact).All();
  for (const Named& named : expected) {
    ASSERT_LE(named.tensor.abs().max().item<double>(), 256) << named.name << ": not exact in bfloat16";
    ASSERT_GT(named.tensor.abs().max().item<double>(), 0) << named.name;
  }
  const auto typed = [&](at::ScalarType type) {
    Inputs in = exact;
    for (at::Tensor* t : {&in.rows, &in.of_y, &in.weights.in, &in.weights.in_bias, &in.weights.gate,
                          &in.weights.gate_bias, &in.weights.out, &in.weights.out_bias}) {
      *t = t->to(type);
    }
    return in;
  };
  const int before = at::get_num_threads();
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const Inputs in = typed(type);
    for (const ExpertBackend backend :
         {ExpertBackend::kReference, ExpertBackend::kLoop, ExpertBackend::kGrouped}) {
      for (const int threads : {1, 3}) {
        at::set_num_threads(threads);
        const std::vector<Named> all = RunExperts({Activation::kRelu, backend}, in).All();
        for (std::size_t i = 0; i < all.size(); ++i) {
          EXPECT_TRUE(Double(all[i].tensor).equal(expected[i].tensor))
              << all[i].name << ", " << type << ", " << NameOf(backend) << ", threads " << threads;
        }
      }
    }
    for (std::int64_t e = 0; e < 6; ++e) {
      const auto one = [&](const at::Tensor& t) { return t.narrow(0, e, 1); };
      const auto rows_of = [&](const at::Tensor& t) {
        return t.narrow(0, offsets[e], offsets[e + 1] - offsets[e]);
      };
      const ExpertWeights& w = in.weights;
      const std::vector<Named> all =
          RunExperts({Activation::kRelu, ExpertBackend::kGrouped},
                     {{one(w.in), one(w.in_bias), one(w.gate), one(w.gate_bias), one(w.out), one(w.out_bias)},
                      rows_of(in.rows),
                      rows_of(in.of_y),
                      OffsetsOf({offsets[e + 1] - offsets[e]})})
              .All();
      for (std::size_t i = 0; i < all.size(); ++i) {
        const at::Tensor part = i < 6 ? one(expected[i].tensor) : rows_of(expected[i].tensor);
        EXPECT_TRUE(Double(all[i].tensor).equal(part)) << all[i].name << ", expert " << e;
      }
    }
  }
  at::set_num_threads(before);
}

// Rows do not depend on the products that they are shared among, of which there are more on one thread.
TEST(ExpertThreadsTest, BitsAreTheSame) {
  at::manual_seed(10);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const auto draw = [&](at::IntArrayRef shape) { return at::randn(shape, at::kDouble).to(type); };
    const Inputs in = {{.in = draw({4, 70, 40}), .gate = draw({4, 70, 40}), .out = draw({4, 40, 70})},
                       draw({1000, 40}),
                       draw({1000, 40}),
                       OffsetsOf({400, 1, 0, 599})};
    const auto run = [&](int threads, std::vector<int>* of_loops) {
      const int before = at::get_num_threads();
      at::set_num_threads(threads);
      const ThreadsOfLoops recorded;
      std::vector<Named> all = RunExperts({Activation::kSilu, ExpertBackend::kGrouped}, in).All();
      at::set_num_threads(before);
      *of_loops = recorded.counts();
      return all;
    };
    std::vector<int> of_loops;
    const std::vector<Named> one = run(1, &of_loops);
    if (of_loops.empty()) continue;  // LibTorch's products, which do not guarantee this
    for (const int threads : {2, 3}) {
      const std::vector<Named> several = run(threads, &of_loops);
      EXPECT_THAT(of_loops, testing::Contains(threads));
      for (std::size_t i = 0; i < one.size(); ++i) {
        if (!one[i].tensor.defined()) continue;
        EXPECT_TRUE(several[i].tensor.equal(one[i].tensor)) << one[i].name << ", " << threads << " threads";
      }
    }
  }
}

TEST(ExpertsDeathTest, ShapesMustFit) {
  const ExpertWeights weights = {.in = at::zeros({2, 6, 4}), .out = at::zeros({2, 4, 6})};
  const at::Tensor rows = at::zeros({5, 4});
  EXPECT_DEATH(ForwardExperts({}, weights, rows, {0, 2, 4}, nullptr), "expected 3 that ascend from 0 to 5");
  EXPECT_DEATH(ForwardExperts({}, weights, rows, {0, 5}, nullptr), "expected 3 that ascend from 0 to 5");
  ExpertWeights other = weights;
  other.out = at::zeros({2, 6, 4});
  EXPECT_DEATH(ForwardExperts({}, other, rows, {0, 2, 5}, nullptr),
               "expected a tensor of shape \\[2, 4, 6\\]");
}

}  // namespace
}  // namespace plait::moe
