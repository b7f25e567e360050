#include "comm/call_fingerprint.h"

#include "absl/strings/str_cat.h"
#include "comm/transport_error.h"

namespace plait::comm {
namespace {

bool MovesData(Operation operation) {
  return operation != Operation::kBarrier && operation != Operation::kSplit;
}

}  // namespace

CallFingerprint FingerprintOf(const Request& request, std::int64_t sequence) {
  const ConstBuffer payload = Payload(request);
  return {.sequence = sequence,
          .count = request.operation == Operation::kAllToAllV ? 0 : payload.count,
          .root = request.root,
          .tag = request.tag,
          .operation = request.operation,
          .reduce = request.reduce,
          .type = payload.type};
}

std::string Describe(const CallFingerprint& call, absl::string_view group) {
  std::string text = absl::StrCat("#", call.sequence, " ", Name(call.operation));
  if (!group.empty()) absl::StrAppend(&text, "[", group, "]");
  if (MovesData(call.operation)) absl::StrAppend(&text, " ", Name(call.type), "[", call.count, "]");
  if (IsReduction(call.operation) && call.reduce != ReduceOp::kSum) {
    absl::StrAppend(&text, " ", Name(call.reduce));
  }
  if (!IsPointToPoint(call.operation) && call.root >= 0) absl::StrAppend(&text, " root ", call.root);
  if (call.tag != kNoTag) absl::StrAppend(&text, " tag ", call.tag);
  return text;
}

void CheckSameCall(const CallFingerprint& mine, int my_rank, const CallFingerprint& theirs, int their_rank) {
  if (mine == theirs) return;
  throw TransportError(absl::StrCat("rank ", my_rank, " of the group called ", Describe(mine, ""),
                                    " where rank ", their_rank, " called ", Describe(theirs, "")));
}

void CheckSameMessage(const MessageHeader& sent, int from, const MessageHeader& expected) {
  if (sent == expected) return;
  const auto text = [](const MessageHeader& m) { return absl::StrCat(Name(m.type), "[", m.count, "]"); };
  throw TransportError(absl::StrCat("receive from rank ", from, " of the group: ", text(sent), " was sent, ",
                                    text(expected), " was expected"));
}

}  // namespace plait::comm
