// SerialGru against torch::nn::GRU, and against its formulas with LibTorch's autograd.
#include "models/gru/serial.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/utils.h>

#include <limits>

#include "models/gru/parameters.h"
#include "models/gru/sequence_classifier.h"

namespace plait::gru {
namespace {

double MaxAbs(const at::Tensor& t) { return t.abs().max().item<double>(); }

at::Tensor Leaf(const at::Tensor& t) { return t.detach().clone().set_requires_grad(true); }

// Output, state and all gradients of sum(output w) + sum(state v).
struct Results {
  std::vector<at::Tensor> values;
};

struct Case {
  std::int64_t batch, steps, input, hidden, layers;
};
constexpr Case kCases[] = {
    {1, 5, 1, 1, 1}, {7, 6, 9, 5, 2}, {33, 4, 40, 100, 3}, {3, 9, 64, 33, 2}, {20, 12, 9, 130, 1}};

struct Data {
  Data(const Case& c, at::ScalarType dtype)
      : x(Leaf(at::randn({c.batch, c.steps, c.input}, dtype))),
        h(Leaf(at::randn({c.layers, c.batch, c.hidden}, dtype).tanh())),
        w(at::randn({c.batch, c.steps, c.hidden}, dtype)),
        v(at::randn({c.layers, c.batch, c.hidden}, dtype)) {}

  Results Gather(const at::Tensor& output, const at::Tensor& state,
                 const std::vector<at::Tensor>& parameters) const {
    ((output * w).sum() + (state * v).sum()).backward();
    Results results{{output.detach(), state.detach(), x.grad().clone(), h.grad().clone()}};
    x.mutable_grad().reset();
    h.mutable_grad().reset();
    for (at::Tensor p : parameters) {
      results.values.push_back(p.grad().clone());
      p.mutable_grad().reset();
    }
    return results;
  }

  at::Tensor x, h, w, v;
};

Results RunSerial(SerialGru& gru, const Data& data) {
  const GruResult result = gru.Forward(data.x, data.h, GruOutput::kAllSteps);
  return data.Gather(result.output, result.state, gru.parameters());
}

// Rounding in a chain of all steps and layers, with sums over the batch in the weight gradients; a GRU's step
// does not enlarge differences much (its state map is near a contraction), so they add up along the chain.
void ExpectSame(const Results& actual, const Results& expected, const Case& c, double eps) {
  ASSERT_EQ(actual.values.size(), expected.values.size());
  const double chain = static_cast<double>(c.steps * (c.layers * (3 * c.hidden + c.input) + c.batch + 16));
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double tolerance = chain * eps * std::max(1.0, MaxAbs(expected.values[i]));
    EXPECT_LE(MaxAbs(actual.values[i] - expected.values[i]), tolerance) << "value " << i;
  }
}

double Eps(at::ScalarType dtype) {
  return dtype == at::kFloat ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
}

SerialGruOptions Options(const Case& c, GruKind kind) { return {{c.input, c.hidden, c.layers, kind}, {}}; }

void CopyParameters(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
}

torch::nn::GRU TorchGru(const Case& c, at::ScalarType dtype) {
  torch::nn::GRU gru(torch::nn::GRUOptions(c.input, c.hidden).num_layers(c.layers).batch_first(true));
  gru->to(dtype);
  return gru;
}

TEST(SerialGruTest, ClassicEqualsTorchWithAllGradients) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const Case& c : kCases) {
      SCOPED_TRACE(std::string(toString(dtype)) + " hidden " + std::to_string(c.hidden));
      const Data data(c, dtype);
      SerialGru gru(Options(c, GruKind::kClassic), dtype);
      torch::nn::GRU reference = TorchGru(c, dtype);
      CopyParameters(gru.parameters(), reference->parameters());
      const auto [output, state] = reference->forward(data.x, data.h);
      const Results expected = data.Gather(output, state, reference->parameters());
      ExpectSame(RunSerial(gru, data), expected, c, Eps(dtype));
    }
  }
}

