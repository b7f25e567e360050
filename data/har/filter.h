// The filters of the UCI HAR archive's description: median of three, and causal Butterworth low-pass.
//
//   const Filter low_pass = ButterworthLowPass(3, 20.0, 50.0);
//   std::vector<double> smooth = Apply(low_pass, MedianOfThree(signal));
#ifndef PLAIT_DATA_HAR_FILTER_H_
#define PLAIT_DATA_HAR_FILTER_H_

#include <vector>

#include "absl/types/span.h"

namespace plait::data {

// H(z) = sum b[k] z^-k / sum a[k] z^-k, a[0] = 1; b and a have order + 1 entries.
struct Filter {
  std::vector<double> b, a;
};

// Maximally flat in the pass band, half power at cutoff_hz, unit gain at 0 Hz. Analogue prototype with poles
// exp(i pi (2k + order + 1) / (2 order)), cut-off pre-warped, bilinear transform (Oppenheim and Schafer,
// Discrete-Time Signal Processing, section 7.2). 0 < cutoff_hz < sample_rate_hz / 2.
Filter ButterworthLowPass(int order, double cutoff_hz, double sample_rate_hz);

// Applies the causal filter, with zero initial state, as scipy.signal.lfilter(b, a, signal).
std::vector<double> Apply(const Filter& filter, absl::Span<const double> signal);

// y[i] = median(x[i-1], x[i], x[i+1]), zero-padded, as scipy.signal.medfilt(x, 3).
std::vector<double> MedianOfThree(absl::Span<const double> signal);

}  // namespace plait::data

#endif  // PLAIT_DATA_HAR_FILTER_H_
