#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/testing/nan_is_infinite.h"
#include "models/gru/kernels/usable_kernels.h"

namespace plait::gru {
namespace {

template <typename T>
class KernelsTest : public ::testing::Test {};
using NumberTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(KernelsTest, NumberTypes);

template <typename T>
std::vector<T> Uniform(std::int64_t count, double bound, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> draw(-bound, bound);
  std::vector<T> values(count);
  for (T& v : values) v = static_cast<T>(draw(engine));
  return values;
}

// Arguments that cover all exponents: both signs, 2^-40 to 2^7.
template <typename T>
std::vector<T> Arguments() {
  std::vector<T> values = Uniform<T>(20000, 12.0, 1);
  for (int e = -40; e <= 7; ++e) {
    for (T m : Uniform<T>(200, 1.0, 100 + e)) values.push_back(std::ldexp(m, e));
  }
  for (double v : {0.0, 88.0, -88.0, 750.0, -750.0, 1e30, -1e30}) values.push_back(static_cast<T>(v));
  return values;
}

// Largest error in units of eps |exact|; results below `tiny` are compared absolutely.
template <typename T, typename F>
double LargestRelativeError(const std::vector<T>& x, const std::vector<T>& y, double tiny, const F& exact) {
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double e = exact(static_cast<long double>(x[i]));
    const long double unit = std::max<long double>(std::abs(e), tiny) * std::numeric_limits<T>::epsilon();
    worst = std::max(worst, base::NanIsInfinite(static_cast<double>(std::abs(y[i] - e) / unit)));
  }
  return worst;
}

// Half an ulp for each of the last operations, 1/3 for the polynomial, 1/2 for 2^n (1 + p), and at most |f| *
// 1/2 for f: below 2.5 eps; 4 leaves room for portable tables, which round twice in each multiply-add.
constexpr double kActivationErrorInEps = 4.0;

TYPED_TEST(KernelsTest, ActivationsHaveTheStatedError) {
  using T = TypeParam;
  const std::vector<T> x = Arguments<T>();
  for (const auto* kernels : UsableKernels<T>(false)) {
    std::vector<T> y(x.size());
    kernels->sigmoid(x.data(), static_cast<std::int64_t>(x.size()), y.data());
    // Arguments below -87 (-700) are cut: the result is exp(-87) there instead of less.
    const double cut = sizeof(T) == 4 ? std::exp(-86.0) / std::numeric_limits<T>::epsilon() : 1e-280;
    EXPECT_LE(LargestRelativeError(x, y, cut, [](long double v) { return 1 / (1 + std::exp(-v)); }),
              kActivationErrorInEps)
        << kernels->name;
    kernels->tanh(x.data(), static_cast<std::int64_t>(x.size()), y.data());
    EXPECT_LE(LargestRelativeError(x, y, 1e-300, [](long double v) { return std::tanh(v); }),
              kActivationErrorInEps)
        << kernels->name;
  }
}

TYPED_TEST(KernelsTest, ActivationsKeepNotANumber) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const auto* kernels : UsableKernels<T>(false)) {
    T y = 0;
    kernels->sigmoid(&nan, 1, &y);
    EXPECT_TRUE(std::isnan(y)) << kernels->name;
    kernels->tanh(&nan, 1, &y);
    EXPECT_TRUE(std::isnan(y)) << kernels->name;
  }
}

// One layer with its parameters and arrays.
template <typename T>
struct Layer {
  Layer(const KernelTable<T>* table, std::int64_t input, std::int64_t hidden) : kernels(table) {
    const std::int64_t padded = kernels->padded_hidden(hidden);
    input_weights.resize(3 * padded * input);
    hidden_weights.resize(3 * padded * hidden);
    bias.resize(4 * padded);
    kernels->pack_weights(Uniform<T>(3 * hidden * input, 0.5, 2).data(), hidden, input, input_weights.data());
    kernels->pack_weights(Uniform<T>(3 * hidden * hidden, 0.5, 3).data(), hidden, hidden,
                          hidden_weights.data());
    kernels->pack_bias(Uniform<T>(3 * hidden, 0.5, 4).data(), Uniform<T>(3 * hidden, 0.5, 5).data(), hidden,
                       bias.data());
    step.hidden = hidden;
    step.input.columns = input;
    step.dt = static_cast<T>(0.75);
    step.input_weights = input_weights.data();
    step.hidden_weights = hidden_weights.data();
    step.bias = bias.data();
  }

