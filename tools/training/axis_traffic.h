// Traffic of a rank along each axis of the mesh during training steps: columns of the history of every program.
//
//   comm_bytes_tp        bytes sent
//   comm_in_flight_tp    seconds in which messages and collectives were in flight, summed
//   comm_exposed_tp      seconds of these in which the rank waited
//
// Reductions over ranks with the same experts count as dp_replicate and dp_shard, exchanges of router counts as ep, or
// if it has one rank as dp_shard, else dp_replicate. cp is folded into an axis of data parallelism
// (parallel/context/data_mesh.h), which then counts parameters and gradients. Axes of one rank have no
// columns. Evaluations and checkpoints are not counted, nor are broadcasts over data-parallel ranks: set-up of the
// first step, and buffers of a few numbers. Local.
#ifndef PLAIT_TOOLS_TRAINING_AXIS_TRAFFIC_H_
#define PLAIT_TOOLS_TRAINING_AXIS_TRAFFIC_H_

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/device_mesh.h"
#include "data/history/metric.h"
#include "parallel/sharding/strategy.h"
#include "tools/training/run_outputs.h"
#include "tools/training/since_draw.h"

namespace plait::training {

class AxisTraffic {
 public:
  // `expert_ranks`: size of ep, which is not an axis of the mesh (tools/training/mesh.h).
  AxisTraffic(const comm::DeviceMesh& mesh, int expert_ranks, parallel::Strategy strategy);

  std::vector<Recorded> metrics() const;

  // Call around each step.
  void BeginStep();
  void EndStep();

  // Appends sums over the steps since the last call; nothing if there was none. The names of the scalars live as long
  // as this object.
  void TakeScalars(std::vector<data::Scalar>& scalars);

  // The same sums, for a checkpoint, and back: where they are not known the next ones are NaN.
  void AddTo(SinceDraw& sums) const;
  void Restore(const std::optional<SinceDraw>& sums);

 private:
  static constexpr std::size_t kBytes = 0, kInFlight = 1, kExposed = 2, kNumbers = 3;
  using Numbers = std::array<double, kNumbers>;
  struct Axis {
    std::array<std::string, kNumbers> columns;
    Numbers sums = {};
  };
  // The axis whose columns count an axis of the engine.
  std::string ColumnOf(const std::string& axis) const;
  std::map<std::string, Numbers> SoFar() const;

  comm::Communicator world_;
  std::map<std::string, Axis> axes_;
  std::map<std::string, Numbers> before_;
  int steps_ = 0;  // since the last TakeScalars
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_AXIS_TRAFFIC_H_
