#include "parallel/pipeline/stage_messages.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/check.h"

namespace plait::parallel {
namespace {

constexpr int kMostTensors = 2, kMostDimensions = 8;
constexpr int kParts = kMostTensors + 1;  // an announcement and the tensors

// Number of tensors, then for each: type, dimensions, sizes.
using Announcement = std::array<std::int64_t, 1 + kMostTensors*(2 + kMostDimensions)>;

comm::Communicator ChannelFrom(const comm::Communicator& pp, at::Device device) {
  if (pp.size() == 1) return pp;
  comm::Communicator channel = pp.Split(0, pp.rank(), pp.name());
  // All ranks must create the device's transport together, whereas a message involves only two.
  if (!device.is_cpu()) channel.OnCuda(device.index());
  return channel;
}

std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

StageMessages::StageMessages(const comm::Communicator& pp, std::vector<int> rank_of_stage, at::Device device)
    : forward_(ChannelFrom(pp, device)),
      backward_(ChannelFrom(pp, device)),
      shapes_channel_(pp.size() == 1 ? pp : pp.Split(0, pp.rank(), pp.name() + "_shapes")),
      rank_of_stage_(std::move(rank_of_stage)),
      rank_(pp.rank()),
      device_(device) {}

int StageMessages::Tag(const StageMessage& message, int part) const {
  const int stages = static_cast<int>(rank_of_stage_.size());
  return (message.micro_batch * stages + message.stage) * kParts + part;
}

StageMessages::Shapes* StageMessages::ShapesOf(const StageMessage& message, const InputShape& input) {
  const auto found = shapes_.find({std::min(message.stage, message.sender()), input});
  return found == shapes_.end() ? nullptr : &found->second;
}

bool StageMessages::Post(const StageMessage& message, const InputShape& input) {
  const int from = rank_of_stage_[message.sender()];
  if (from == rank_ || incoming_.count(message) > 0) return true;
  const Shapes* shapes = ShapesOf(message, input);
  if (shapes == nullptr) return false;
  Incoming& incoming = incoming_[message];
  int part = 1;
  for (const TensorShape& shape : *shapes) {
    at::Tensor tensor = at::empty(shape.sizes, at::TensorOptions(shape.type).device(device_));
    incoming.works.push_back(comm::ReceiveAsync(ChannelOf(message), tensor, from, Tag(message, part++)));
    incoming.tensors.push_back(std::move(tensor));
  }
  return true;
}

std::vector<at::Tensor> StageMessages::Take(const StageMessage& message, const InputShape& input) {
  if (rank_of_stage_[message.sender()] == rank_) {
    return std::move(handed_over_.extract(message).mapped());
  }
  const std::int64_t begin = NowNs();
  if (ShapesOf(message, input) == nullptr) shapes_[{message.sender(), input}] = ReceiveAnnouncement(message);
  Post(message, input);
  Incoming incoming = std::move(incoming_.extract(message).mapped());
  for (comm::TensorWork& work : incoming.works) work.Wait();
  waited_ns_ += NowNs() - begin;
  return std::move(incoming.tensors);
}

void StageMessages::Send(const StageMessage& message, const InputShape& input,
                         std::vector<at::Tensor> tensors) {
  const int to = rank_of_stage_[message.stage];
  if (to == rank_) {
    handed_over_[message] = std::move(tensors);
    return;
  }
  Shapes shapes;
  for (const at::Tensor& tensor : tensors) shapes.push_back({tensor.scalar_type(), tensor.sizes().vec()});
  const Shapes* const known = ShapesOf(message, input);
  if (known == nullptr) {
    Announce(message, shapes);
    shapes_[{message.sender(), input}] = shapes;
  }
  PLAIT_CHECK(known == nullptr || *known == shapes)
      << "stage " << message.sender() << " gives hidden states of shape " << tensors[0].sizes()
      << " for micro-batch " << message.micro_batch << ", but has given "
      << at::IntArrayRef((*known)[0].sizes)
      << " for inputs of the same shape; stages need shapes that follow from the input's";
  int part = 1;
  for (const at::Tensor& tensor : tensors) {
    sends_.push_back(comm::SendAsync(ChannelOf(message), tensor, to, Tag(message, part++)));
  }
}

void StageMessages::Announce(const StageMessage& message, const Shapes& shapes) {
  Announcement text = {static_cast<std::int64_t>(shapes.size())};
  std::size_t at = 1;
  for (const TensorShape& shape : shapes) {
    PLAIT_CHECK(shape.sizes.size() <= kMostDimensions) << shape.sizes.size() << " dimensions between stages";
    text[at++] = static_cast<std::int64_t>(shape.type);
    text[at++] = static_cast<std::int64_t>(shape.sizes.size());
    for (const std::int64_t size : shape.sizes) text[at++] = size;
  }
  shapes_channel_.Send(comm::ConstBufferOf(absl::MakeConstSpan(text)), rank_of_stage_[message.stage],
                       Tag(message, 0));
}

StageMessages::Shapes StageMessages::ReceiveAnnouncement(const StageMessage& message) const {
  Announcement text;
  shapes_channel_.Receive(comm::BufferOf(absl::MakeSpan(text)), rank_of_stage_[message.sender()],
                          Tag(message, 0));
  Shapes shapes(static_cast<std::size_t>(text[0]));
  std::size_t at = 1;
  for (TensorShape& shape : shapes) {
    shape.type = static_cast<at::ScalarType>(text[at++]);
    shape.sizes.resize(static_cast<std::size_t>(text[at++]));
    for (std::int64_t& size : shape.sizes) size = text[at++];
  }
  return shapes;
}

void StageMessages::PollSends() {
  sends_.erase(
      std::remove_if(sends_.begin(), sends_.end(), [](comm::TensorWork& work) { return work.Test(); }),
      sends_.end());
}

void StageMessages::WaitForSends() {
  const std::int64_t begin = NowNs();
  for (comm::TensorWork& work : sends_) work.Wait();
  sends_.clear();
  waited_ns_ += NowNs() - begin;
}

}  // namespace plait::parallel
