// Options of an OdeNet. Plain data.
#ifndef PLAIT_MODELS_ODENET_OPTIONS_H_
#define PLAIT_MODELS_ODENET_OPTIONS_H_

#include <cstdint>
#include <vector>

namespace plait::odenet {

enum class Form {
  kDense,   // inputs (batch, features)
  kConv1d,  // (batch, bands): spectra
  kConv2d,  // (batch, 1, rows, columns): grayscale images
};

// kSmoothRelu: ReLU smoothed by a parabola for |x| < 0.1, so that zero weights have a gradient (Guenther et al., SIMODS
// 2020, section 4).
enum class Activation { kTanh, kRelu, kSmoothRelu };

// How the layers' parameters follow from the control points.
enum class TimeWeights {
  kPerLayer,   // each layer has its own
  kPiecewise,  // layers / controls consecutive layers share a control point
  kSpline,     // linear between control points, which are equally spaced over [0, final_time]
};

struct OdeNetOptions {
  Form form = Form::kDense;
  std::vector<std::int64_t> sample = {2};  // shape of a sample: {features}, {bands}, or {rows, columns}
  std::int64_t channels = 8;
  std::int64_t layers = 32;
  double final_time = 5;  // T: a step is T / layers (ODENet); 0: a step is 1 (ResNet)
  Activation activation = Activation::kTanh;
  TimeWeights time_weights = TimeWeights::kPerLayer;
  std::int64_t controls = 0;  // kPiecewise: a divisor of layers; kSpline: at least 2; else ignored
  std::int64_t hidden = 0;    // width of the closing part's hidden layer; 0: none
  std::int64_t classes = 5;
  // Standard deviation of the normal initial parameters of the layers; negative: as torch::nn::Linear and Conv2d.
  double initial_weights = -1;
  double time_tikhonov = 0;  // beta of OdeNet::TimeTikhonov()

  double step() const { return final_time > 0 ? final_time / static_cast<double>(layers) : 1; }
  // Number of parameter sets in time, and the time between two of them.
  std::int64_t points() const { return time_weights == TimeWeights::kPerLayer ? layers : controls; }
  double spacing() const {
    if (time_weights == TimeWeights::kPerLayer) return step();
    const double whole = step() * static_cast<double>(layers);
    return whole / static_cast<double>(time_weights == TimeWeights::kPiecewise ? controls : controls - 1);
  }
};

}  // namespace plait::odenet

#endif  // PLAIT_MODELS_ODENET_OPTIONS_H_
