// Cross entropies of rows of logits on a CUDA device: models/rowwise/cross_entropy.h says what is computed. Private to it.
//
// Forward reads the logits once (Milakov and Gimelshein, 2018, "Online normalizer calculation for softmax"), backward reads
// and writes them once, so that a pass takes the time of its memory traffic. LibTorch's operators convert logits in half
// precision to float32 first.
#ifndef PLAIT_MODELS_ROWWISE_CUDA_CROSS_ENTROPY_H_
#define PLAIT_MODELS_ROWWISE_CUDA_CROSS_ENTROPY_H_

#include <cstdint>

namespace plait::rowwise::cuda {

// False if the build found no CUDA: then the functions below must not be called.
bool HasCrossEntropy();

enum class ElementType { kFloat32, kBFloat16, kFloat16 };

// Addresses of device memory, and the stream (cudaStream_t) of the kernels. The device must be the current one.
struct LogitRows {
  ElementType type;
  std::int64_t rows, classes;
  const void* logits;           // (rows, classes), aligned for its type
  const std::int64_t* targets;  // (rows); one that is no class is an assertion of the kernel
  void* stream;
};

// Each starts one kernel and does not wait for it. Returns nullptr, or CUDA's message if it could not be started.
const char* CrossEntropyForward(const LogitRows& in, float* losses, float* largest, float* inverse_sum);
// `scale` is on the device, too.
const char* CrossEntropyBackward(const LogitRows& in, const float* largest, const float* inverse_sum,
                                 const float* scale, void* of_logits);

}  // namespace plait::rowwise::cuda

#endif  // PLAIT_MODELS_ROWWISE_CUDA_CROSS_ENTROPY_H_
