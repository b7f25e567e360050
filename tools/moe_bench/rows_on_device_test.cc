// Rows of tokens on a device are those of the host, and the host does not wait for it. (A test device in host memory.)
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <string>

#include "parallel/moe/rows.h"
#include "tools/device/testing/host_device.h"

namespace plait::moe {
namespace {

constexpr std::int64_t kRows = 5, kPlaces = 23, kWidth = 7;

class RowsOnADevice : public testing::TestWithParam<at::ScalarType> {
 protected:
  RowsOnADevice() {
    // Rows 0 to 2 have several addends, the others none.
    for (std::int64_t i = 0; i < kPlaces; ++i) index_.push_back(i * i % 7 % 4);
  }
  at::Tensor Numbers(at::IntArrayRef shape, at::ScalarType type) {
    return at::empty(shape, at::kDouble).normal_(0, 1, generator_).to(type);
  }
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(3);
  const at::Device device_ = device::testing::HostDevice();
  RowNumbers index_;
};

TEST_P(RowsOnADevice, AreThoseOfTheHost) {
  const at::Tensor rows = Numbers({kPlaces, kWidth}, GetParam()), x = Numbers({kRows, kWidth}, GetParam());
  const at::Tensor scale = Numbers({kPlaces}, at::kFloat);
  EXPECT_TRUE(GatherRows(x.to(device_), index_).cpu().equal(GatherRows(x, index_)));
  // In the order of places, half precision in float32: the same bits.
  const at::Tensor sum = SumRows(rows.to(device_), index_, kRows);
  EXPECT_EQ(sum.scalar_type(), GetParam());
  EXPECT_TRUE(sum.cpu().equal(SumRows(rows, index_, kRows)));
  // Products may be rounded before they are added.
  const at::Tensor scaled = SumRows(rows.to(device_), index_, kRows, scale.to(device_)).cpu();
  const double tolerance = GetParam() == at::kBFloat16 ? 0x1p-7 : GetParam() == at::kHalf ? 0x1p-10 : 1e-5;
  EXPECT_TRUE(scaled.allclose(SumRows(rows, index_, kRows, scale), tolerance, tolerance));
  EXPECT_TRUE(SumRows(rows.narrow(0, 0, 0).to(device_), {}, kRows).cpu().eq(0).all().item<bool>());
}

TEST_P(RowsOnADevice, LetTheHostGoOn) {
  const at::Tensor rows = Numbers({kPlaces, kWidth}, GetParam()).to(device_),
                   x = Numbers({kRows, kWidth}, GetParam()).to(device_),
                   scale = Numbers({kPlaces}, at::kFloat).to(device_);
  device::testing::DeviceTraffic& traffic = device::testing::TrafficOfHostDevice();
  traffic.Reset();
  GatherRows(x, index_);
  SumRows(rows, index_, kRows, scale);
  SumRowsBackward(x, index_, rows, scale);
  EXPECT_EQ(traffic.to_host, 0);
  EXPECT_EQ(traffic.pageable, 0);
  EXPECT_EQ(traffic.pinned, 4);
}

INSTANTIATE_TEST_SUITE_P(Types, RowsOnADevice,
                         testing::Values(at::kDouble, at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& info) { return std::string(toString(info.param)); });

}  // namespace
}  // namespace plait::moe
