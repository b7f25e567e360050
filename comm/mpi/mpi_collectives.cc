#include "comm/mpi/mpi_collectives.h"

#include <algorithm>
#include <cstring>

#include "comm/call_fingerprint.h"
#include "comm/half_precision.h"
#include "comm/mpi/mpi_types.h"
#include "comm/mpi/ring_collectives.h"

namespace plait::comm {
namespace {

// Above the tags of programs.
constexpr int kAllToAllVTag = 1 << 30;
constexpr int kFirstRingTag = kAllToAllVTag + 1;
constexpr std::int64_t kRingTags = kFirstFreeTag - kFirstRingTag;

// Issues one request; keeps what every part of it needs.
class Issuer {
 public:
  Issuer(const MpiGroup& group, MpiWork* work) : group_(group), work_(work) {}

  void Issue(const Request& request);

 private:
  // Every non-blocking call of MPI ends in the communicator and the request.
  template <typename Function, typename... Args>
  void Call(absl::string_view name, Function call, Args... args) {
    CheckMpi(call(args..., group_.comm, work_->AddRequest()), name);
  }

  // step(begin, count) for every message that `count` elements make, at least one.
  template <typename Step>
  void ForEachMessage(std::int64_t count, std::int64_t limit, Step step) {
    std::int64_t begin = 0;
    do {
      const std::int64_t length = std::min(std::max<std::int64_t>(limit, 1), count - begin);
      step(begin, length);
      begin += length;
    } while (begin < count);
  }
  // For operations on size() parts of `count` elements: one message holds the same piece of all parts.
  template <typename Step>
  void ForEachPiece(std::int64_t count, Step step) {
    ForEachMessage(count, group_.max_elements / group_.size, step);
  }

  void IssueWidened(const Request& request);
  void AllReduce(const Request& r);
  int RingTag() const;
  std::vector<Buffer> Pieces(Buffer whole, std::int64_t begin, std::int64_t count) const;
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
  void Gather(const Request& r);
  void Scatter(const Request& r);
  void SendWithHeader(const Request& r);
  void ReceiveWithHeader(const Request& r);
  void Send(ConstBuffer values, int to, int tag);
  void Receive(Buffer values, int from, int tag);
  void DivideBySize(Buffer values);

