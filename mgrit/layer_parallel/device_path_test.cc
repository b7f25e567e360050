// The path of states on a device: norms stay on the device and are read once per iteration, and messages are sent from
// the memory of the states.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "comm/testing/world.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/layer_parallel/tensor_state.h"
#include "mgrit/layer_parallel/testing/residual.h"

namespace plait::mgrit {
namespace {

using namespace testing;  // NOLINT: the parts of these tests

// LibTorch's observer takes no argument.
std::int64_t& HostReads() {
  static std::int64_t reads = 0;
  return reads;
}

// Counts the operators that wait for a device to read a number, on any device.
class CountHostReads {
 public:
  CountHostReads() {
    HostReads() = 0;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(
        [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
          if (std::strcmp(function.name(), "aten::_local_scalar_dense") == 0) ++HostReads();
          return nullptr;
        }));
  }
  ~CountHostReads() { at::removeCallback(handle_); }

 private:
  at::CallbackHandle handle_;
};

TEST(DevicePath, ASolveReadsNoNumberPerCPoint) {
  const auto block = std::make_shared<Residual>(1);
  LayerParallelOptions options = MakeLayerParallelOptions(3, 3, 4, 4);
  options.forward.tolerance = options.backward.tolerance = 1e-300;  // norms are looked at
  LayerParallel net(comm::testing::World(), block, 23, 1.5, options);
  const at::Tensor u_0 = Numbers({3, kWidth}, 5);
  const CountHostReads count;
  LossOf(net.Forward(u_0)).backward();
  EXPECT_EQ(HostReads(), 0);
  EXPECT_GT(net.last_forward().last_residual_norm(), 0);
  Numbers({1}, 1).item<double>();
  EXPECT_EQ(HostReads(), 1);  // the count counts
}

TEST(DevicePath, NormsAreThoseOfTheStatesPut) {
  TensorNorms norms;
  for (int round = 0; round < 2; ++round) {
    std::vector<double> squares(40, -1.0);
    for (std::int64_t slot = 0; slot < 40; slot += 2) {
      norms.Put(slot, Numbers({2, 3}, static_cast<std::uint64_t>(100 * round + slot)));
    }
    norms.Take(absl::MakeSpan(squares));
    for (std::int64_t slot = 0; slot < 40; ++slot) {
      const at::Tensor x = Numbers({2, 3}, static_cast<std::uint64_t>(100 * round + slot));
      const double norm = x.norm().item<double>();
      // Six squares, summed in any order, and a root and a square.
      const double square = slot % 2 == 0 ? norm * norm : -1.0;
      EXPECT_NEAR(squares[slot], square, 8 * 0x1p-53 * norm * norm) << "slot " << slot;
    }
  }
}

TEST(DevicePath, MessagesAreTheMemoryOfAState) {
  at::Tensor x = Numbers({2, 3}, 1);
  const StateMemory memory = StateOperations<at::Tensor>::Memory(x);
  EXPECT_EQ(memory.data, x.data_ptr());
  EXPECT_EQ(memory.bytes, static_cast<std::int64_t>(6 * sizeof(double)));
  EXPECT_EQ(memory.cuda_device, -1);
  at::Tensor strided = x.t();
  EXPECT_THROW(StateOperations<at::Tensor>::Memory(strided), c10::Error);
}

}  // namespace
}  // namespace plait::mgrit
