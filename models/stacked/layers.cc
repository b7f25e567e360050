#include "models/stacked/layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/check.h"

namespace plait::stacked {
namespace {

// The distance in elements from each tensor to the next, if one view can represent them all.
std::optional<std::int64_t> Spacing(const std::vector<at::Tensor>& tensors) {
  const at::Tensor& first = tensors[0];
  if (at::GradMode::is_enabled()) return std::nullopt;  // a view would not be recorded
  const std::int64_t spacing = tensors.size() < 2 ? 0 : tensors[1].storage_offset() - first.storage_offset();
  if (spacing < 0) return std::nullopt;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& t = tensors[i];
    const bool fits = t.is_alias_of(first) && t.sizes() == first.sizes() && t.strides() == first.strides() &&
                      t.scalar_type() == first.scalar_type() &&
                      t.storage_offset() == first.storage_offset() + static_cast<std::int64_t>(i) * spacing;
    if (!fits) return std::nullopt;
  }
  return spacing;
}

bool IsOne(const at::Tensor& stacked) { return !stacked.defined() || stacked.stride(0) == 0; }

std::optional<at::Tensor> Optional(const at::Tensor& t) {
  return t.defined() ? std::optional<at::Tensor>(t) : std::nullopt;
}

// (n, width) against (n, ..., width).
at::Tensor AlongRows(const at::Tensor& t, const at::Tensor& x) {
  std::vector<std::int64_t> sizes(x.dim(), 1);
  sizes.front() = t.size(0);
  sizes.back() = t.size(1);
  return t.view(sizes);
}

at::Tensor Convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    std::int64_t padding, std::int64_t groups) {
  if (weight.dim() == 3) return at::conv1d(x, weight, Optional(bias), 1, padding, 1, groups);
  return at::conv2d(x, weight, Optional(bias), 1, padding, 1, groups);
}

}  // namespace

at::Tensor Stacked(const std::vector<at::Tensor>& tensors) {
  PLAIT_CHECK(!tensors.empty()) << "nothing to stack";
  if (!tensors[0].defined()) return {};
  const std::optional<std::int64_t> spacing = Spacing(tensors);
  if (!spacing.has_value()) return at::stack(tensors);
  std::vector<std::int64_t> sizes = tensors[0].sizes().vec(), strides = tensors[0].strides().vec();
  sizes.insert(sizes.begin(), static_cast<std::int64_t>(tensors.size()));
  strides.insert(strides.begin(), *spacing);
  return tensors[0].as_strided(sizes, strides);
}

at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (IsOne(weight) && IsOne(bias)) {
    return at::linear(x, weight[0], bias.defined() ? Optional(bias[0]) : std::nullopt);
  }
  const at::Tensor rows = x.reshape({x.size(0), -1, x.size(-1)}), right = weight.transpose(1, 2);
  const at::Tensor product =
      bias.defined() ? at::baddbmm(bias.unsqueeze(1), rows, right) : at::bmm(rows, right);
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(1);
  return product.view(sizes);
}

at::Tensor Convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       std::int64_t padding) {
  const std::int64_t n = x.size(0), batch = x.size(1), out = weight.size(1);
  if (IsOne(weight) && IsOne(bias)) {
    const at::Tensor of_all = bias.defined() ? bias[0] : bias;
    return Convolve(x.flatten(0, 1), weight[0], of_all, padding, 1).unflatten(0, {n, batch});
  }
  const at::Tensor samples = x.transpose(0, 1).flatten(1, 2);
  const at::Tensor of_groups = bias.defined() ? bias.reshape({n * out}) : bias;
  return Convolve(samples, weight.flatten(0, 1), of_groups, padding, n)
      .unflatten(1, {n, out})
      .transpose(0, 1);
}

at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  const at::Tensor normal = at::layer_norm(x, {x.size(-1)}, {}, {}, epsilon), scale = AlongRows(weight, x);
  return bias.defined() ? at::addcmul(AlongRows(bias, x), normal, scale) : normal * scale;
}

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return at::rms_norm(x, {x.size(-1)}, {}, epsilon) * AlongRows(weight, x);
}

at::Tensor AddScaled(const at::Tensor& u, const at::Tensor& f, absl::Span<const double> scale) {
  PLAIT_CHECK(static_cast<std::int64_t>(scale.size()) == u.size(0))
      << scale.size() << " scales for states of shape " << u.sizes();
  const bool one = std::adjacent_find(scale.begin(), scale.end(), std::not_equal_to<>()) == scale.end();
  if (one) return at::add(u, f, scale[0]);
  std::vector<std::int64_t> sizes(u.dim(), 1);
  sizes.front() = u.size(0);
  const at::Tensor scales =
      at::from_blob(const_cast<double*>(scale.data()), sizes, at::kDouble).to(u.scalar_type());
  if (u.is_cpu() || u.is_meta()) return at::addcmul(u, f, scales.to(u.device()));
  // Pinned: else the host would wait for the device.
  return at::addcmul(u, f, scales.pin_memory().to(u.device(), u.scalar_type(), /*non_blocking=*/true));
}

}  // namespace plait::stacked