// The formulas of models/gru/cell.h, written out.
at::Tensor FormulaStep(GruKind kind, double dt, const at::Tensor& x, const at::Tensor& h,
                       const at::Tensor* p) {
  const auto in = at::addmm(p[2], x, p[0].t()).chunk(3, 1);
  const auto hid = at::addmm(p[3], h, p[1].t()).chunk(3, 1);
  const at::Tensor r = at::sigmoid(at::Tensor(in[0]) + at::Tensor(hid[0]));
  const at::Tensor z = at::sigmoid(at::Tensor(in[1]) + at::Tensor(hid[1]));
  const at::Tensor n = at::tanh(at::Tensor(in[2]) + r * at::Tensor(hid[2]));
  if (kind == GruKind::kImplicit) return (h + dt * (1 - z) * n) / (1 + dt * (1 - z));
  return h + dt * (1 - z) * (n - h);
}

Results RunFormulas(GruKind kind, double dt, const Case& c, const Data& data,
                    const std::vector<at::Tensor>& p) {
  std::vector<at::Tensor> h = data.h.unbind(0);
  std::vector<at::Tensor> outputs;
  for (std::int64_t step = 0; step < c.steps; ++step) {
    for (std::int64_t layer = 0; layer < c.layers; ++layer) {
      h[layer] =
          FormulaStep(kind, dt, layer == 0 ? data.x.select(1, step) : h[layer - 1], h[layer], &p[4 * layer]);
    }
    outputs.push_back(h.back());
  }
  return data.Gather(at::stack(outputs, 1), at::stack(h), p);
}

TEST(SerialGruTest, BothKindsEqualTheirFormulasUnderAutograd) {
  for (GruKind kind : {GruKind::kClassic, GruKind::kImplicit}) {
    for (const Case& c : kCases) {
      for (double final_time : {0.5 * static_cast<double>(c.steps), 3.0}) {
        SCOPED_TRACE("hidden " + std::to_string(c.hidden) + " final time " + std::to_string(final_time));
        const Data data(c, at::kDouble);
        SerialGruOptions options = Options(c, kind);
        options.final_time = final_time;
        SerialGru gru(options, at::kDouble);
        const Results actual = RunSerial(gru, data);
        const double dt = final_time / static_cast<double>(c.steps);
        ExpectSame(actual, RunFormulas(kind, dt, c, data, gru.parameters()), c, Eps(at::kDouble));
      }
    }
  }
}

TEST(SerialGruTest, InitialValuesNamesAndStateDictAreTorchs) {
  const Case c = kCases[1];
  torch::manual_seed(5);
  torch::nn::GRU reference = TorchGru(c, at::kFloat);
  torch::manual_seed(5);
  SerialGru gru(Options(c, GruKind::kClassic), at::kFloat);
  const auto expected = reference->named_parameters();
  const auto actual = gru.module()->named_parameters();
  ASSERT_EQ(actual.keys(), expected.keys());
  for (const auto& item : expected) EXPECT_TRUE(at::equal(item.value(), actual[item.key()])) << item.key();

  torch::manual_seed(6);
  torch::nn::GRU gru_reference(torch::nn::GRUOptions(9, 20).num_layers(2));
  torch::nn::Linear head(20, 6);
  torch::manual_seed(6);
  SequenceClassifier classifier({{{9, 20, 2}, {}}, 6}, at::kFloat);
  const auto named = classifier.module()->named_parameters();
  ASSERT_EQ(named.size(), 10u);
  EXPECT_TRUE(at::equal(named["gru.weight_hh_l1"], gru_reference->named_parameters()["weight_hh_l1"]));
  EXPECT_TRUE(at::equal(named["head.weight"], head->weight));
  EXPECT_TRUE(at::equal(named["head.bias"], head->bias));
}

