#include "mgrit/layer_parallel/tensor_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <cstring>

namespace plait::mgrit {
namespace {

at::Tensor OnHost(absl::Span<const std::byte> bytes, const at::Tensor& like) {
  return at::from_blob(const_cast<std::byte*>(bytes.data()), like.sizes(), like.options().device(at::kCPU));
}

}  // namespace

void TensorNorms::Put(std::int64_t slot, const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  const std::size_t index = slots_.size();
  if (index == views_.size()) {
    const at::Tensor larger =
        at::zeros({static_cast<std::int64_t>(2 * index + 16)}, x.options().dtype(at::kDouble));
    if (index > 0) larger.narrow(0, 0, static_cast<std::int64_t>(index)).copy_(norms_);
    norms_ = larger;
    views_ = norms_.unbind();
  }
  at::linalg_vector_norm_out(views_[index], x, 2, at::OptionalIntArrayRef(), false, at::kDouble);
  slots_.push_back(slot);
}

void TensorNorms::Take(absl::Span<double> squares) {
  if (slots_.empty()) return;
  if (norms_.is_meta()) {  // without numbers
    for (const std::int64_t slot : slots_) squares[static_cast<std::size_t>(slot)] = 0;
    return slots_.clear();
  }
  const at::Tensor host = norms_.cpu();
  const double* norms = host.const_data_ptr<double>();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    squares[static_cast<std::size_t>(slots_[i])] = norms[i] * norms[i];
  }
  slots_.clear();
}

void StateOperations<at::Tensor>::Copy(const at::Tensor& x, at::Tensor& y) {
  if (x.numel() == 0 && y.numel() == 0) return;  // such tensors may have no address
  if (x.is_cpu() && x.is_contiguous() && y.is_contiguous() && x.nbytes() == y.nbytes()) {
    std::memcpy(y.data_ptr(), x.const_data_ptr(), x.nbytes());
    return;
  }
  const at::NoGradGuard no_grad;
  y.copy_(x);
}

void StateOperations<at::Tensor>::Combine(double alpha, const at::Tensor& x, double beta, at::Tensor& y) {
  const at::NoGradGuard no_grad;
  if (beta == 0.0) {
    y.zero_();
  } else if (beta != 1.0) {
    y.mul_(beta);
  }
  y.add_(x, alpha);
}

double StateOperations<at::Tensor>::NormSquared(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  const double norm =
      at::linalg_vector_norm(x, 2, at::OptionalIntArrayRef(), false, at::kDouble).item<double>();
  return norm * norm;
}

StateMemory StateOperations<at::Tensor>::Memory(at::Tensor& x) {
  TORCH_CHECK(x.is_contiguous(), "states of the solver must be contiguous, one has sizes ", x.sizes(),
              " and strides ", x.strides());
  return {x.data_ptr(), static_cast<std::int64_t>(x.nbytes()), x.is_cuda() ? x.get_device() : -1};
}

std::int64_t StateOperations<at::Tensor>::PackedBytes(const at::Tensor& x) {
  return static_cast<std::int64_t>(x.nbytes());
}

void StateOperations<at::Tensor>::Pack(const at::Tensor& x, absl::Span<std::byte> bytes) {
  if (x.is_meta() || bytes.empty()) return;
  if (x.is_cpu()) {
    std::memcpy(bytes.data(), x.const_data_ptr(), bytes.size());
  } else {
    OnHost(bytes, x).copy_(x);
  }
}

void StateOperations<at::Tensor>::Unpack(absl::Span<const std::byte> bytes, at::Tensor& x) {
  if (x.is_meta() || bytes.empty()) return;
  if (x.is_cpu()) {
    std::memcpy(x.data_ptr(), bytes.data(), bytes.size());
  } else {
    x.copy_(OnHost(bytes, x));
  }
}

}  // namespace plait::mgrit
