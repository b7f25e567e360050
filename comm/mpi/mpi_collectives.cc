#include "comm/mpi/mpi_collectives.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "comm/half_precision.h"
#include "comm/mpi/mpi_types.h"
#include "comm/mpi/ring_collectives.h"
#include "comm/transport_error.h"

namespace plait::comm {
namespace {

// Below the eager limit of all of Open MPI's transports: such messages are truncated if they do not fit.
constexpr std::int64_t kShortBytes = 2048;

// Issues one request; keeps what every part of it needs.
class Issuer {
 public:
  Issuer(const MpiGroup& group, MpiWork* work, const CallFingerprint& call = {})
      : group_(group), work_(work), call_(call) {}

  void Issue(const Request& request);

 private:
  // The last arguments of every non-blocking MPI call are the communicator and the request.
  template <typename Function, typename... Args>
  void Call(absl::string_view name, Function call, Args... args) {
    CheckMpi(call(args..., group_.comm, work_->AddRequest()), name);
  }

  // Calls step(begin, count) for each message of at most `limit` elements; at least once.
  template <typename Step>
  void ForEachMessage(std::int64_t count, std::int64_t limit, Step step) {
    std::int64_t begin = 0;
    do {
      const std::int64_t length = std::min(std::max<std::int64_t>(limit, 1), count - begin);
      step(begin, length);
      begin += length;
    } while (begin < count);
  }
  template <typename Step>
  void ForEachMessage(std::int64_t count, Step step) {
    ForEachMessage(count, group_.max_elements, step);
  }
  // For operations on size() parts of `count` elements: one message holds the same piece of all parts.
  template <typename Step>
  void ForEachPiece(std::int64_t count, Step step) {
    ForEachMessage(count, group_.max_elements / group_.size, step);
  }

  void IssueWidened(const Request& request);
  void AllReduce(const Request& r);
  void RingAllReduce(const Request& r);
  void RingReduceScatter(const Request& r);
  void RingAllGather(const Request& r);
  void Reduce(const Request& r);
  void ReduceScatter(const Request& r);
  void ReduceScatterPiece(const Request& r, Buffer out, std::int64_t begin, std::int64_t count);
  void Broadcast(const Request& r);
  void AllGather(const Request& r);
  void AllToAll(const Request& r);
  void AllToAllV(const Request& r);
  void ReceiveParts(const Request& r, const MessageHeader* headers);
  void Gather(const Request& r);
  void Scatter(const Request& r);
  void SendWithHeader(ConstBuffer values, int to, int tag);
  void ReceiveHeader(MessageHeader* header, int from, int tag);
  void ReceiveWithHeader(const Request& r);
  void Receive(Buffer values, int from, int tag);
  void DivideBySize(Buffer values);

