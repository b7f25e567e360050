#include "tests/benchmarks/timed_network.h"

#include <time.h>

#include <chrono>

namespace plait::benchmarks {
namespace {

class Clock {
 public:
  // Seconds since the last call, or since the clock was made.
  double Lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

double ProcessorSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

BatchSeconds TimedNetwork::RunBatch() {
  const mgrit::WorkTimes before = solver().work_times();
  communicator_.Barrier();
  const double messages_before = MessageSeconds(), processor_before = ProcessorSeconds();
  BatchSeconds seconds;
  Clock clock;
  ClearGradients();
  seconds.backward = clock.Lap();  // grows with the steps of this rank
  const at::Tensor opened = Open();
  const at::Tensor first = opened.detach().requires_grad_(opened.requires_grad());
  seconds.head = clock.Lap();
  const at::Tensor last = Propagate(first);
  seconds.forward = clock.Lap();
  const mgrit::WorkTimes ahead = solver().work_times().Since(before);
  const at::Tensor leaf = last.detach().requires_grad_();
  const at::Tensor loss = Loss(leaf);
  loss.backward();
  seconds.head += clock.Lap();
  last.backward(leaf.grad());
  seconds.backward += clock.Lap();
  if (opened.requires_grad()) opened.backward(first.grad());
  seconds.head += clock.Lap();
  seconds.processor = ProcessorSeconds() - processor_before;
  seconds.forward_solve = solver().last_forward().seconds + ahead.seconds[mgrit::WorkKind::kLinearisation];
  seconds.backward_solve = solver().last_backward().seconds;
  seconds.messages = MessageSeconds() - messages_before;
  seconds.work = solver().work_times().total_seconds() - before.total_seconds();
  last_loss_ = loss.item<double>();
  return seconds;
}

BatchSeconds TimedNetwork::RunSerialBatch() {
  const double processor_before = ProcessorSeconds();
  BatchSeconds seconds;
  Clock clock;
  ClearGradients();
  const at::Tensor loss = SerialLoss();
  loss.backward();
  seconds.head = clock.Lap();
  seconds.processor = ProcessorSeconds() - processor_before;
  last_loss_ = loss.item<double>();
  return seconds;
}

double TimedNetwork::MessageSeconds() const {
  double seconds = 0;
  for (const auto& [axis, operations] : communicator_.stats()) {
    for (const comm::OperationStats& operation : operations) seconds += operation.exposed_seconds;
  }
  return seconds;
}

}  // namespace plait::benchmarks
