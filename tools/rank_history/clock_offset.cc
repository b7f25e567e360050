#include "tools/rank_history/clock_offset.h"

#include <array>
#include <limits>

#include "absl/types/span.h"

namespace plait::rank_history {
namespace {

constexpr int kTag = 0;

// Clocks may have any zero: readings stay integers until they are differences.
struct Answer {
  std::int64_t asked_ns, other_ns, answered_ns;
  std::int64_t way_ns() const { return answered_ns - asked_ns; }
};

// On rank 0: the round with the shortest way.
Answer Ask(const comm::Communicator& group, int rank, const std::function<std::int64_t()>& now_ns,
           int rounds) {
  Answer best{0, 0, std::numeric_limits<std::int64_t>::max()};
  for (int round = 0; round < rounds; ++round) {
    std::array<std::int64_t, 1> word{};
    Answer answer{now_ns(), 0, 0};
    group.Send(comm::ConstBufferOf(absl::MakeConstSpan(word)), rank, kTag);
    group.Receive(comm::BufferOf(absl::MakeSpan(word)), rank, kTag);
    answer.answered_ns = now_ns();
    answer.other_ns = word[0];
    if (answer.way_ns() < best.way_ns()) best = answer;
  }
  return best;
}

void AnswerRankZero(const comm::Communicator& group, const std::function<std::int64_t()>& now_ns,
                    int rounds) {
  for (int round = 0; round < rounds; ++round) {
    std::array<std::int64_t, 1> word{};
    group.Receive(comm::BufferOf(absl::MakeSpan(word)), 0, kTag);
    word[0] = now_ns();
    group.Send(comm::ConstBufferOf(absl::MakeConstSpan(word)), 0, kTag);
  }
}

}  // namespace

ClockOffset MeasureClockOffset(const comm::Communicator& group, const std::function<std::int64_t()>& now_ns,
                               int rounds) {
  std::array<std::int64_t, 3> result{now_ns(), 0, 0};
  if (group.rank() == 0) {
    for (int rank = 1; rank < group.size(); ++rank) {
      const Answer best = Ask(group, rank, now_ns, rounds);
      const std::int64_t middle_ns = best.asked_ns + best.way_ns() / 2;
      const std::array<std::int64_t, 3> found{best.other_ns, middle_ns - best.other_ns, best.way_ns()};
      group.Send(comm::ConstBufferOf(absl::MakeConstSpan(found)), rank, kTag);
    }
  } else {
    AnswerRankZero(group, now_ns, rounds);
    group.Receive(comm::BufferOf(absl::MakeSpan(result)), 0, kTag);
  }
  return {1e-9 * static_cast<double>(result[0]), 1e-9 * static_cast<double>(result[1]),
          0.5e-9 * static_cast<double>(result[2])};
}

}  // namespace plait::rank_history