  // The new state of `rows` rows; x and h may lie anywhere.
  std::vector<T> Run(std::int64_t rows, const T* x, const T* h, const T* gates = nullptr) {
    std::vector<T> new_state(rows * step.hidden);
    step.rows = rows;
    step.input = {x, step.input.columns, step.input.columns};
    step.state_operand = {h, step.hidden, step.hidden};
    step.state = h;
    step.input_gates = gates;
    step.new_state = new_state.data();
    kernels->step(step);
    return new_state;
  }

  const KernelTable<T>* kernels;
  std::vector<T> input_weights, hidden_weights, bias;
  LayerStep<T> step;
};

TYPED_TEST(KernelsTest, ARowHasTheSameBitsInAnyBatchAtAnyAddress) {
  using T = TypeParam;
  for (const auto* kernels : UsableKernels<T>(false)) {
    for (std::int64_t hidden : {1, 5, 8, 20, 37}) {
      const std::int64_t rows = 23, input = 3;
      Layer<T> layer(kernels, input, hidden);
      const std::vector<T> x = Uniform<T>(rows * input, 1.0, 6);
      const std::vector<T> h = Uniform<T>(rows * hidden, 1.0, 7);
      const std::vector<T> whole = layer.Run(rows, x.data(), h.data());
      for (std::int64_t row = 0; row < rows; ++row) {
        std::vector<T> moved(hidden + 3);  // another alignment
        std::memcpy(&moved[3], &h[row * hidden], hidden * sizeof(T));
        const std::vector<T> alone = layer.Run(1, &x[row * input], &moved[3]);
        EXPECT_EQ(0, std::memcmp(&whole[row * hidden], alone.data(), hidden * sizeof(T)))
            << kernels->name << " hidden " << hidden << " row " << row;
      }
    }
  }
}

TYPED_TEST(KernelsTest, InputGatesComputedBeforeGiveTheSameBits) {
  using T = TypeParam;
  for (const auto* kernels : UsableKernels<T>(false)) {
    const std::int64_t rows = 13, input = 11, hidden = 29;
    Layer<T> layer(kernels, input, hidden);
    const std::vector<T> x = Uniform<T>(rows * input, 1.0, 8);
    const std::vector<T> h = Uniform<T>(rows * hidden, 1.0, 9);
    const std::vector<T> fused = layer.Run(rows, x.data(), h.data());
    std::vector<T> gates(3 * kernels->padded_hidden(hidden) * rows);
    kernels->input_gates(layer.step, gates.data());
    EXPECT_EQ(fused, layer.Run(rows, nullptr, h.data(), gates.data())) << kernels->name;
  }
}

// What the bfloat16 bits in an operand's places stand for.
float Widen(std::uint32_t bits) {
  bits <<= 16;
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

TEST(OperandTest, RoundsToBFloat16AsIeeeAsks) {
  // Exact, ties to even (down, up), above a tie, a carry into the exponent, infinity by rounding, -0, NaN.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> from = {1.0f,  0x1.01p0f, 0x1.03p0f, 0x1.010002p0f, 0x1.fffffep0f, 0x1.fffffep127f,
                                   -0.0f, nan,       3.0f};
  const std::vector<float> expected = {
      1.0f, 1.0f, 0x1.04p0f, 0x1.02p0f, 2.0f, std::numeric_limits<float>::infinity(), -0.0f, nan, 3.0f};
  const std::int64_t count = static_cast<std::int64_t>(from.size());
  for (const auto* kernels : UsableKernels<float>(true)) {
    std::vector<float> to(from.size());
    const Rows<float> operand = kernels->operand(1, {from.data(), count, count}, to.data());
    std::vector<float> actual = to;
    if (operand.stride != count) {  // pairs
      ASSERT_EQ(operand.stride, (count + 1) / 2);
      for (std::int64_t i = 0; i < count; ++i) {
        std::uint32_t place;
        std::memcpy(&place, &to[i / 2], sizeof(place));
        actual[i] = Widen(i % 2 ? place >> 16 : place & 0xFFFFu);
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(actual[i]) : actual[i] == expected[i])
          << kernels->name << " " << i;
    }
    EXPECT_TRUE(std::signbit(actual[6]));
  }
}

}  // namespace
}  // namespace plait::gru
