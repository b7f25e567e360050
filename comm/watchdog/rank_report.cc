#include "comm/watchdog/rank_report.h"

#include "comm/byte_stream.h"

namespace plait::comm {
namespace {

void WriteCall(const CallRecord& call, ByteWriter& to) {
  to.Write(call.id);
  to.Write(call.group);
  to.Write(call.sequence);
  to.Write(call.operation);
  to.Write(call.reduce);
  to.Write(call.type);
  to.Write(call.count);
  to.Write(call.root);
  to.Write(call.tag);
  to.Write(call.state);
  to.Write(call.entered_seconds);
  to.Write(call.waiting_since_seconds);
  to.Write(call.completed_seconds);
  to.WriteText(call.file);
  to.Write(call.line);
  to.WriteText(call.phase);
}

CallRecord ReadCall(ByteReader& from) {
  CallRecord call;
  call.id = from.Read<std::int64_t>();
  call.group = from.Read<std::uint64_t>();
  call.sequence = from.Read<std::int64_t>();
  call.operation = from.Read<Operation>();
  call.reduce = from.Read<ReduceOp>();
  call.type = from.Read<DataType>();
  call.count = from.Read<std::int64_t>();
  call.root = from.Read<int>();
  call.tag = from.Read<int>();
  call.state = from.Read<CallState>();
  call.entered_seconds = from.Read<double>();
  call.waiting_since_seconds = from.Read<double>();
  call.completed_seconds = from.Read<double>();
  call.file = from.ReadText();
  call.line = from.Read<int>();
  call.phase = from.ReadText();
  return call;
}

}  // namespace

const CallRecord* Position::Waiting() const {
  for (const CallRecord& call : calls) {
    if (call.state == CallState::kWaiting) return &call;
  }
  return nullptr;
}

double Position::WaitingSeconds() const {
  const CallRecord* call = Waiting();
  return call == nullptr ? 0 : at_seconds - call->waiting_since_seconds;
}

Position TakePosition(const FlightRecorder& recorder, int calls) {
  Position position{.phase = recorder.Phase(),
                    .failure = "",
                    .groups = recorder.Groups(),
                    .calls = recorder.Calls(),
                    .at_seconds = FlightRecorder::Now()};
  const auto total = static_cast<int>(position.calls.size());
  if (total <= calls) return position;
  std::vector<CallRecord> latest(position.calls.end() - calls, position.calls.end());
  // A wait for a call from long ago is what the others need to know.
  if (const CallRecord* waiting = position.Waiting(); waiting != nullptr && waiting->id < latest.front().id) {
    latest.front() = *waiting;
  }
  position.calls = std::move(latest);
  return position;
}

std::string Encode(const Position& position) {
  ByteWriter to;
  to.WriteText(position.phase);
  to.WriteText(position.failure);
  to.Write(position.at_seconds);
  to.Write(static_cast<std::uint32_t>(position.groups.size()));
  for (const auto& [id, group] : position.groups) {
    to.Write(id);
    to.WriteText(group.name);
    to.Write(group.collectives);
    to.Write(group.messages);
    to.WriteNumbers(group.members);
  }
  to.Write(static_cast<std::uint32_t>(position.calls.size()));
  for (const CallRecord& call : position.calls) WriteCall(call, to);
  return to.Take();
}

std::optional<Position> DecodePosition(absl::string_view bytes) {
  ByteReader from(bytes);
  Position position;
  position.phase = from.ReadText();
  position.failure = from.ReadText();
  position.at_seconds = from.Read<double>();
  for (auto left = from.Read<std::uint32_t>(); left > 0 && from.ok(); --left) {
    RecordedGroup& group = position.groups[from.Read<std::uint64_t>()];
    group.name = from.ReadText();
    group.collectives = from.Read<std::int64_t>();
    group.messages = from.Read<std::int64_t>();
    group.members = from.ReadNumbers<int>();
  }
  for (auto left = from.Read<std::uint32_t>(); left > 0 && from.ok(); --left) {
    position.calls.push_back(ReadCall(from));
  }
  if (!from.ok()) return std::nullopt;
  return position;
}

}  // namespace plait::comm
