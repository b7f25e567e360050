#include "models/rowwise/cross_entropy.h"

#include <ATen/ops/empty_like.h>
#include <c10/util/Exception.h>

#include <cstdint>

#include "base/parallel_for.h"
#include "models/rowwise/own_kernels.h"

namespace plait::rowwise {
namespace {

void CheckTargets(const at::Tensor& targets, std::int64_t classes) {
  const auto* const target = targets.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < targets.numel(); ++i) {
    TORCH_CHECK_INDEX(target[i] >= 0 && target[i] < classes, "target ", target[i], " of row ", i,
                      "; expected 0 to ", classes - 1);
  }
}

}  // namespace

bool HasCrossEntropyRows(const at::Tensor& logits) { return HasOwnKernels(logits); }

void CrossEntropyRows(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& losses,
                      const at::Tensor& moments) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1);
  WithType(logits, [&]<typename T>(T) {
    CheckTargets(targets, classes);
    const CrossEntropyForward<T> pass{.width = classes,
                                      .logits = DataOf<T>(logits),
                                      .targets = targets.const_data_ptr<std::int64_t>(),
                                      .losses = MutableDataOf<float>(losses),
                                      .largest = MutableDataOf<float>(moments),
                                      .inverse_sum = MutableDataOf<float>(moments) + rows};
    ParallelFor(rows, classes, [&](std::int64_t first, std::int64_t last) {
      UsableRows<T>()->cross_entropy(pass, first, last);
    });
  });
}

at::Tensor CrossEntropyRowsGradient(const at::Tensor& logits, const at::Tensor& targets,
                                    const at::Tensor& moments, double scale) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1);
  const at::Tensor of_logits = at::empty_like(logits);
  WithType(logits, [&]<typename T>(T) {
    const CrossEntropyBackward<T> pass{.width = classes,
                                       .logits = DataOf<T>(logits),
                                       .targets = targets.const_data_ptr<std::int64_t>(),
                                       .largest = DataOf<float>(moments),
                                       .inverse_sum = DataOf<float>(moments) + rows,
                                       .scale = static_cast<float>(scale),
                                       .of_logits = MutableDataOf<T>(of_logits)};
    ParallelFor(rows, classes, [&](std::int64_t first, std::int64_t last) {
      UsableRows<T>()->cross_entropy_backward(pass, first, last);
    });
  });
  return of_logits;
}

}  // namespace plait::rowwise
