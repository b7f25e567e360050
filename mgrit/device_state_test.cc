// The path of states on a device: messages are sent from and received into their memory, and norms are read once per
// iteration. The states of this test are in host memory, but packing them fails the test, and reads are counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/testing/world.h"
#include "mgrit/solver.h"
#include "mgrit/testing/linear_problems.h"

namespace plait::mgrit {

struct DeviceVector {
  std::vector<double> values;
};

template <>
inline constexpr bool kTypeHasShape<DeviceVector> = false;

template <>
struct StateOperations<DeviceVector> {
  using Host = StateOperations<std::vector<double>>;

  // Number of reads to the host.
  class Norms {
   public:
    void Put(std::int64_t slot, const DeviceVector& x) { norms_.Put(slot, x.values); }
    void Take(absl::Span<double> squares) {
      ++takes;
      norms_.Take(squares);
    }
    static inline std::int64_t takes = 0;

   private:
    HostNorms<std::vector<double>> norms_;
  };

  static void Copy(const DeviceVector& x, DeviceVector& y) { Host::Copy(x.values, y.values); }
  static void Combine(double alpha, const DeviceVector& x, double beta, DeviceVector& y) {
    Host::Combine(alpha, x.values, beta, y.values);
  }
  static StateMemory Memory(DeviceVector& x) {
    return {x.values.data(), static_cast<std::int64_t>(x.values.size() * sizeof(double))};
  }
  static std::int64_t PackedBytes(const DeviceVector& x) { return Host::PackedBytes(x.values); }
  static void Pack(const DeviceVector&, absl::Span<std::byte>) { ADD_FAILURE() << "packed"; }
  static void Unpack(absl::Span<const std::byte>, DeviceVector&) { ADD_FAILURE() << "unpacked"; }
};

namespace {

using HostSystem = testing::RandomLinearSystem;

class DeviceSystem : public Problem<DeviceVector> {
 public:
  DeviceVector Make(int level) override { return {host_.Make(level)}; }
  void Initialize(std::int64_t point, double t, DeviceVector& u) override {
    host_.Initialize(point, t, u.values);
  }
  void Step(const StepInterval& interval, const DeviceVector& u, DeviceVector& out) override {
    host_.Step(interval, u.values, out.values);
  }

 private:
  HostSystem host_{3u, 1.5, 4u};
};

TEST(DeviceStates, AreSentFromTheirMemoryAndReadOncePerIteration) {
  for (const std::int64_t steps : {64, 103, 7}) {
    for (const ResidualTime time : {ResidualTime::kRestriction, ResidualTime::kCycle, ResidualTime::kNever}) {
      const TimeGrid grid = {.start = 0, .stop = 1, .steps = steps};
      const Options options = {.max_levels = 2, .cfactors = {3}, .max_iterations = 4, .residual_time = time};
      HostSystem host(3u, 1.5, 4u);
      Solver expected(host, grid, options, comm::Communicator::Self());
      const Solution reference = expected.Solve();
      DeviceSystem problem;
      // Cuts C-intervals where ranks outnumber them.
      Solver solver(problem, grid, options, comm::testing::World());
      StateOperations<DeviceVector>::Norms::takes = 0;
      const Solution solution = solver.Solve();
      EXPECT_EQ(StateOperations<DeviceVector>::Norms::takes, time == ResidualTime::kNever ? 0 : 4);
      if (time != ResidualTime::kNever) {
        EXPECT_EQ(solution.residual_norms, reference.residual_norms);
      }
      EXPECT_EQ(solution.work.message_bytes, solution.work.messages * 24);
      if (!solver.owns_points()) continue;
      for (std::int64_t point = solver.first_point(); point <= solver.last_point(); ++point) {
        EXPECT_EQ(solver.state<DeviceVector>(point).values, expected.state<std::vector<double>>(point));
      }
    }
  }
}

}  // namespace
}  // namespace plait::mgrit
