// An Euler step of a convolutional network on arrays, and its adjoint, as kernels of a processor family compute them:
//
//   out = u + scale s(w2 * s(w1 * u + b1) + b2)
//
// with two convolutions of width 3 that keep channels, rows and columns, and s(x) = max(x, 0) (Haber and Ruthotto,
// Inverse Problems 2017). An image passes through the whole step while it is in the cache. An image's results
// are bitwise identical in any batch and in any range of images. Inf and NaN propagate as in LibTorch's operators.
#ifndef PLAIT_MODELS_ODENET_KERNELS_STEP_H_
#define PLAIT_MODELS_ODENET_KERNELS_STEP_H_

#include <cstdint>
#include <vector>

namespace plait::odenet {

// The layout of a zero-padded channel: a zero after each row, a row of zeros and one zero before the image, the same
// and a fill to whole vectors after it. A 3 x 3 convolution is then a sum over nine shifts of the whole plane.
struct Plane {
  static constexpr std::int64_t kMostLanes = 16;

  std::int64_t rows = 0;
  std::int64_t columns = 0;

  std::int64_t stride() const { return columns + 1; }         // from row to row
  std::int64_t first() const { return stride() + 1; }         // where pixel (0, 0) is
  std::int64_t positions() const { return rows * stride(); }  // from there on, with the zero after each row
  std::int64_t whole_vectors() const { return (positions() + kMostLanes - 1) / kMostLanes * kMostLanes; }
  std::int64_t size() const { return whole_vectors() + 2 * first(); }
};

struct StepForward {
  std::int64_t channels = 0;
  Plane plane;
  float scale = 0;
  const float* weight_1 = nullptr;  // (channels, channels, 3, 3)
  const float* bias_1 = nullptr;    // (channels)
  const float* weight_2 = nullptr;
  const float* bias_2 = nullptr;
  const float* u = nullptr;  // (images, channels, rows, columns)
  float* out = nullptr;
  // Outputs for the adjoint, or null. May be uninitialized.
  float* middle = nullptr;  // planes of s(w1 * u + b1): (images, channels, plane.size())
  std::int8_t* active =
      nullptr;  // -1 where the second s is active, else 0: (images, channels, plane.whole_vectors())

  std::int64_t scratch() const { return 3 * channels * plane.size(); }
};

struct StepBackward {
  std::int64_t channels = 0;
  Plane plane;
  float scale = 0;
  std::int64_t images = 0;
  const float* weight_1 = nullptr;
  const float* weight_2 = nullptr;
  const float* u = nullptr;
  const float* middle = nullptr;
  const std::int8_t* active = nullptr;
  const float* of_out = nullptr;
  float* of_u = nullptr;  // or null
  // Sums over the images of each group, (groups, parameters()): of weight_1, bias_1, weight_2, bias_2. Or null.
  float* of_parameters = nullptr;

  // Groups of images do not depend on the number of threads; the last may be smaller.
  static constexpr std::int64_t kGroup = 8;
  std::int64_t groups() const { return (images + kGroup - 1) / kGroup; }
  std::int64_t parameters() const { return 2 * (9 * channels + 1) * channels; }
  std::int64_t scratch() const { return 5 * channels * plane.size() + parameters() * Plane::kMostLanes; }
};

struct StepKernels {
  const char* name = "";
  // Images (backward: groups) [first, last). `scratch`: step.scratch() floats, zero at the first call; later calls
  // with the same channels and plane may reuse it as it is.
  void (*forward)(const StepForward& step, std::int64_t first, std::int64_t last, float* scratch) = nullptr;
  void (*backward)(const StepBackward& step, std::int64_t first, std::int64_t last, float* scratch) = nullptr;
};

// The kernels of this CPU, fastest first; never empty.
std::vector<const StepKernels*> UsableSteps();

// The kernels of one family each; call them only on a CPU with its instructions.
const StepKernels* Avx512Steps();
const StepKernels* Avx2Steps();
const StepKernels* PortableSteps();

}  // namespace plait::odenet

#endif  // PLAIT_MODELS_ODENET_KERNELS_STEP_H_
