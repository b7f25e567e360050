#include "parallel/dropout/dropout.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/parallel_for.h"
#include "parallel/dropout/random_numbers.h"

namespace plait::dropout {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// At most 2^32 - 1, which a probability next to 1 would be rounded beyond.
std::uint32_t ThresholdOf(double probability) {
  constexpr long long kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(std::llround(std::ldexp(probability, 32)), kMost));
}

double ScaleOf(double probability) { return 1 / (1 - probability); }

// `column(j)`: index of column j in the whole tensor. `scale` is float for half-precision types: rounded to T it would
// bias all results.
template <typename T, typename Scale, typename Column>
void ScaleRow(const T* in, T* out, std::int64_t columns, std::uint64_t row, std::uint64_t key,
              std::uint32_t threshold, Scale scale, const Column& column) {
  for (std::int64_t j = 0; j < columns; ++j) {
    const bool kept = RandomBits(key, row + static_cast<std::uint64_t>(column(j))) >= threshold;
    out[j] = kept ? static_cast<T>(static_cast<Scale>(in[j]) * scale) : T(0);
  }
}

at::Tensor OnProcessor(const at::Tensor& x, const Mask& mask, const Elements& elements) {
  const at::Tensor in = x.contiguous(), rows = elements.row_indices.to(at::kCPU, at::kLong).contiguous();
  at::Tensor out = at::empty_like(in);
  const std::int64_t columns = in.size(1);
  const std::uint64_t key = KeyOf(mask.seed);
  const std::uint32_t threshold = ThresholdOf(mask.probability);
  const std::int64_t* row_index = rows.const_data_ptr<std::int64_t>();
  const bool listed = elements.column_indices.defined();
  const at::Tensor listed_columns =
      listed ? elements.column_indices.to(at::kCPU, at::kLong).contiguous() : at::Tensor();
  const std::int64_t* column_index = listed ? listed_columns.const_data_ptr<std::int64_t>() : nullptr;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, in.scalar_type(), "Dropout", [&] {
    const scalar_t* from = in.const_data_ptr<scalar_t>();
    scalar_t* to = out.mutable_data_ptr<scalar_t>();
    ParallelFor(in.size(0), columns, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto row = static_cast<std::uint64_t>(row_index[i] * elements.whole_columns);
        const auto scale = [&](const auto& column) {
          ScaleRow(from + i * columns, to + i * columns, columns, row, key, threshold,
                   static_cast<at::opmath_type<scalar_t>>(ScaleOf(mask.probability)), column);
        };
        if (listed) {
          scale([column_index](std::int64_t j) { return column_index[j]; });
        } else {
          scale([first = elements.first_column](std::int64_t j) { return first + j; });
        }
      }
    });
  });
  return out;
}

at::Tensor Scaled(const at::Tensor& x, const Mask& mask, const Elements& elements) {
  if (x.is_cpu()) return OnProcessor(x, mask, elements);
  if (x.is_meta()) return at::empty_like(x, at::MemoryFormat::Contiguous);
  return (x * ScaleOf(mask.probability)).masked_fill_(internal::Kept(x, mask, elements).logical_not_(), 0);
}

struct DropoutFunction : torch::autograd::Function<DropoutFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Mask& mask,
                            const Elements& elements) {
    context->save_for_backward({elements.row_indices, elements.column_indices});
    context->saved_data["probability"] = mask.probability;
    context->saved_data["seed"] = static_cast<std::int64_t>(mask.seed);
    context->saved_data["whole_columns"] = elements.whole_columns;
    context->saved_data["first_column"] = elements.first_column;
    return Scaled(x, mask, elements);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto& saved = context->saved_data;
    const Mask mask = {saved["probability"].toDouble(), static_cast<std::uint64_t>(saved["seed"].toInt())};
    const variable_list indices = context->get_saved_variables();
    const Elements elements = {indices[0], saved["whole_columns"].toInt(), saved["first_column"].toInt(),
                               indices[1]};
    return {apply(gradients[0], mask, elements), {}, {}};
  }
};

}  // namespace

namespace internal {

at::Tensor Kept(const at::Tensor& x, const Mask& mask, const Elements& elements) {
  const at::Tensor rows = elements.row_indices.to(x.device(), at::kLong);
  const at::Tensor columns = elements.column_indices.defined()
                                 ? elements.column_indices.to(rows.options())
                                 : at::arange(x.size(1), rows.options()) + elements.first_column;
  const at::Tensor bits = RandomBits(KeyOf(mask.seed), rows.unsqueeze(1) * elements.whole_columns + columns);
  return bits.ge(static_cast<std::int64_t>(ThresholdOf(mask.probability)));
}

}  // namespace internal

at::Tensor Dropout(const at::Tensor& x, const Mask& mask, const Elements& elements) {
  PLAIT_CHECK(mask.probability >= 0 && mask.probability < 1) << "probability " << mask.probability;
  PLAIT_CHECK(x.dim() == 2 && elements.row_indices.sizes() == x.sizes().slice(0, 1))
      << "x of shape " << x.sizes() << " with " << elements.row_indices.sizes() << " row indices";
  PLAIT_CHECK(!elements.column_indices.defined() || elements.column_indices.numel() == x.size(1))
      << "x of shape " << x.sizes() << " with " << elements.column_indices.numel() << " column indices";
  if (mask.probability == 0) return x;
  return DropoutFunction::apply(x, mask, elements);
}

at::Tensor DropProbabilities(const at::Tensor& probabilities, const ProbabilityDropout& dropout,
                             const at::Tensor& query_positions, const at::Tensor& key_positions,
                             std::int64_t length) {
  const std::int64_t batch = probabilities.size(0), heads = probabilities.size(1);
  const auto options = at::TensorOptions(at::kLong).device(probabilities.device());
  const auto numbers = [&](std::int64_t first, std::int64_t count) {
    return at::arange(first, first + count, options);
  };
  const at::Tensor samples = numbers(dropout.first_sample, batch).view({-1, 1, 1});
  const at::Tensor all_heads = numbers(dropout.first_head, heads).view({1, -1, 1});
  const at::Tensor rows =
      (samples * dropout.whole_heads + all_heads) * length + query_positions.to(options.device());
  return Dropout(probabilities.reshape({-1, probabilities.size(3)}), dropout.mask,
                 {rows.flatten(), length, 0, key_positions})
      .view(probabilities.sizes());
}

}  // namespace plait::dropout