  const MpiGroup& group_;
  MpiWork* work_;
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

int Issuer::RingTag() const { return kFirstRingTag + static_cast<int>(group_.operation % kRingTags); }

// Below, one ring per message.
void Issuer::RingAllReduce(const Request& r) {
  ForEachMessage(r.out.count, group_.max_elements, [&](std::int64_t begin, std::int64_t count) {
    const std::vector<Buffer> parts = PartsOf(Slice(r.out, begin, count), group_.size);
    AddRingReduceScatter(group_, parts, parts[group_.rank], r.reduce, RingTag(), work_);
    AddRingAllGather(group_, parts, RingTag(), work_);
  });
  work_->Start();
}

// The same piece of every part of `whole`.
std::vector<Buffer> Issuer::Pieces(Buffer whole, std::int64_t begin, std::int64_t count) const {
  std::vector<Buffer> pieces;
  for (const Buffer& part : PartsOf(whole, group_.size)) pieces.push_back(Slice(part, begin, count));
  return pieces;
}

void Issuer::RingReduceScatter(const Request& r) {
  // Read only, but for this rank's part if that is r.out.
  const Buffer in = {const_cast<void*>(r.in.data), r.in.count, r.in.type};
  ForEachMessage(r.out.count, group_.max_elements, [&](std::int64_t begin, std::int64_t count) {
    AddRingReduceScatter(group_, Pieces(in, begin, count), Slice(r.out, begin, count), r.reduce, RingTag(),
                         work_);
  });
  work_->Start();
}

void Issuer::RingAllGather(const Request& r) {
  const Buffer own = Slice(r.out, group_.rank * r.in.count, r.in.count);
  if (own.data != r.in.data) std::memcpy(own.data, r.in.data, own.bytes());
  ForEachMessage(r.in.count, group_.max_elements, [&](std::int64_t begin, std::int64_t count) {
    AddRingAllGather(group_, Pieces(r.out, begin, count), RingTag(), work_);
  });
  work_->Start();
}

void Issuer::AllReduce(const Request& r) {
  if (GoesRound(group_, r)) return RingAllReduce(r);
  if (r.reduce == ReduceOp::kAverage) DivideBySize(r.out);
  ForEachMessage(r.out.count, group_.max_elements, [&](std::int64_t begin, std::int64_t count) {
    Call("MPI_Iallreduce", MPI_Iallreduce, MPI_IN_PLACE, Slice(r.out, begin, count).data,
         static_cast<int>(count), MpiType(r.out.type), MpiReduceOp(r.reduce, r.out.type));
  });
}

void Issuer::Reduce(const Request& r) {
  const bool is_root = group_.rank == r.root;
  if (is_root && r.reduce == ReduceOp::kAverage) DivideBySize(r.out);
  ForEachMessage(r.in.count, group_.max_elements, [&](std::int64_t begin, std::int64_t count) {
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
  ForEachMessage(r.out.count, group_.max_elements, [&](std::int64_t begin, std::int64_t count) {
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
  const bool in_place = r.in.data == r.out.data;
  const std::int64_t part = r.in.count / group_.size;
  ForEachPiece(part, [&](std::int64_t begin, std::int64_t count) {
    const void* in = in_place ? MPI_IN_PLACE : Slice(r.in, begin, count).data;
    const int n = static_cast<int>(count);
    if (count == part) {
      return Call("MPI_Ialltoall", MPI_Ialltoall, in, n, MpiType(r.in.type), r.out.data, n,
                  MpiType(r.out.type));
    }
    const StridedType piece(r.out.type, count, part);
    Call("MPI_Ialltoall", MPI_Ialltoall, in, 1, piece.get(), Slice(r.out, begin, count).data, 1, piece.get());
  });
}

// Messages between pairs: MPI's own form counts offsets in 32 bits, and ranks could not agree on when that
// suffices.
void Issuer::AllToAllV(const Request& r) {
  std::int64_t received = 0;
  for (int from = 0; from < group_.size; ++from) {
    const Buffer part = Slice(r.out, received, r.receive_counts[from]);
    if (from != group_.rank && part.count > 0) Receive(part, from, kAllToAllVTag);
    received += part.count;
  }
  std::int64_t sent = 0, own = 0;
  for (int to = 0; to < group_.size; ++to) {
    const ConstBuffer part = Slice(r.in, sent, r.send_counts[to]);
    if (to == group_.rank) own = sent;
    if (to != group_.rank && part.count > 0) Send(part, to, kAllToAllVTag);
    sent += part.count;
  }
  std::int64_t own_out = 0;
  for (int from = 0; from < group_.rank; ++from) own_out += r.receive_counts[from];
  const ConstBuffer mine = Slice(r.in, own, r.send_counts[group_.rank]);
  if (mine.count > 0) std::memcpy(Slice(r.out, own_out, mine.count).data, mine.data, mine.bytes());
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

// Ahead of a message, what it is: MPI compares no types, and a longer message than its buffer overwrites what
// lies behind it (Open MPI 4.1).
void Issuer::SendWithHeader(const Request& r) {
  auto* header = new (work_->AddScratch(sizeof(MessageHeader))) MessageHeader{r.in.count, r.in.type};
  Call("MPI_Isend", MPI_Isend, header, int{sizeof(MessageHeader)}, MPI_BYTE, r.root, r.tag);
  Send(r.in, r.root, r.tag);
}

void Issuer::ReceiveWithHeader(const Request& r) {
  auto* header = new (work_->AddScratch(sizeof(MessageHeader))) MessageHeader();
  Call("MPI_Irecv", MPI_Irecv, header, int{sizeof(MessageHeader)}, MPI_BYTE, r.root, r.tag);
  work_->AddStage([header, group = group_, out = r.out, from = r.root, tag = r.tag](MpiWork& work) {
    CheckSameMessage(*header, from, {out.count, out.type});
    Issuer(group, &work).Receive(out, from, tag);
  });
  work_->Start();
}

void Issuer::Send(ConstBuffer values, int to, int tag) {
  ForEachMessage(values.count, group_.max_elements, [&](std::int64_t begin, std::int64_t count) {
    Call("MPI_Isend", MPI_Isend, Slice(values, begin, count).data, static_cast<int>(count),
         MpiType(values.type), to, tag);
  });
}

void Issuer::Receive(Buffer values, int from, int tag) {
  const MPI_Datatype type = MpiType(values.type);
  ForEachMessage(values.count, group_.max_elements, [&](std::int64_t begin, std::int64_t count) {
    const int n = static_cast<int>(count);
    void* data = Slice(values, begin, count).data;
    CheckMpi(MPI_Irecv(data, n, type, from, tag, group_.comm, work_->AddRequest()), "MPI_Irecv");
    work_->ExpectCount(n, type, from);
  });
}

void Issuer::Issue(const Request& request) {
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
      return SendWithHeader(request);
    case Operation::kReceive:
      return ReceiveWithHeader(request);
    case Operation::kBarrier:
    case Operation::kSplit:
      return Call("MPI_Ibarrier", MPI_Ibarrier);
  }
}

}  // namespace

bool GoesRound(const MpiGroup& group, const Request& r) {
  if (group.size == 1) return false;
  const bool widened = IsReduction(r.operation) && IsHalfPrecision(Payload(r).type);
  switch (r.operation) {
    case Operation::kAllReduce:
    case Operation::kAllGather:
      return r.out.bytes() * (widened ? 2 : 1) >= group.ring_bytes;
    case Operation::kReduceScatter:
      return r.in.bytes() * (widened ? 2 : 1) >= group.ring_bytes;
    default:
      return false;
  }
}

void IssueOperation(const MpiGroup& group, const Request& request, MpiWork* work) {
  Issuer(group, work).Issue(request);
}

}  // namespace plait::comm
