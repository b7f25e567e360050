// Against loops over doubles. All values are small multiples of a power of two: no sum in float32 is rounded, and
// results are bitwise equal to those of the loops. With c channels, n images of p pixels, u, of_out and scale in halves up to 1 and weights
// in quarters up to 1/4: the first convolution is a multiple of 1/8 below 3 c, the second of 1/32 below 6 c^2, the gradient of
// u of 1/64 below 50 c, those of weights of 1/32 below 1.2 c n p: 22 bits for n p = 7056 and c = 16.
#include "models/odenet/kernels/step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace plait::odenet {
namespace {

using Index = std::int64_t;
template <typename T>
using Numbers = std::vector<T>;

struct Shape {
  Index images, channels, rows, columns;
  Index pixels() const { return rows * columns; }
  Index state() const { return images * channels * pixels(); }
  Index weights() const { return channels * channels * 9; }
};

// Multiples of `unit` up to `steps` of them.
Numbers<float> Draw(Index count, int steps, double unit, std::mt19937& engine) {
  std::uniform_int_distribution<int> draw(-steps, steps);
  Numbers<float> values(count);
  for (float& value : values) value = static_cast<float>(unit * draw(engine));
  return values;
}

struct Case {
  Case(const Shape& case_shape, unsigned seed) : shape(case_shape) {
    std::mt19937 engine(seed);
    u = Draw(shape.state(), 2, 0.5, engine);
    of_out = Draw(shape.state(), 2, 0.5, engine);
    for (int i = 0; i < 2; ++i) {
      weight[i] = Draw(shape.weights(), 1, 0.25, engine);
      bias[i] = Draw(shape.channels, 1, 0.25, engine);
    }
  }
  Shape shape;
  Numbers<float> u, of_out, weight[2], bias[2];
  float scale = 0.5;
};

struct Result {
  Numbers<float> out, of_u, of_parameters;
};

// Visits (out channel, in channel, tap, pixel, pixel it reads) of a convolution of an image.
template <typename Visit>
void ForProducts(const Shape& s, const Visit& visit) {
  for (Index o = 0; o < s.channels; ++o) {
    for (Index c = 0; c < s.channels; ++c) {
      for (Index p = 0; p < s.pixels(); ++p) {
        for (Index tap = 0; tap < 9; ++tap) {
          const Index row = p / s.columns + tap / 3 - 1, column = p % s.columns + tap % 3 - 1;
          if (row < 0 || row >= s.rows || column < 0 || column >= s.columns) continue;
          visit((o * s.channels + c) * 9 + tap, o * s.pixels() + p,
                c * s.pixels() + row * s.columns + column);
        }
      }
    }
  }
}

Numbers<double> Convolved(const Case& c, int which, const Numbers<double>& x) {
  Numbers<double> y(x.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = c.bias[which][i / c.shape.pixels()];
  ForProducts(c.shape, [&](Index w, Index to, Index from) { y[to] += c.weight[which][w] * x[from]; });
  return y;
}

Numbers<double> Relu(Numbers<double> x) {
  for (double& value : x) value = value > 0 ? value : 0;
  return x;
}

// Adds the gradients of convolution `which`, where `of` is that of its result and x what it read; returns that of x.
Numbers<double> Adjoint(const Case& c, int which, const Numbers<double>& of, const Numbers<double>& x,
                        Numbers<double>& of_parameters) {
  Numbers<double> of_x(x.size());
  double* const of_weight = &of_parameters[which * (c.shape.weights() + c.shape.channels)];
  ForProducts(c.shape, [&](Index w, Index to, Index from) {
    of_x[from] += c.weight[which][w] * of[to];
    of_weight[w] += of[to] * x[from];
  });
  for (std::size_t i = 0; i < of.size(); ++i) of_weight[c.shape.weights() + i / c.shape.pixels()] += of[i];
  return of_x;
}

Result ByLoops(const Case& c) {
  Result result;
  const Index numbers = c.shape.channels * c.shape.pixels();
  Numbers<double> of_parameters(2 * (c.shape.weights() + c.shape.channels));
  for (Index image = 0; image < c.shape.images; ++image) {
    const Numbers<double> u(&c.u[image * numbers], &c.u[image * numbers] + numbers);
    const Numbers<double> sum_1 = Convolved(c, 0, u), middle = Relu(sum_1), sum_2 = Convolved(c, 1, middle);
    Numbers<double> of_2(numbers);
    for (Index i = 0; i < numbers; ++i) {
      const float of_out = c.of_out[image * numbers + i];
      result.out.push_back(static_cast<float>(u[i] + (sum_2[i] > 0 ? c.scale * sum_2[i] : 0)));
      of_2[i] = sum_2[i] > 0 ? c.scale * of_out : 0;
    }
    Numbers<double> of_1 = Adjoint(c, 1, of_2, middle, of_parameters);
    for (Index i = 0; i < numbers; ++i) of_1[i] = sum_1[i] > 0 ? of_1[i] : 0;
    const Numbers<double> of_u = Adjoint(c, 0, of_1, u, of_parameters);
    for (Index i = 0; i < numbers; ++i)
      result.of_u.push_back(static_cast<float>(c.of_out[image * numbers + i] + of_u[i]));
  }
  for (const double value : of_parameters) result.of_parameters.push_back(static_cast<float>(value));
  return result;
}

constexpr float kUnset = std::numeric_limits<float>::quiet_NaN();

StepForward ForwardOf(const Case& c, Numbers<float>& out) {
  return {.channels = c.shape.channels,
          .plane = {c.shape.rows, c.shape.columns},
          .scale = c.scale,
          .weight_1 = c.weight[0].data(),
          .bias_1 = c.bias[0].data(),
          .weight_2 = c.weight[1].data(),
          .bias_2 = c.bias[1].data(),
          .u = c.u.data(),
          .out = out.data()};
}

Result ByKernels(const Case& c, const StepKernels& kernels) {
  Result result{Numbers<float>(c.u.size(), kUnset), Numbers<float>(c.u.size(), kUnset), {}};
  StepForward forward = ForwardOf(c, result.out);
  const Index planes = c.shape.images * c.shape.channels;
  Numbers<float> middle(planes * forward.plane.size(), kUnset);
  Numbers<std::int8_t> active(planes * forward.plane.whole_vectors(), 77);
  forward.middle = middle.data();
  forward.active = active.data();
  Numbers<float> scratch(forward.scratch());
  kernels.forward(forward, 0, c.shape.images, scratch.data());
  StepBackward backward{.channels = c.shape.channels,
                        .plane = forward.plane,
                        .scale = c.scale,
                        .images = c.shape.images,
                        .weight_1 = c.weight[0].data(),
                        .weight_2 = c.weight[1].data(),
                        .u = c.u.data(),
                        .middle = middle.data(),
                        .active = active.data(),
                        .of_out = c.of_out.data(),
                        .of_u = result.of_u.data()};
  Numbers<float> groups(backward.groups() * backward.parameters(), kUnset);
  backward.of_parameters = groups.data();
  scratch.assign(backward.scratch(), 0);
  kernels.backward(backward, 0, backward.groups(), scratch.data());
  result.of_parameters.assign(backward.parameters(), 0);
  for (std::size_t i = 0; i < groups.size(); ++i)
    result.of_parameters[i % backward.parameters()] += groups[i];
  return result;
}

constexpr Shape kShapes[] = {{1, 1, 1, 1}, {2, 1, 1, 5},   {1, 2, 6, 1},    {3, 3, 4, 5},   {9, 3, 28, 28},
                             {9, 4, 7, 3}, {2, 5, 13, 15}, {1, 6, 16, 16},  {2, 7, 5, 17},  {8, 8, 28, 28},
                             {1, 9, 3, 3}, {2, 12, 9, 31}, {9, 16, 28, 28}, {1, 13, 11, 2}, {17, 2, 3, 33}};

TEST(Step, HasTheBitsOfExactSums) {
  unsigned seed = 1;
  for (const Shape& shape : kShapes) {
    const Case c(shape, ++seed);
    const Result expected = ByLoops(c);
    for (const StepKernels* const kernels : UsableSteps()) {
      SCOPED_TRACE(testing::Message() << kernels->name << ": " << shape.images << " x " << shape.channels
                                      << " x " << shape.rows << " x " << shape.columns);
      const Result result = ByKernels(c, *kernels);
      EXPECT_TRUE(result.out == expected.out);
      EXPECT_TRUE(result.of_u == expected.of_u);
      EXPECT_TRUE(result.of_parameters == expected.of_parameters);
    }
  }
}

// Numbers whose sums are rounded.
TEST(Step, OfAnImageHasTheSameBitsInAnyRange) {
  Case c({5, 3, 9, 10}, 1);
  std::mt19937 engine(3);
  for (float& value : c.u) value = std::normal_distribution<float>()(engine);
  for (float& value : c.weight[1]) value = std::normal_distribution<float>()(engine);
  for (const StepKernels* const kernels : UsableSteps()) {
    Numbers<float> whole(c.u.size(), kUnset), parts(c.u.size(), kUnset);
    Numbers<float> scratch(ForwardOf(c, whole).scratch());
    kernels->forward(ForwardOf(c, whole), 0, 5, scratch.data());
    for (Index image = 4; image >= 0; --image)
      kernels->forward(ForwardOf(c, parts), image, image + 1, scratch.data());
    EXPECT_TRUE(whole == parts) << kernels->name;
  }
}

// NaN reaches exactly the pixels in the receptive field of two convolutions of width 3.
TEST(Step, KeepsWhatIsNotANumber) {
  Case c({1, 1, 9, 9}, 1);
  c.u[4 * 9 + 4] = kUnset;
  for (const StepKernels* const kernels : UsableSteps()) {
    Numbers<float> out(c.u.size());
    Numbers<float> scratch(ForwardOf(c, out).scratch());
    kernels->forward(ForwardOf(c, out), 0, 1, scratch.data());
    for (Index p = 0; p < 81; ++p) {
      const bool near = std::abs(p / 9 - 4) <= 2 && std::abs(p % 9 - 4) <= 2;
      EXPECT_EQ(std::isnan(out[p]), near) << kernels->name << " at " << p;
    }
  }
}

}  // namespace
}  // namespace plait::odenet
