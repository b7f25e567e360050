#include "parallel/moe/elementwise.h"

#include <ATen/Dispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/special_ndtr.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "base/parallel_for.h"
#include "base/vector_loops.h"

namespace plait::moe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// float32 elements are processed in blocks of this size; the last block of a tensor is padded.
constexpr std::int64_t kBlock = 64;

__attribute__((always_inline)) inline float ExpOfNegative(float x) {
  const float bounded = x < -87 ? -87 : x;  // exp(-87) is 1.6e-38; NaN stays
  constexpr float kRounds = 12582912;       // 1.5 * 2^23: adding and subtracting it rounds to an integer
  const float shifted = bounded * 1.44269504f + kRounds, n = shifted - kRounds;
  const float r = bounded - n * 0.693359375f + n * 2.12194440e-4f;  // log(2), in two parts
  // exp(r) on |r| < log(2) / 2 (Cody and Waite; the polynomial of Moshier's Cephes).
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float mantissa = p * (r * r) + r + 1;
  const std::int32_t exponent =
      __builtin_bit_cast(std::int32_t, shifted) - __builtin_bit_cast(std::int32_t, kRounds) + 127;
  return mantissa * __builtin_bit_cast(float, exponent << 23);
}

PLAIT_VECTOR_CLONES void SoftplusOfBlock(const float* __restrict x, float* __restrict y) {
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const float e = ExpOfNegative(-__builtin_fabsf(x[i]));
    // log(1 + e) = 2 atanh(s)
    const float s = e / (2 + e), z = s * s;
    float p = 2.0f / 15;
    p = p * z + 2.0f / 13;
    p = p * z + 2.0f / 11;
    p = p * z + 2.0f / 9;
    p = p * z + 2.0f / 7;
    p = p * z + 2.0f / 5;
    p = p * z + 2.0f / 3;
    y[i] = (x[i] > 0 ? x[i] : 0) + s * (2 + z * p);
  }
}

// erfc by a Chebyshev fit of relative error 1.2e-7 (Press et al., "Numerical Recipes", 2nd edition, section 6.2).
PLAIT_VECTOR_CLONES void NormalCdfOfBlock(const float* __restrict x, float* __restrict y) {
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const float z = __builtin_fabsf(x[i]) * 0.70710678f, t = 1 / (1 + 0.5f * z);
    float p = 0.17087277f;
    p = p * t - 0.82215223f;
    p = p * t + 1.48851587f;
    p = p * t - 1.13520398f;
    p = p * t + 0.27886807f;
    p = p * t - 0.18628806f;
    p = p * t + 0.09678418f;
    p = p * t + 0.37409196f;
    p = p * t + 1.00002368f;
    p = p * t - 1.26551223f;
    const float tail = 0.5f * t * ExpOfNegative(p - z * z);
    y[i] = x[i] < 0 ? tail : 1 - tail;
  }
}

using OfBlock = void (*)(const float*, float*);
void MapBlocks(const float* from, float* to, std::int64_t count, OfBlock function) {
  ParallelFor((count + kBlock - 1) / kBlock, kBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block * kBlock;
      if (first + kBlock <= count) {
        function(from + first, to + first);
        continue;
      }
      float in[kBlock] = {}, out[kBlock];
      std::copy(from + first, from + count, in);
      function(in, out);
      std::copy(out, out + (count - first), to + first);
    }
  });
}

// Functions and their derivatives. `kOfBlock`: a faster version of Value for float32 blocks, or null.
struct SigmoidOf {
  static constexpr OfBlock kOfBlock = nullptr;
  template <typename T>
  static T Value(T x) {
    return 1 / (1 + std::exp(-x));
  }
  template <typename T>
  static T Derivative(T x) {
    const T y = Value(x);
    return y * (1 - y);
  }
};

struct SoftplusOf {
  static constexpr OfBlock kOfBlock = SoftplusOfBlock;
  template <typename T>
  static T Value(T x) {
    const T e = std::exp(-std::abs(x)), rounded = 1 + e;
    // log(1 + e), three times as fast as log1p: the quotient corrects the rounding of 1 + e.
    const T tail = rounded == 1 ? e : std::log(rounded) * (e / (rounded - 1));
    return std::max(x, T(0)) + tail;
  }
  template <typename T>
  static T Derivative(T x) {
    return SigmoidOf::Value(x);
  }
};

struct NormalCdfOf {
  static constexpr OfBlock kOfBlock = NormalCdfOfBlock;
  template <typename T>
  static T Value(T x) {
    return std::erfc(-x * T(std::numbers::sqrt2 / 2)) / 2;
  }
  template <typename T>
  static T Derivative(T x) {
    return std::exp(-x * x / 2) * T(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  }
};

// Exponentials cost more than additions.
constexpr std::int64_t kNumbersOfFunction = 2;

template <typename T, typename F>
void Map(const T* from, T* to, std::int64_t count, const F& function) {
  ParallelFor(count, kNumbersOfFunction, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = function(i, from[i]);
  });
}

template <typename Of>
struct Recorded : torch::autograd::Function<Recorded<Of>> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    const at::Tensor in = x.contiguous();
    context->save_for_backward({in});
    at::Tensor out = at::empty_like(in);
    if (Of::kOfBlock != nullptr && in.scalar_type() == at::kFloat) {
      MapBlocks(in.const_data_ptr<float>(), out.mutable_data_ptr<float>(), in.numel(), Of::kOfBlock);
      return out;
    }
    AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "Elementwise", [&] {
      Map(in.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>(), in.numel(),
          [](std::int64_t, scalar_t value) { return Of::Value(value); });
    });
    return out;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(),
                "Sigmoid, Softplus, NormalCdf: their gradients cannot be differentiated again");
    const at::Tensor in = context->get_saved_variables()[0], gradient = gradients[0].contiguous();
    at::Tensor out = at::empty_like(in);
    AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "Elementwise", [&] {
      const scalar_t* g = gradient.const_data_ptr<scalar_t>();
      Map(in.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>(), in.numel(),
          [g](std::int64_t i, scalar_t value) { return g[i] * Of::Derivative(value); });
    });
    return {out};
  }
};

}  // namespace

at::Tensor Sigmoid(const at::Tensor& x) {
  return x.is_cpu() ? Recorded<SigmoidOf>::apply(x) : at::sigmoid(x);
}

at::Tensor Softplus(const at::Tensor& x) {
  return x.is_cpu() ? Recorded<SoftplusOf>::apply(x) : at::softplus(x);
}

at::Tensor NormalCdf(const at::Tensor& x) {
  return x.is_cpu() ? Recorded<NormalCdfOf>::apply(x) : at::special_ndtr(x);
}

}  // namespace plait::moe
