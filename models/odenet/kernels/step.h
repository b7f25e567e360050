// An Euler step of a convolutional network on arrays, and its adjoint, as kernels of a processor family compute them:
//
//   out = u + scale s(w2 * s(w1 * u + b1) + b2)
//
// with two convolutions of width 3 that keep channels, rows and columns, and s(x) = max(x, 0) (Haber and Ruthotto,
// Inverse Problems 2017). An image passes through the whole step while it is in the cache. Every image's numbers have
// the same bits in any batch and in any range of images. What is not finite stays so, as in LibTorch's operators.
#ifndef PLAIT_MODELS_ODENET_KERNELS_STEP_H_
#define PLAIT_MODELS_ODENET_KERNELS_STEP_H_

#include <cstdint>
#include <vector>

namespace plait::odenet {

// A channel of an image among zeros: one behind each row, a row and a zero in front, as many and those that fill the
// last vector behind. A convolution of width 3 is then a sum over nine shifts of the whole plane.
struct Plane {
  static constexpr std::int64_t kMostLanes = 16;

  std::int64_t rows = 0;
  std::int64_t columns = 0;

  std::int64_t stride() const { return columns + 1; }         // from row to row
  std::int64_t first() const { return stride() + 1; }         // where pixel (0, 0) is
  std::int64_t positions() const { return rows * stride(); }  // from there on, with the zero behind each row
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
  // For the adjoint, or none. Uninitialised memory will do.
  float* middle = nullptr;  // planes of s(w1 * u + b1): (images, channels, plane.size())
  std::int8_t* active =
      nullptr;  // where the second s is x: -1, else 0: (images, channels, plane.whole_vectors())

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
  float* of_u = nullptr;  // or none
  // Sums over the images of each group, (groups, parameters()): of weight_1, bias_1, weight_2, bias_2. Or none.
  float* of_parameters = nullptr;

  // Groups of images do not depend on the number of threads; the last may be smaller.
  static constexpr std::int64_t kGroup = 8;
  std::int64_t groups() const { return (images + kGroup - 1) / kGroup; }
  std::int64_t parameters() const { return 2 * (9 * channels + 1) * channels; }
  std::int64_t scratch() const { return 5 * channels * plane.size() + parameters() * Plane::kMostLanes; }
};

struct StepKernels {
  const char* name = "";
  // Images, or groups, first to last - 1. `scratch`: step.scratch() zeros; a later call for such a step may have it as the
  // first has left it.
  void (*forward)(const StepForward& step, std::int64_t first, std::int64_t last, float* scratch) = nullptr;
  void (*backward)(const StepBackward& step, std::int64_t first, std::int64_t last, float* scratch) = nullptr;
};

// Those of this processor, the fastest first; never empty.
std::vector<const StepKernels*> UsableSteps();

// Of one family each; to be called on a processor that has its instructions.
const StepKernels* Avx512Steps();
const StepKernels* Avx2Steps();
const StepKernels* PortableSteps();

}  // namespace plait::odenet

#endif  // PLAIT_MODELS_ODENET_KERNELS_STEP_H_