TEST(SerialGruTest, DefaultsAreTheLastStepAndAZeroState) {
  const Case c = kCases[2];
  const Data data(c, at::kDouble);
  SerialGru gru(Options(c, GruKind::kImplicit), at::kDouble);
  const GruResult last = gru.Forward(data.x);
  const GruResult all =
      gru.Forward(data.x, at::zeros({c.layers, c.batch, c.hidden}, at::kDouble), GruOutput::kAllSteps);
  EXPECT_TRUE(at::equal(last.output, all.output.select(1, c.steps - 1)));
  EXPECT_TRUE(at::equal(last.state, all.state));
  const c10::NoGradGuard no_grad;
  const GruResult inference = gru.Forward(data.x, {}, GruOutput::kAllSteps);
  EXPECT_FALSE(inference.output.requires_grad());
  EXPECT_TRUE(at::equal(inference.output, all.output));
  EXPECT_TRUE(at::equal(inference.state, all.state));
}

std::vector<at::Tensor> Gradients(SerialGru& gru, const at::Tensor& loss, bool retain_graph = false) {
  loss.backward({}, retain_graph);
  std::vector<at::Tensor> gradients;
  for (at::Tensor p : gru.parameters()) {
    gradients.push_back(p.grad().clone());
    p.mutable_grad().reset();
  }
  return gradients;
}

void ExpectEqual(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << i;
}

TEST(SerialGruTest, SweepsThatOverlapDoNotMix) {
  const Case c = kCases[1];
  SerialGru gru(Options(c, GruKind::kClassic), at::kFloat);
  const at::Tensor x = at::randn({c.batch, c.steps, c.input}), y = at::randn({c.batch, c.steps, c.input});
  const auto loss_of = [&](const at::Tensor& in) { return gru.Forward(in).output.square().sum(); };
  const auto of_x = Gradients(gru, loss_of(x)), of_y = Gradients(gru, loss_of(y));
  const at::Tensor loss_x = loss_of(x), loss_y = loss_of(y);
  ExpectEqual(Gradients(gru, loss_x, true), of_x);
  ExpectEqual(Gradients(gru, loss_y), of_y);
  (void)loss_of(y);                           // takes the sweep that loss_y gave back
  ExpectEqual(Gradients(gru, loss_x), of_x);  // again, from the retained graph
  EXPECT_THROW(loss_x.backward(), c10::Error);
}

TEST(SerialGruTest, ParametersChangedBeforeBackwardAreRefused) {
  const Case c = kCases[1];
  SerialGru gru(Options(c, GruKind::kClassic), at::kFloat);
  const at::Tensor loss = gru.Forward(at::randn({c.batch, c.steps, c.input})).output.sum();
  {
    const c10::NoGradGuard no_grad;
    gru.parameters()[1].mul_(2);
  }
  EXPECT_THROW(loss.backward(), c10::Error);
}

TEST(SerialGruTest, GradientsOfGradientsAreRefused) {
  const Case c = kCases[1];
  SerialGru gru(Options(c, GruKind::kClassic), at::kFloat);
  const at::Tensor loss = gru.Forward(at::randn({c.batch, c.steps, c.input})).output.sum();
  EXPECT_THROW(loss.backward({}, /*retain_graph=*/true, /*create_graph=*/true), c10::Error);
  loss.backward();
}

TEST(SerialGruTest, FollowsItsModuleToAnotherType) {
  const Case c = kCases[1];
  SerialGru gru(Options(c, GruKind::kClassic), at::kFloat);
  const at::Tensor x = at::randn({c.batch, c.steps, c.input});
  const at::Tensor single = gru.Forward(x).output;
  gru.module()->to(at::kDouble);
  const at::Tensor twice = gru.Forward(x.to(at::kDouble)).output;
  EXPECT_EQ(twice.scalar_type(), at::kDouble);
  EXPECT_LE(MaxAbs(twice - single), 1e-4);
  EXPECT_THROW(gru.Forward(x), c10::Error);
}

TEST(SequenceClassifierTest, IsTheHeadOfTheLastState) {
  const Case c = kCases[2];
  SequenceClassifier classifier({Options(c, GruKind::kImplicit), 4}, at::kDouble);
  const at::Tensor x = at::randn({c.batch, c.steps, c.input}, at::kDouble);
  const auto named = classifier.module()->named_parameters();
  const at::Tensor state = classifier.gru().Forward(x).state.select(0, c.layers - 1);
  const at::Tensor expected = at::addmm(named["head.bias"], state, named["head.weight"].t());
  EXPECT_LE(MaxAbs(classifier.Forward(x) - expected), 200 * Eps(at::kDouble));
}

