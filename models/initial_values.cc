#include "models/initial_values.h"

#include <ATen/ops/empty.h>

#include <cmath>

#include "models/block_model.h"

namespace plait::models {

void DrawNormal(const at::Tensor& parameter, const Placement& placement, double deviation, double cut) {
  if (!parameter.defined() || parameter.is_meta()) return;
  const bool split = !placement.boxes.empty();
  at::Tensor numbers = at::empty(split ? at::IntArrayRef(placement.shape) : parameter.sizes(), at::kFloat);
  if (cut > 0) {
    const double mass = std::erf(cut / std::sqrt(2.0));
    numbers.uniform_(-mass, mass).erfinv_().mul_(deviation * std::sqrt(2.0));
  } else {
    numbers.normal_(0, deviation);
  }
  parameter.detach().copy_(split ? LocalPart(numbers, placement) : numbers);
}

void Fill(const at::Tensor& parameter, double value) {
  if (parameter.defined() && !parameter.is_meta()) parameter.detach().fill_(value);
}

}  // namespace plait::models
