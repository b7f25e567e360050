#include "models/rowwise/cross_entropy.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <cstdint>

#include "base/parallel_for.h"
#include "models/rowwise/cuda/cross_entropy.h"
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

bool HasCudaKernels(const at::Tensor& logits) {
  const at::ScalarType type = logits.scalar_type();
  return logits.is_cuda() && logits.layout() == at::kStrided && cuda::HasCrossEntropy() &&
         (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf);
}

cuda::LogitRows OnDevice(const at::Tensor& logits, const at::Tensor& targets) {
  const c10::impl::VirtualGuardImpl device(logits.device().type());
  const at::ScalarType type = logits.scalar_type();
  return {.type = type == at::kFloat      ? cuda::ElementType::kFloat32
                  : type == at::kBFloat16 ? cuda::ElementType::kBFloat16
                                          : cuda::ElementType::kFloat16,
          .rows = logits.size(0),
          .classes = logits.size(1),
          .logits = logits.const_data_ptr(),
          .targets = targets.const_data_ptr<std::int64_t>(),
          .stream = device.getStreamNativeHandle(device.getStream(logits.device()))};
}

void CheckStarted(const char* error) {
  TORCH_CHECK(error == nullptr, "the kernel of cross entropies: ", error == nullptr ? "" : error);
}

void ForwardOnDevice(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& losses,
                     const at::Tensor& moments) {
  const c10::DeviceGuard guard(logits.device());
  auto* const largest = MutableDataOf<float>(moments);
  CheckStarted(cuda::CrossEntropyForward(OnDevice(logits, targets), MutableDataOf<float>(losses), largest,
                                         largest + logits.size(0)));
}

void BackwardOnDevice(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& moments,
                      const at::Tensor& scale, const at::Tensor& of_logits) {
  const c10::DeviceGuard guard(logits.device());
  const auto* const largest = DataOf<float>(moments);
  CheckStarted(cuda::CrossEntropyBackward(OnDevice(logits, targets), largest, largest + logits.size(0),
                                          DataOf<float>(scale), of_logits.mutable_data_ptr()));
}

}  // namespace

bool HasCrossEntropyRows(const at::Tensor& logits) { return HasOwnKernels(logits) || HasCudaKernels(logits); }

void CrossEntropyRows(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& losses,
                      const at::Tensor& moments) {
  if (logits.is_cuda()) return ForwardOnDevice(logits, targets, losses, moments);
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
                                    const at::Tensor& moments, const at::Tensor& scale) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1);
  const at::Tensor of_logits = at::empty_like(logits);
  if (logits.is_cuda()) {
    BackwardOnDevice(logits, targets, moments, scale, of_logits);
    return of_logits;
  }
  WithType(logits, [&]<typename T>(T) {
    const CrossEntropyBackward<T> pass{.width = classes,
                                       .logits = DataOf<T>(logits),
                                       .targets = targets.const_data_ptr<std::int64_t>(),
                                       .largest = DataOf<float>(moments),
                                       .inverse_sum = DataOf<float>(moments) + rows,
                                       .scale = scale.item<float>(),
                                       .of_logits = MutableDataOf<T>(of_logits)};
    ParallelFor(rows, classes, [&](std::int64_t first, std::int64_t last) {
      UsableRows<T>()->cross_entropy_backward(pass, first, last);
    });
  });
  return of_logits;
}

}  // namespace plait::rowwise
