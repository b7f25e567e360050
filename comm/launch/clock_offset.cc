#include "comm/launch/clock_offset.h"

#include <chrono>
#include <limits>

#include "absl/types/span.h"

namespace plait::comm {
namespace {

constexpr int kTag = 0;

ClockOffset Ask(const Communicator& world, const std::function<double()>& clock, int rank, int exchanges) {
  ClockOffset best = {.seconds = 0, .uncertainty_seconds = std::numeric_limits<double>::infinity()};
  for (int i = 0; i < exchanges; ++i) {
    double theirs = 0;
    const double asked = clock();
    world.Send(ConstBufferOf(absl::MakeConstSpan(&theirs, 1)), rank, kTag);
    world.Receive(BufferOf(absl::MakeSpan(&theirs, 1)), rank, kTag);
    const double answered = clock();
    const double half = (answered - asked) / 2;
    if (half < best.uncertainty_seconds) best = {theirs - (asked + half), half};
  }
  return best;
}

void Answer(const Communicator& world, const std::function<double()>& clock, int exchanges) {
  for (int i = 0; i < exchanges; ++i) {
    double mine = 0;
    world.Receive(BufferOf(absl::MakeSpan(&mine, 1)), 0, kTag);
    mine = clock();
    world.Send(ConstBufferOf(absl::MakeConstSpan(&mine, 1)), 0, kTag);
  }
}

}  // namespace

double WallClockSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<ClockOffset> MeasureClockOffsets(const Communicator& world, const std::function<double()>& clock,
                                             int exchanges) {
  std::vector<double> seconds(world.size(), 0), uncertainties(world.size(), 0);
  for (int rank = 1; rank < world.size(); ++rank) {
    if (world.rank() == rank) Answer(world, clock, exchanges);
    if (world.rank() != 0) continue;
    const ClockOffset offset = Ask(world, clock, rank, exchanges);
    seconds[rank] = offset.seconds;
    uncertainties[rank] = offset.uncertainty_seconds;
  }
  world.Broadcast(BufferOf(absl::MakeSpan(seconds)), 0);
  world.Broadcast(BufferOf(absl::MakeSpan(uncertainties)), 0);
  std::vector<ClockOffset> offsets(world.size());
  for (int rank = 0; rank < world.size(); ++rank) offsets[rank] = {seconds[rank], uncertainties[rank]};
  return offsets;
}

}  // namespace plait::comm
