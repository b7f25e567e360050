#include "parallel/moe/gate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/softmax.h>

#include "base/check.h"
#include "parallel/moe/select_experts.h"

namespace plait::moe {
namespace {

// Of k = 1 the sum is the weight itself.
bool Normalizes(const GateOptions& options) { return options.normalizes && options.k > 1; }

void CheckShapes(const GateOptions& options, const at::Tensor& logits) {
  PLAIT_CHECK(logits.dim() == 2 && logits.size(1) == options.experts)
      << "logits of shape " << logits.sizes() << " for " << options.experts << " experts";
  PLAIT_CHECK(logits.scalar_type() == at::kFloat || logits.scalar_type() == at::kDouble)
      << "logits of " << logits.scalar_type() << ", expected float32 or float64";
}

}  // namespace

Routing Route(const GateOptions& options, const at::Tensor& logits, const GateContext& /*context*/) {
  CheckShapes(options, logits);
  PLAIT_CHECK(options.kind == GateKind::kTopK) << "not yet";
  Routing routing;
  const NotFinite not_finite = FindNotFinite(logits.detach());
  routing.not_finite = not_finite.rows;
  // A product, so that the gradient of these rows is NaN too.
  routing.logits = not_finite.rows == 0 ? logits : logits * not_finite.mark;
  routing.probabilities = at::softmax(routing.logits, 1);
  routing.experts = SelectExperts(routing.logits.detach(), options.k);
  const at::Tensor columns = routing.experts.clamp_min(0);
  routing.weights = Normalizes(options) ? at::softmax(routing.logits.gather(1, columns), 1)
                                        : routing.probabilities.gather(1, columns);
  return routing;
}

}  // namespace plait::moe
