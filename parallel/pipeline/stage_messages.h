// Messages between pipeline stages: hidden states to the next one, their gradients back. Private to parallel/pipeline.
//
//   messages.Post(message, input_shape);                  // the receive, ahead of its use
//   messages.Send(message, input_shape, {hidden});
//   std::vector<at::Tensor> tensors = messages.Take(message, input_shape);   // waits
//
// A message is identified by direction, receiving stage and micro-batch; between two stages of one rank no data is
// sent. Types and sizes of the tensors are announced before the first message of each input shape, and kept; gradients
// have those of their hidden states. All ranks of the axis must pass the same input shape for the same micro-batch.
#ifndef PLAIT_PARALLEL_PIPELINE_STAGE_MESSAGES_H_
#define PLAIT_PARALLEL_PIPELINE_STAGE_MESSAGES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/tensor_collectives.h"

namespace plait::parallel {

struct StageMessage {
  bool forward = true;
  int stage = 0;  // the receiving stage
  int micro_batch = 0;

  int sender() const { return forward ? stage - 1 : stage + 1; }
  friend auto operator<=>(const StageMessage&, const StageMessage&) = default;
};

using InputShape = std::vector<std::int64_t>;

class StageMessages {
 public:
  // Collective. Splits the axis once per direction, and once for announcements, which are counted separately from the
  // traffic of steps (axis "pp_shapes" of comm's counters).
  StageMessages(const comm::Communicator& pp, std::vector<int> rank_of_stage, at::Device device);

  // Starts the receive, unless it was started already or the sender is this rank. False if its sizes are not known yet:
  // then no later message may be posted, as NCCL matches messages of two ranks by their order.
  bool Post(const StageMessage& message, const InputShape& input);
  // Waits for the message and returns its tensors.
  std::vector<at::Tensor> Take(const StageMessage& message, const InputShape& input);
  // Starts the send. The program ends if types or sizes differ from those of the first message of this input shape.
  void Send(const StageMessage& message, const InputShape& input, std::vector<at::Tensor> tensors);

  void PollSends();
  void WaitForSends();
  // Total time spent waiting in Take and WaitForSends.
  std::int64_t waited_ns() const { return waited_ns_; }

 private:
  struct TensorShape {
    at::ScalarType type = at::kFloat;
    std::vector<std::int64_t> sizes = {};
    friend bool operator==(const TensorShape&, const TensorShape&) = default;
  };
  using Shapes = std::vector<TensorShape>;
  struct Incoming {
    std::vector<at::Tensor> tensors;
    std::vector<comm::TensorWork> works;
  };

  const comm::Communicator& ChannelOf(const StageMessage& m) const {
    return m.forward ? forward_ : backward_;
  }
  int Tag(const StageMessage& message, int part) const;
  // The shapes between two stages; null: not known yet.
  Shapes* ShapesOf(const StageMessage& message, const InputShape& input);
  void Announce(const StageMessage& message, const Shapes& shapes);
  Shapes ReceiveAnnouncement(const StageMessage& message) const;

  comm::Communicator forward_, backward_, shapes_channel_;
  std::vector<int> rank_of_stage_;
  int rank_;
  at::Device device_;
  std::map<std::pair<int, InputShape>, Shapes> shapes_;  // by the earlier stage
  std::map<StageMessage, Incoming> incoming_;
  std::map<StageMessage, std::vector<at::Tensor>> handed_over_;
  std::vector<comm::TensorWork> sends_;
  std::int64_t waited_ns_ = 0;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PIPELINE_STAGE_MESSAGES_H_
