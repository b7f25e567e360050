// Against the published run: 46.3 % of an A100's 312 TFLOP/s.
#include "tools/text_training/flops.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "models/gpt/gpt.h"

namespace plait::text_training {
namespace {

TEST(FlopsTest, PublishedRun) {
  const gpt::GptOptions options = {.vocab_size = 65, .bias = false};  // 12/12/768, 1024 positions
  const double flops = gpt::FlopsPerToken(options, 1024);
  EXPECT_EQ(flops, 6.0 * 85003776 + 12.0 * 12 * 768 * 1024);
  // step=10 dt=0.282833 mfu=46.288281: 65,536 tokens a rank; the first value of its running mean. Both are
  // printed with 6 digits.
  EXPECT_NEAR(MfuPercent(flops, 65536, 0.282833, 312e12), 46.288281, 46.3 * 0.5e-6 / 0.282833 + 0.5e-6);
}

TEST(FlopsTest, NoPeakNoShare) { EXPECT_TRUE(std::isnan(MfuPercent(1e9, 10, 1, 0))); }

// The sizes of all products of matrices in this scope, by LibTorch's own record.
class RecordedProducts {
 public:
  RecordedProducts()
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(&RecordedProducts::Note).needsInputs(true))) {
    recorded_.clear();
  }
  ~RecordedProducts() { at::removeCallback(handle_); }
  const std::vector<std::vector<std::int64_t>>& sizes() const { return recorded_; }

 private:
  static std::unique_ptr<at::ObserverContext> Note(const at::RecordFunction& function) {
    if (std::string(function.name()) != "aten::mm") return nullptr;
    const at::Tensor a = function.inputs()[0].toTensor(), b = function.inputs()[1].toTensor();
    recorded_.push_back({a.size(0), a.size(1), b.size(1)});
    return nullptr;
  }
  static thread_local std::vector<std::vector<std::int64_t>> recorded_;
  at::CallbackHandle handle_;
};
thread_local std::vector<std::vector<std::int64_t>> RecordedProducts::recorded_;

// With a clock of the test: 2 * 1024^3 operations over the time of the fastest product.
TEST(FlopsTest, PeakIsTheBestOfAllProducts) {
  struct Case {
    std::vector<double> durations;  // of the products, one after the other
    double best;
  };
  // Exact in binary. The third begins at half a second, too late; two are done in any case.
  for (const Case& c :
       {Case{{0.25, 0.125, 0.0625, 0.125}, 0.0625}, Case{{0.25, 0.25}, 0.25}, Case{{1, 0.5}, 0.5}}) {
    double now = 17;
    std::size_t reading = 0;
    const auto clock = [&] {
      // Readings: the beginning; then begin and end of each product.
      const std::size_t ended = reading / 2;
      if (reading > 0 && reading % 2 == 0) now += c.durations.at(ended - 1);
      ++reading;
      return now;
    };
    const RecordedProducts products;
    EXPECT_EQ(MeasuredPeakFlops(c10::ScalarType::Float, clock), 2.0 * 1024 * 1024 * 1024 / c.best);
    EXPECT_EQ(products.sizes(),
              std::vector<std::vector<std::int64_t>>(c.durations.size(), {1024, 1024, 1024}));
  }
}

}  // namespace
}  // namespace plait::text_training
