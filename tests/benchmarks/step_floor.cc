// What the products of the steps of gpt_step and llama_step take on one core: by kernels of models/linear, and at least, if every
// vector instruction were a multiply-add.
//
//   bazel run //tests/benchmarks:step_floor
//
// A line per type and setting: rate of the processor's multiply-adds, multiplications and additions of a step, milliseconds at that
// rate, and as measured, product by product. Attention, whose products are short, is in the first two only.
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#include "models/linear/kernels/product.h"

namespace plait::benchmarks {
namespace {

using linear::BFloat16;

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The least of several, seconds of a call.
double Least(const std::function<void()>& call, int calls) {
  double least = 1e9;
  for (int round = 0; round < 7; ++round) {
    const double begin = NowSeconds();
    for (int i = 0; i < calls; ++i) call();
    least = std::min(least, (NowSeconds() - begin) / calls);
  }
  return least;
}

constexpr int kSums = 24;  // more than a multiply-add's latency
constexpr int kRounds = 1 << 16;

__attribute__((target("avx512f"))) void MultiplyAdds(float) {
  __m512 sums[kSums], a = _mm512_set1_ps(0.999f);
  for (__m512& sum : sums) sum = a;
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 24
    for (__m512& sum : sums) {
      sum = _mm512_fmadd_ps(sum, a, a);
      asm volatile("" : "+v"(sum));
    }
  }
}

__attribute__((target("avx512f,avx512bf16"))) void MultiplyAdds(BFloat16) {
  __m512 sums[kSums], zero = _mm512_setzero_ps();
  for (__m512& sum : sums) sum = zero;
  const auto pairs = (__m512bh)_mm512_castps_si512(zero);
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 24
    for (__m512& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, pairs, pairs);
      asm volatile("" : "+v"(sum));
    }
  }
}

// `count` linear layers.
struct Layer {
  std::int64_t in, out, count = 1;
};

struct Setting {
  const char* name;
  std::int64_t tokens;
  std::vector<Layer> layers;
  double attention;  // multiplications and additions, forward and backward; of keys that are seen
};

double Flops(const Setting& s) {
  double sum = s.attention;
  for (const Layer& layer : s.layers)
    sum += 6.0 * static_cast<double>(s.tokens * layer.in * layer.out * layer.count);
  return sum;
}

// Of x weight^T, of gradient weight and of gradient^T x.
template <typename T>
double SecondsOf(const Layer& layer, std::int64_t tokens) {
  const std::int64_t in = layer.in, out = layer.out;
  const std::vector<T> x(tokens * in), weight(out * in), gradient(tokens * out);
  std::vector<T> result(std::max({tokens * in, out * in, tokens * out}));
  using linear::Product;
  const Product<T> passes[] = {{.rows = tokens,
                                .columns = out,
                                .inner = in,
                                .left = {x.data(), in, 1},
                                .right = {weight.data(), 1, in},
                                .out = result.data(),
                                .out_stride = out},
                               {.rows = tokens,
                                .columns = in,
                                .inner = out,
                                .left = {gradient.data(), out, 1},
                                .right = {weight.data(), in, 1},
                                .out = result.data(),
                                .out_stride = in},
                               {.rows = out,
                                .columns = in,
                                .inner = tokens,
                                .left = {gradient.data(), 1, out},
                                .right = {x.data(), in, 1},
                                .out = result.data(),
                                .out_stride = in}};
  const auto on_this_thread =
      [](std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& body) { body(0, count); };
  const int calls = static_cast<int>(1e9 / static_cast<double>(2 * tokens * in * out)) + 1;
  double seconds = 0;
  for (const Product<T>& pass : passes)
    seconds += Least([&] { linear::UsableProducts<T>()->multiply(pass, on_this_thread); }, calls);
  return seconds * static_cast<double>(layer.count);
}

template <typename T>
void Print(const char* type, double places) {
  if (linear::UsableProducts<T>() == nullptr)
    return void(std::printf("%s: this processor has no kernels\n", type));
  const double flops = 2 * places * 16 * kSums * kRounds, rate = flops / Least([] { MultiplyAdds(T{}); }, 4);
  // Half of the scores and a diagonal, six products of them; heads of all widths together are as wide as the layer.
  const auto attention = [](std::int64_t tokens, std::int64_t seq, std::int64_t width, std::int64_t layers) {
    return 6.0 * static_cast<double>(tokens * (seq + 1) * width * layers);
  };
  const Setting settings[] = {{"gpt, 768 tokens",
                               768,
                               {{128, 384, 4}, {128, 128, 4}, {128, 512, 4}, {512, 128, 4}, {128, 65}},
                               attention(768, 64, 128, 4)},
                              {"llama, 128 tokens of 256",
                               128,
                               {{256, 256, 48}, {256, 64, 48}, {256, 720, 48}, {720, 256, 24}, {256, 32000}},
                               attention(128, 64, 256, 24)}};
  for (const Setting& setting : settings) {
    double seconds = 0;
    for (const Layer& layer : setting.layers) seconds += SecondsOf<T>(layer, setting.tokens);
    std::printf("%s, %s: %.1f GFLOP/s, %.3f GFLOP a step, at least %.1f ms, linear layers measured %.1f ms\n",
                type, setting.name, rate * 1e-9, Flops(setting) * 1e-9, Flops(setting) / rate * 1e3,
                seconds * 1e3);
  }
}

}  // namespace
}  // namespace plait::benchmarks

int main() {
  plait::benchmarks::Print<float>("float32", 1);
  plait::benchmarks::Print<plait::simd::BFloat16>("bfloat16", 2);
}
