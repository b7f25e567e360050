#include "data/har/filter.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "base/check.h"

namespace plait::data {
namespace {

using Complex = std::complex<double>;

// Coefficients, highest power first, of the monic polynomial with these roots.
std::vector<double> PolynomialOf(const std::vector<Complex>& roots) {
  std::vector<Complex> coefficients{1.0};
  for (const Complex& root : roots) {
    coefficients.push_back(0.0);
    for (std::size_t i = coefficients.size() - 1; i > 0; --i) coefficients[i] -= root * coefficients[i - 1];
  }
  std::vector<double> real(coefficients.size());
  std::transform(coefficients.begin(), coefficients.end(), real.begin(),
                 [](const Complex& c) { return c.real(); });
  return real;
}

}  // namespace

Filter ButterworthLowPass(int order, double cutoff_hz, double sample_rate_hz) {
  PLAIT_CHECK(order > 0 && cutoff_hz > 0 && cutoff_hz < sample_rate_hz / 2)
      << cutoff_hz << " Hz, order " << order;
  // In units of twice the sample rate the bilinear transform is s -> z = (1 + s) / (1 - s).
  const double warped = std::tan(std::numbers::pi * cutoff_hz / sample_rate_hz);
  std::vector<Complex> poles;
  Complex gain = 1.0;
  for (int k = 0; k < order; ++k) {
    const Complex s = warped * std::polar(1.0, std::numbers::pi * (2 * k + order + 1) / (2.0 * order));
    poles.push_back((1.0 + s) / (1.0 - s));
    gain *= warped / (1.0 - s);
  }
  Filter filter{PolynomialOf(std::vector<Complex>(order, -1.0)), PolynomialOf(poles)};
  for (double& b : filter.b) b *= gain.real();
  return filter;
}

std::vector<double> Apply(const Filter& filter, absl::Span<const double> signal) {
  const std::size_t order = filter.a.size() - 1;
  std::vector<double> state(order + 1, 0.0), out(signal.size());
  for (std::size_t i = 0; i < signal.size(); ++i) {
    const double x = signal[i];
    const double y = filter.b[0] * x + state[0];
    for (std::size_t k = 0; k < order; ++k)
      state[k] = filter.b[k + 1] * x + state[k + 1] - filter.a[k + 1] * y;
    out[i] = y;
  }
  return out;
}

std::vector<double> MedianOfThree(absl::Span<const double> signal) {
  std::vector<double> out(signal.size());
  for (std::size_t i = 0; i < signal.size(); ++i) {
    const double before = i == 0 ? 0.0 : signal[i - 1];
    const double after = i + 1 == signal.size() ? 0.0 : signal[i + 1];
    out[i] = std::max(std::min(before, signal[i]), std::min(std::max(before, signal[i]), after));
  }
  return out;
}

}  // namespace plait::data
