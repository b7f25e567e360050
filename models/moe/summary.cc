#include "models/moe/summary.h"

#include "absl/strings/str_cat.h"
#include "models/layer_text.h"

namespace plait::moe {
namespace {

constexpr const char* kActivations[] = {"gelu", "gelu_tanh", "relu", "silu"};

std::int64_t RowsOf(const std::vector<std::int64_t>& shape) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

}  // namespace

std::string DescriptionOf(const MoeOptions& options, std::int64_t width, const std::string& indent) {
  const GateOptions& gate = options.gate;
  std::string text = absl::StrCat(
      "MoeMlp(\n", indent, "  (router): Router(in_features=", width, ", experts=", gate.experts, ", top_k=", gate.k,
      ", gate=", Name(gate.kind), ")\n", indent, "  (experts): Experts(num_experts=", gate.experts,
      ", in_features=", width, ", hidden_features=", options.hidden, ", activation=",
      kActivations[static_cast<int>(options.activation)], options.gated ? ", gated" : "", ", bias=",
      options.bias ? "True" : "False", ")\n");
  if (options.shared_hidden > 0) {
    absl::StrAppend(&text, indent, "  (shared): MLP(\n", indent,
                    "    (in): ", models::LinearText(width, options.shared_hidden, options.bias), "\n", indent,
                    "    (out): ", models::LinearText(options.shared_hidden, width, options.bias), "\n", indent,
                    "  )\n");
  }
  return absl::StrCat(text, indent, ")");
}

models::Layer LayerOf(const MoeOptions& options, const std::vector<std::int64_t>& output_shape) {
  const std::int64_t width = output_shape.back(), rows = RowsOf(output_shape);
  const auto shape = [&](std::int64_t last) {
    std::vector<std::int64_t> of = output_shape;
    of.back() = last;
    return of;
  };
  MoeOptions experts_alone = options;
  experts_alone.shared_hidden = 0;
  const std::int64_t router = ParameterCount(experts_alone, width, 0);
  const std::int64_t expert = ParameterCount(experts_alone, width, 1) - router;
  models::Layer layer = {.type = "MoeMlp", .output_shape = output_shape};
  layer.children = {{.type = "Router",
                     .output_shape = shape(options.gate.experts),
                     .parameters = router,
                     .mult_adds = rows * router},
                    {.type = "Experts",
                     .output_shape = shape(options.gate.k * width),
                     .parameters = options.gate.experts * expert,
                     .mult_adds = rows * options.gate.k * expert}};
  if (options.shared_hidden > 0) {
    layer.children.push_back(models::LinearLayer(shape(options.shared_hidden), width, options.bias));
    layer.children.push_back(models::LinearLayer(output_shape, options.shared_hidden, options.bias));
  }
  return layer;
}

}  // namespace plait::moe
