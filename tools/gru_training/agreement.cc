#include "tools/gru_training/agreement.h"

#include <algorithm>
#include <cstddef>

#include "absl/types/span.h"

namespace plait::gru_training {
namespace {

absl::Span<std::byte> Bytes(std::string& text) {
  return absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), text.size());
}

}  // namespace

std::int64_t BroadcastNumber(const comm::Communicator& communicator, std::int64_t number) {
  std::int64_t numbers[1] = {number};
  communicator.Broadcast(comm::BufferOf(absl::MakeSpan(numbers)), 0);
  return numbers[0];
}

std::string BroadcastText(const comm::Communicator& communicator, const std::string& text) {
  std::string received = text;
  received.resize(BroadcastNumber(communicator, static_cast<std::int64_t>(text.size())));
  communicator.Broadcast(comm::BufferOf(Bytes(received)), 0);
  return received;
}

std::vector<std::string> GatherTexts(const comm::Communicator& communicator, const std::string& text) {
  std::vector<std::int64_t> sizes(communicator.size());
  const std::int64_t mine[1] = {static_cast<std::int64_t>(text.size())};
  communicator.AllGather(comm::ConstBufferOf(absl::MakeConstSpan(mine)),
                         comm::BufferOf(absl::MakeSpan(sizes)));
  // Equal parts: all texts are padded to the longest.
  const std::size_t room = *std::max_element(sizes.begin(), sizes.end());
  std::string padded = text;
  padded.resize(room);
  const bool root = communicator.rank() == 0;
  std::string all(root ? room * sizes.size() : 0, '\0');
  communicator.Gather(comm::BufferOf(Bytes(padded)), comm::BufferOf(Bytes(all)), 0);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; root && rank < sizes.size(); ++rank) {
    texts.push_back(all.substr(rank * room, sizes[rank]));
  }
  return texts;
}

bool AnyRank(const comm::Communicator& communicator, bool mine) {
  std::int64_t any[1] = {mine ? 1 : 0};
  communicator.AllReduce(comm::BufferOf(absl::MakeSpan(any)), comm::ReduceOp::kMax);
  return any[0] != 0;
}

}  // namespace plait::gru_training
