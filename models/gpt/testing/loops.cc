#include "models/gpt/testing/loops.h"

#include <cmath>
#include <map>
#include <string>

namespace plait::gpt {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

struct Weights {
  std::map<std::string, at::Tensor> tensors;

  // Row i of a matrix, or a vector, in float64; zeros if there is no such tensor (a bias).
  Row Of(const std::string& name, std::int64_t width) const {
    const auto found = tensors.find(name);
    if (found == tensors.end()) return Row(width, 0.0);
    const at::Tensor values = found->second.detach().to(at::kDouble).contiguous();
    return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
  }
};

Row Linear(const Row& x, const Weights& weights, const std::string& name, std::int64_t out) {
  const Row weight = weights.Of(name + ".weight", 0), bias = weights.Of(name + ".bias", out);
  Row y = bias;
  for (std::int64_t i = 0; i < out; ++i) {
    for (std::size_t k = 0; k < x.size(); ++k) y[i] += weight[i * x.size() + k] * x[k];
  }
  return y;
}

Row LayerNorm(const Row& x, const Weights& weights, const std::string& name) {
  const double n = static_cast<double>(x.size());
  const Row weight = weights.Of(name + ".weight", 0);
  Row y = weights.Of(name + ".bias", static_cast<std::int64_t>(x.size()));
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / n;
  for (const double value : x) variance += (value - mean) * (value - mean) / n;
  for (std::size_t k = 0; k < x.size(); ++k) y[k] += weight[k] * (x[k] - mean) / std::sqrt(variance + 1e-5);
  return y;
}

double GeluOf(double x, Gelu kind) {
  if (kind == Gelu::kExact) return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

// `products`: queries, keys and values side by side. Position i attends to positions 0 to i.
Row Attention(const Rows& products, std::size_t i, std::int64_t heads, std::int64_t width) {
  Row out(width, 0.0);
  const std::int64_t size = width / heads;
  for (std::int64_t first = 0; first < width; first += size) {
    Row scores(i + 1, 0.0);
    double sum = 0;
    for (std::size_t j = 0; j <= i; ++j) {
      for (std::int64_t k = first; k < first + size; ++k) {
        scores[j] += products[i][k] * products[j][width + k] / std::sqrt(static_cast<double>(size));
      }
      sum += std::exp(scores[j]);
    }
    for (std::size_t j = 0; j <= i; ++j) {
      for (std::int64_t k = first; k < first + size; ++k) {
        out[k] += std::exp(scores[j]) / sum * products[j][2 * width + k];
      }
    }
  }
  return out;
}

void AddTo(Row& x, const Row& y, double factor) {
  for (std::size_t k = 0; k < x.size(); ++k) x[k] += factor * y[k];
}

void Block(Rows& x, const Weights& weights, const std::string& name, const GptOptions& options, double dt) {
  const std::int64_t width = options.n_embd;
  Rows products;
  for (const Row& row : x) {
    products.push_back(
        Linear(LayerNorm(row, weights, name + ".ln_1"), weights, name + ".attn.c_attn", 3 * width));
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Row attended = Attention(products, i, options.n_head, width);
    AddTo(x[i], Linear(attended, weights, name + ".attn.c_proj", width), dt);
    Row wide = Linear(LayerNorm(x[i], weights, name + ".ln_2"), weights, name + ".mlp.c_fc", 4 * width);
    for (double& value : wide) value = GeluOf(value, options.gelu);
    AddTo(x[i], Linear(wide, weights, name + ".mlp.c_proj", width), dt);
  }
}

}  // namespace

std::vector<std::vector<double>> LogitsByLoops(const Gpt& gpt, const std::vector<std::int64_t>& tokens,
                                               double dt) {
  Weights weights;
  for (const models::ParameterUnit& unit : gpt.units()) {
    for (const models::ParameterSpec& parameter : unit.parameters) {
      weights.tensors[parameter.name] = parameter.tensor;
    }
  }
  const GptOptions& options = gpt.options();
  const Row wte = weights.Of("transformer.wte.weight", 0), wpe = weights.Of("transformer.wpe.weight", 0);
  Rows x(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    for (std::int64_t k = 0; k < options.n_embd; ++k) {
      x[i].push_back(wte[tokens[i] * options.n_embd + k] + wpe[i * options.n_embd + k]);
    }
  }
  for (std::int64_t layer = 0; layer < options.n_layer; ++layer) {
    Block(x, weights, "transformer.h." + std::to_string(layer), options, dt);
  }
  Weights head{{{"head.weight", weights.tensors.at("transformer.wte.weight")}}};
  for (Row& row : x)
    row = Linear(LayerNorm(row, weights, "transformer.ln_f"), head, "head", options.vocab_size);
  return x;
}

}  // namespace plait::gpt