  const MpiGroup& group_;
  MpiWork* work_;
  const CallFingerprint call_;
};

template <typename T>
void Divide(Buffer values, int divisor) {
  auto* data = static_cast<T*>(values.data);
  for (std::int64_t i = 0; i < values.count; ++i) data[i] /= static_cast<T>(divisor);
}

void Issuer::DivideBySize(Buffer values) {
  work_->AtEnd([values, size = group_.size] {
    values.type == DataType::kFloat32 ? Divide<float>(values, size) : Divide<double>(values, size);
  });
}

void Issuer::IssueWidened(const Request& request) {
  const auto floats = [this](std::int64_t count) {
    return reinterpret_cast<float*>(work_->AddScratch(count * SizeInBytes(DataType::kFloat32)));
  };
  const ConstBuffer source = Payload(request);
  Request wide = request;
  float* in = floats(source.count);
  Widen(source, in);
  wide.in = {in, request.in.count, DataType::kFloat32};
  float* out = request.operation == Operation::kAllReduce ? in : floats(request.out.count);
  wide.out = {out, request.out.count, DataType::kFloat32};
  const bool receives = request.operation != Operation::kReduce || group_.rank == request.root;
  if (receives) work_->AtEnd([out, narrow = request.out] { Narrow(out, narrow); });
  Issue(wide);
}

void Issuer::RingAllReduce(const Request& r) {
  const std::vector<Buffer> parts = PartsOf(r.out, group_.size);
  AddRingReduceScatter(group_, parts, parts[group_.rank], r.reduce, &call_, work_);
  AddRingAllGather(group_, parts, /*call=*/nullptr, work_);
  work_->Start();
}

void Issuer::RingReduceScatter(const Request& r) {
  // Read only, but for this rank's part if that is r.out.
  const Buffer in = {const_cast<void*>(r.in.data), r.in.count, r.in.type};
  AddRingReduceScatter(group_, PartsOf(in, group_.size), r.out, r.reduce, &call_, work_);
  work_->Start();
}

void Issuer::RingAllGather(const Request& r) {
  const Buffer own = Slice(r.out, group_.rank * r.in.count, r.in.count);
  if (own.data != r.in.data) std::memcpy(own.data, r.in.data, own.bytes());
  AddRingAllGather(group_, PartsOf(r.out, group_.size), &call_, work_);
  work_->Start();
}

void Issuer::AllReduce(const Request& r) {
  if (GoesRound(group_, r)) return RingAllReduce(r);
  if (r.reduce == ReduceOp::kAverage) DivideBySize(r.out);
  ForEachMessage(r.out.count, [&](std::int64_t begin, std::int64_t count) {
    Call("MPI_Iallreduce", MPI_Iallreduce, MPI_IN_PLACE, Slice(r.out, begin, count).data,
         static_cast<int>(count), MpiType(r.out.type), MpiReduceOp(r.reduce, r.out.type));
  });
}

void Issuer::Reduce(const Request& r) {
  const bool is_root = group_.rank == r.root;
  if (is_root && r.reduce == ReduceOp::kAverage) DivideBySize(r.out);
  ForEachMessage(r.in.count, [&](std::int64_t begin, std::int64_t count) {
    void* out = is_root ? Slice(r.out, begin, count).data : nullptr;
    const void* in = Slice(r.in, begin, count).data;
    Call("MPI_Ireduce", MPI_Ireduce, is_root && in == out ? MPI_IN_PLACE : in, out, static_cast<int>(count),
         MpiType(r.in.type), MpiReduceOp(r.reduce, r.in.type), r.root);
  });
}

void Issuer::ReduceScatter(const Request& r) {
  if (GoesRound(group_, r)) return RingReduceScatter(r);
  Buffer out = r.out;
  const auto* in_begin = static_cast<const std::byte*>(r.in.data);
  const auto* out_begin = static_cast<const std::byte*>(r.out.data);
  if (out.count > 0 && out_begin >= in_begin && out_begin < in_begin + r.in.bytes()) {
    // In place: MPI's own form would overwrite the parts of others.
    out.data = work_->AddScratch(out.bytes());
    work_->AtEnd([out, to = r.out] { std::memcpy(to.data, out.data, out.bytes()); });
  }
  if (r.reduce == ReduceOp::kAverage) DivideBySize(out);
  ForEachPiece(r.out.count,
               [&](std::int64_t begin, std::int64_t count) { ReduceScatterPiece(r, out, begin, count); });
}

void Issuer::ReduceScatterPiece(const Request& r, Buffer out, std::int64_t begin, std::int64_t count) {
  const void* in = r.in.data;
  if (count < r.out.count) {  // the pieces of all parts, side by side
    const std::int64_t bytes = count * SizeInBytes(r.in.type);
    std::byte* packed = work_->AddScratch(bytes * group_.size);
    for (int part = 0; part < group_.size; ++part) {
      std::memcpy(packed + part * bytes, Slice(r.in, part * r.out.count + begin, count).data, bytes);
    }
    in = packed;
  }
  Call("MPI_Ireduce_scatter_block", MPI_Ireduce_scatter_block, in, Slice(out, begin, count).data,
       static_cast<int>(count), MpiType(r.in.type), MpiReduceOp(r.reduce, r.in.type));
}

void Issuer::Broadcast(const Request& r) {
  ForEachMessage(r.out.count, [&](std::int64_t begin, std::int64_t count) {
    Call("MPI_Ibcast", MPI_Ibcast, Slice(r.out, begin, count).data, static_cast<int>(count),
         MpiType(r.out.type), r.root);
  });
}

void Issuer::AllGather(const Request& r) {
  if (GoesRound(group_, r)) return RingAllGather(r);
  const bool in_place = r.in.data == Slice(r.out, group_.rank * r.in.count, r.in.count).data;
  ForEachPiece(r.in.count, [&](std::int64_t begin, std::int64_t count) {
    const void* in = in_place ? MPI_IN_PLACE : Slice(r.in, begin, count).data;
    const int n = static_cast<int>(count);
    if (count == r.in.count) {
      return Call("MPI_Iallgather", MPI_Iallgather, in, n, MpiType(r.in.type), r.out.data, n,
                  MpiType(r.out.type));
    }
    const StridedType piece(r.out.type, count, r.in.count);
    Call("MPI_Iallgather", MPI_Iallgather, in, n, MpiType(r.in.type), Slice(r.out, begin, count).data, 1,
         piece.get());
  });
}

void Issuer::AllToAll(const Request& r) {
  Request parts = r;
  parts.send_counts.assign(group_.size, r.in.count / group_.size);
  parts.receive_counts = parts.send_counts;
  if (r.in.data == r.out.data && r.in.count > 0) {
    std::byte* copy = work_->AddScratch(r.in.bytes());
    std::memcpy(copy, r.in.data, r.in.bytes());
    parts.in.data = copy;
  }
  AllToAllV(parts);
}

// Point-to-point messages, as in MPI's own implementations, but each after a header. MPI_Alltoallv has 32-bit offsets,
// and ranks could not agree locally on whether these suffice.
void Issuer::AllToAllV(const Request& r) {
  const int tag = TagOf(MessageKind::kPart, group_);
  auto* headers = reinterpret_cast<MessageHeader*>(work_->AddScratch(group_.size * sizeof(MessageHeader)));
  for (int from = 0; from < group_.size; ++from) {
    new (headers + from) MessageHeader{r.receive_counts[from], r.out.type};
    if (from != group_.rank) ReceiveHeader(headers + from, from, tag);
  }
  std::int64_t sent = 0;
  for (int to = 0; to < group_.size; ++to) {
    const ConstBuffer part = Slice(r.in, sent, r.send_counts[to]);
    if (to != group_.rank) SendWithHeader(part, to, tag);
    sent += part.count;
  }
  work_->AddStage(
      [headers, group = group_, r](MpiWork& work) { Issuer(group, &work).ReceiveParts(r, headers); });
  const auto mine = [&](const std::vector<std::int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.begin() + group_.rank, std::int64_t{0});
  };
  const ConstBuffer own = Slice(r.in, mine(r.send_counts), r.send_counts[group_.rank]);
  if (own.count > 0) std::memcpy(Slice(r.out, mine(r.receive_counts), own.count).data, own.data, own.bytes());
  work_->Start();
}

void Issuer::ReceiveParts(const Request& r, const MessageHeader* headers) {
  std::int64_t received = 0;
  for (int from = 0; from < group_.size; ++from) {
    const Buffer part = Slice(r.out, received, r.receive_counts[from]);
    CheckSameMessage(headers[from], from, {part.count, part.type});
    if (from != group_.rank) Receive(part, from, TagOf(MessageKind::kPart, group_));
    received += part.count;
  }
}

void Issuer::Gather(const Request& r) {
  const bool is_root = group_.rank == r.root;
  const bool in_place = is_root && r.in.data == Slice(r.out, group_.rank * r.in.count, r.in.count).data;
  ForEachPiece(r.in.count, [&](std::int64_t begin, std::int64_t count) {
    const StridedType piece(r.in.type, count, r.in.count);
    Call("MPI_Igather", MPI_Igather, in_place ? MPI_IN_PLACE : Slice(r.in, begin, count).data,
         static_cast<int>(count), MpiType(r.in.type), is_root ? Slice(r.out, begin, count).data : nullptr, 1,
         piece.get(), r.root);
  });
}

void Issuer::Scatter(const Request& r) {
  const bool is_root = group_.rank == r.root;
  const bool in_place = is_root && r.out.data == Slice(r.in, group_.rank * r.out.count, r.out.count).data;
  ForEachPiece(r.out.count, [&](std::int64_t begin, std::int64_t count) {
    const StridedType piece(r.out.type, count, r.out.count);
    Call("MPI_Iscatter", MPI_Iscatter, is_root ? Slice(r.in, begin, count).data : nullptr, 1, piece.get(),
         in_place ? MPI_IN_PLACE : Slice(r.out, begin, count).data, static_cast<int>(count),
         MpiType(r.out.type), r.root);
  });
}

// Sends type and count before the values: MPI does not compare types, and a message that is too long overwrites memory
// after the receive buffer.
void Issuer::SendWithHeader(ConstBuffer values, int to, int tag) {
  constexpr int kBytes = sizeof(MessageHeader);
  auto* header = new (work_->AddScratch(kBytes)) MessageHeader{values.count, values.type};
  CheckMpi(MPI_Isend(header, kBytes, MPI_BYTE, to, tag, group_.comm, work_->AddLateRequest()), "MPI_Isend");
  ForEachMessage(values.count, [&](std::int64_t begin, std::int64_t count) {
    CheckMpi(MPI_Isend(Slice(values, begin, count).data, static_cast<int>(count), MpiType(values.type), to,
                       tag, group_.comm, work_->AddLateRequest()),
             "MPI_Isend");
  });
}

void Issuer::ReceiveHeader(MessageHeader* header, int from, int tag) {
  Call("MPI_Irecv", MPI_Irecv, header, int{sizeof(MessageHeader)}, MPI_BYTE, from, tag);
}

// Receives with the same source and tag run one after the other, so that values are not matched with another header.
void Issuer::ReceiveWithHeader(const Request& r) {
  auto* header = new (work_->AddScratch(sizeof(MessageHeader))) MessageHeader();
  const auto first = [open = group_.open_receives, from = r.root, tag = r.tag] {
    return std::find_if(open->begin(), open->end(),
                        [&](const OpenReceive& o) { return o.from == from && o.tag == tag; });
  };
  group_.open_receives->push_back({r.root, r.tag, work_});
  work_->AddStageWhen(
      [first, work = work_] { return first()->work == work; },
      [=, group = group_](MpiWork& work) { Issuer(group, &work).ReceiveHeader(header, r.root, r.tag); });
  work_->AddStage([=, group = group_](MpiWork& work) {
    CheckSameMessage(*header, r.root, {r.out.count, r.out.type});
    Issuer(group, &work).Receive(r.out, r.root, r.tag);
    group.open_receives->erase(first());
  });
  work_->Start();
}

void Issuer::Receive(Buffer values, int from, int tag) {
  ForEachMessage(values.count, [&](std::int64_t begin, std::int64_t count) {
    Call("MPI_Irecv", MPI_Irecv, Slice(values, begin, count).data, static_cast<int>(count),
         MpiType(values.type), from, tag);
  });
}

void Issuer::Issue(const Request& request) {
  if (IsPointToPoint(request.operation) && request.tag >= group_.tags.neighbor_check) {
    throw TransportError(absl::StrCat("tag ", request.tag, " of a message: this MPI has them up to ",
                                      group_.tags.neighbor_check - 1));
  }
  if (IsReduction(request.operation) && IsHalfPrecision(Payload(request).type)) return IssueWidened(request);
  switch (request.operation) {
    case Operation::kAllReduce:
      return AllReduce(request);
    case Operation::kBroadcast:
      return Broadcast(request);
    case Operation::kAllGather:
      return AllGather(request);
    case Operation::kReduceScatter:
      return ReduceScatter(request);
    case Operation::kAllToAll:
      return AllToAll(request);
    case Operation::kAllToAllV:
      return AllToAllV(request);
    case Operation::kReduce:
      return Reduce(request);
    case Operation::kGather:
      return Gather(request);
    case Operation::kScatter:
      return Scatter(request);
    case Operation::kSend:
      SendWithHeader(request.in, request.root, request.tag);
      return;
    case Operation::kReceive:
      return ReceiveWithHeader(request);
    case Operation::kBarrier:
    case Operation::kSplit:
      return Call("MPI_Ibarrier", MPI_Ibarrier);
  }
}

// Half precision is reduced in float32.
std::int64_t BytesInMessages(const MpiGroup& group, const Request& r) {
  const DataType type = Payload(r).type;
  const bool widened = IsReduction(r.operation) && IsHalfPrecision(type);
  return WholeCount(r, group.size) * SizeInBytes(type) * (widened ? 2 : 1);
}

}  // namespace

std::int64_t WholeCount(const Request& r, int size) {
  const bool is_part = r.operation == Operation::kAllGather || r.operation == Operation::kGather ||
                       r.operation == Operation::kScatter;
  return Payload(r).count * (is_part ? size : 1);
}

bool GoesRound(const MpiGroup& group, const Request& r) {
  const bool has_ring = r.operation == Operation::kAllReduce || r.operation == Operation::kAllGather ||
                        r.operation == Operation::kReduceScatter;
  return has_ring && group.size > 1 && BytesInMessages(group, r) >= group.ring_bytes;
}

bool GoesInPairs(const Request& r) {
  return r.operation == Operation::kAllToAll || r.operation == Operation::kAllToAllV;
}

bool IsShort(const MpiGroup& group, const Request& r) { return BytesInMessages(group, r) <= kShortBytes; }

void IssueOperation(const MpiGroup& group, const Request& request, MpiWork* work,
                    const CallFingerprint& call) {
  Issuer(group, work, call).Issue(request);
}

}  // namespace plait::comm
