#include "mgrit/scaling/message_costs.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

namespace plait::mgrit::scaling {
namespace {

constexpr int kRepetitions = 15;

double SecondsOf(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double MedianOf(std::vector<double> samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

// While rank 0 works alone, the others sleep, because polling for messages could slow it down.
double Contention(const comm::Communicator& communicator, const std::function<void()>& work) {
  constexpr double kSeconds = 1;
  std::vector<double> alone, together;
  double first = SecondsOf(work);
  communicator.AllReduce(comm::BufferOf(absl::MakeSpan(&first, 1)), comm::ReduceOp::kMax);
  const int repetitions = std::clamp(static_cast<int>(kSeconds / first), 3, kRepetitions);
  for (int i = 0; i < repetitions; ++i) {
    communicator.Barrier();
    together.push_back(SecondsOf(work));
    communicator.Barrier();
    if (communicator.rank() == 0) {
      alone.push_back(SecondsOf(work));
    } else {
      std::this_thread::sleep_for(std::chrono::duration<double>(1.2 * together.back()));
    }
  }
  return communicator.rank() == 0 ? MedianOf(together) / MedianOf(alone) : 1.0;
}

void ComputeFor(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

// One rank works at a time: the time of a round beyond the work, per rank.
double HandOver(const comm::Communicator& communicator, std::int64_t state_bytes) {
  constexpr double kWorkSeconds = 2e-3;
  constexpr int kRounds = 10;
  const int last = communicator.size() - 1, rank = communicator.rank();
  std::vector<std::byte> buffer(static_cast<std::size_t>(state_bytes));
  const comm::Buffer values = comm::BufferOf(absl::MakeSpan(buffer));
  std::vector<double> samples;
  for (int i = 0; i < kRepetitions; ++i) {
    communicator.Barrier();
    const double seconds = SecondsOf([&] {
      for (int round = 0; round < kRounds; ++round) {
        if (rank != 0 || round > 0) communicator.Receive(values, rank == 0 ? last : rank - 1, 0);
        ComputeFor(kWorkSeconds);
        communicator.Send(values, rank == last ? 0 : rank + 1, 0);
      }
      if (rank == 0) communicator.Receive(values, last, 0);
    });
    samples.push_back(seconds / (kRounds * communicator.size()) - kWorkSeconds);
  }
  return MedianOf(samples);
}

}  // namespace

double OneWaySeconds(const comm::Communicator& communicator, std::int64_t bytes, int repetitions) {
  constexpr int kTurns = 50;
  std::vector<std::byte> buffer(static_cast<std::size_t>(bytes));
  const comm::Buffer values = comm::BufferOf(absl::MakeSpan(buffer));
  std::vector<double> samples;
  for (int i = 0; i < repetitions; ++i) {
    communicator.Barrier();
    const double seconds = SecondsOf([&] {
      for (int turn = 0; turn < kTurns && communicator.rank() < 2; ++turn) {
        if (communicator.rank() == 0) communicator.Send(values, 1, 0);
        communicator.Receive(values, 1 - communicator.rank(), 0);
        if (communicator.rank() == 1) communicator.Send(values, 0, 0);
      }
    });
    samples.push_back(seconds / (2 * kTurns));
  }
  return MedianOf(std::move(samples));
}

MessageCosts MeasureMessages(const comm::Communicator& communicator, std::int64_t state_bytes,
                             const std::function<void()>& work) {
  const std::int64_t bytes = std::max<std::int64_t>(8, state_bytes);
  MessageCosts costs;
  costs.latency_seconds = OneWaySeconds(communicator, 8, kRepetitions);
  const double more = OneWaySeconds(communicator, bytes, kRepetitions) - costs.latency_seconds;
  // By all bytes, so that latency_seconds + bytes * byte_seconds is what was measured for a state.
  costs.byte_seconds = std::max(0.0, more) / static_cast<double>(bytes);
  costs.contention = Contention(communicator, work);
  costs.hand_over_seconds = HandOver(communicator, bytes);
  return costs;
}

}  // namespace plait::mgrit::scaling