TEST(SequenceClassifierTest, IsOneBlockWithAHead) {
  const Case c = kCases[1];
  torch::manual_seed(3);
  SequenceClassifier direct({Options(c, GruKind::kImplicit), 4}, at::kDouble);
  SequenceClassifier classifier({Options(c, GruKind::kImplicit), 4},
                                at::TensorOptions(at::kMeta).dtype(at::kDouble));
  torch::manual_seed(3);
  const std::vector<models::ParameterUnit> units = classifier.units();
  ASSERT_EQ(units.size(), 2u);
  EXPECT_EQ(units[0].name, "gru");
  EXPECT_EQ(units[0].block, 0);
  EXPECT_EQ(units[1].block, models::ParameterUnit::kRoot);
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const models::ParameterSpec& parameter : units[unit].parameters) {
      ASSERT_TRUE(parameter.tensor.is_meta()) << parameter.name;
      models::Materialize(parameter.tensor, at::empty(parameter.tensor.sizes(), at::kDouble));
    }
    classifier.ResetParameters(unit);
  }
  for (std::size_t j = 0; j < direct.parameters().size(); ++j) {
    EXPECT_TRUE(classifier.parameters()[j].equal(direct.parameters()[j])) << j;
  }
  const models::Batch batch = {at::randn({c.batch, c.steps, c.input}, at::kDouble),
                               at::randint(4, {c.batch}, at::kLong)};
  const models::BlockRunner otherwise = [&](std::size_t, const models::BlockState& x,
                                            const models::BlockContext&) -> models::BlockState {
    return {.hidden = direct.gru().Forward(x.hidden).state.select(0, c.layers - 1)};
  };
  EXPECT_TRUE(models::RunOutput(classifier, batch, otherwise).equal(direct.Forward(batch.inputs)));
  EXPECT_TRUE(classifier.Forward(batch.inputs).equal(direct.Forward(batch.inputs)));
  const models::LossSum loss = models::RunModel(direct, batch);
  EXPECT_EQ(loss.count, c.batch);
  const at::Tensor expected =
      at::cross_entropy_loss(direct.Forward(batch.inputs), batch.targets, {}, at::Reduction::Sum);
  EXPECT_NEAR(loss.sum.item<double>(), expected.item<double>(),
              c.batch * (c.batch + 8) * 4 * Eps(at::kDouble));
  EXPECT_EQ(direct.Description(),
            "SequenceClassifier(\n  (gru): GRU(9, 5, num_layers=2, batch_first=True)\n"
            "  (head): Linear(in_features=5, out_features=4, bias=True)\n)");
}

// Uniform in +-bound: of more than a thousand numbers the largest is within 2 % of it.
void ExpectBound(const at::Tensor& values, double bound) {
  const double largest = values.detach().abs().max().item<double>();
  EXPECT_LE(largest, bound);
  EXPECT_GE(largest, 0.98 * bound);
}

TEST(GruParameters, InitialValuesFollowTheKind) {
  GruConfig config = {.input = 4, .hidden = 400, .layers = 1, .kind = GruKind::kClassic};
  at::manual_seed(1);
  for (const at::Tensor& values : NewGruParameters(config, at::kDouble)->parameters())
    ExpectBound(values, 0.05);
  config.kind = GruKind::kImplicit;
  const std::vector<at::Tensor> implicit = NewGruParameters(config, at::kDouble)->parameters();
  ExpectBound(implicit[0], 0.5);   // weight_ih
  ExpectBound(implicit[1], 0.05);  // weight_hh
  ExpectBound(implicit[2], 0.5);   // bias_ih
  EXPECT_EQ(implicit[3].slice(0, 0, 800).abs().max().item<double>(), 0.0);
  EXPECT_GE(implicit[3].slice(0, 800).abs().max().item<double>(), 0.95 * 0.05);  // of n, 400 numbers
}

}  // namespace
}  // namespace plait::gru
