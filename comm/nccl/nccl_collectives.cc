#include "comm/nccl/nccl_collectives.h"

#include "comm/nccl/nccl_check.h"

namespace plait::comm {
namespace {

ncclDataType_t NcclType(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return ncclFloat32;
    case DataType::kFloat64:
      return ncclFloat64;
    case DataType::kBFloat16:
      return ncclBfloat16;
    case DataType::kFloat16:
      return ncclFloat16;
    case DataType::kInt64:
      return ncclInt64;
    case DataType::kInt32:
      return ncclInt32;
    case DataType::kUInt8:
    case DataType::kBool:
      return ncclUint8;
  }
  return ncclUint8;
}

// For 0 and 1, logical or is the maximum, and logical and the minimum.
ncclRedOp_t NcclReduceOp(ReduceOp op, DataType type, int size) {
  const bool logical = type == DataType::kBool;
  switch (op) {
    case ReduceOp::kSum:
      return logical ? ncclMax : ncclSum;
    case ReduceOp::kProduct:
      return logical ? ncclMin : ncclProd;
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
    case ReduceOp::kAverage:
      // In a group of one, NCCL 2.28 leaves elements out when it averages into another buffer.
      return size == 1 ? ncclSum : ncclAvg;
  }
  return ncclSum;
}

void Copy(const NcclGroup& g, Buffer to, ConstBuffer from) {
  if (from.count == 0 || to.data == from.data) return;
  CheckCuda(cudaMemcpyAsync(to.data, from.data, from.bytes(), cudaMemcpyDeviceToDevice, g.stream),
            "cudaMemcpyAsync");
}

void Send(const NcclGroup& g, ConstBuffer part, int to) {
  if (part.count > 0)
    CheckNccl(ncclSend(part.data, part.count, NcclType(part.type), to, g.comm, g.stream), "ncclSend");
}

void Receive(const NcclGroup& g, Buffer part, int from) {
  if (part.count > 0)
    CheckNccl(ncclRecv(part.data, part.count, NcclType(part.type), from, g.comm, g.stream), "ncclRecv");
}

// ncclGroupStart to ncclGroupEnd: the messages are sent concurrently, so their order cannot cause a deadlock.
class MessageGroup {
 public:
  MessageGroup() { CheckNccl(ncclGroupStart(), "ncclGroupStart"); }
  void End() { CheckNccl(ncclGroupEnd(), "ncclGroupEnd"); }
};

using Counts = std::vector<std::int64_t>;

void Exchange(const NcclGroup& g, ConstBuffer in, const Counts& send_counts, Buffer out,
              const Counts& receive_counts) {
  MessageGroup messages;
  std::int64_t sent = 0, received = 0, own_sent = 0, own_received = 0;
  for (int peer = 0; peer < g.size; ++peer) {
    if (peer == g.rank) {
      own_sent = sent;
      own_received = received;
    } else {
      Send(g, Slice(in, sent, send_counts[peer]), peer);
      Receive(g, Slice(out, received, receive_counts[peer]), peer);
    }
    sent += send_counts[peer];
    received += receive_counts[peer];
  }
  messages.End();
  const std::int64_t own = send_counts[g.rank];
  Copy(g, Slice(out, own_received, own), Slice(in, own_sent, own));
}

void AllToAll(const NcclGroup& g, const Request& r) {
  const Counts counts(g.size, r.in.count / g.size);
  if (r.in.data != r.out.data) return Exchange(g, r.in, counts, r.out, counts);
  const DeviceScratch scratch(r.in.bytes(), g.stream);
  const Buffer copy = {scratch.data(), r.in.count, r.in.type, Device::kCuda};
  Copy(g, copy, r.in);
  Exchange(g, copy, counts, r.out, counts);
}

void Gather(const NcclGroup& g, const Request& r) {
  MessageGroup messages;
  if (g.rank != r.root) Send(g, r.in, r.root);
  for (int from = 0; g.rank == r.root && from < g.size; ++from) {
    if (from != r.root) Receive(g, Slice(r.out, from * r.in.count, r.in.count), from);
  }
  messages.End();
  if (g.rank == r.root) Copy(g, Slice(r.out, g.rank * r.in.count, r.in.count), r.in);
}

void Scatter(const NcclGroup& g, const Request& r) {
  MessageGroup messages;
  if (g.rank != r.root) Receive(g, r.out, r.root);
  for (int to = 0; g.rank == r.root && to < g.size; ++to) {
    if (to != r.root) Send(g, Slice(r.in, to * r.out.count, r.out.count), to);
  }
  messages.End();
  if (g.rank == r.root) Copy(g, r.out, Slice(r.in, g.rank * r.out.count, r.out.count));
}

void Barrier(const NcclGroup& g) {
  const DeviceScratch byte(1, g.stream);
  CheckNccl(ncclAllReduce(byte.data(), byte.data(), 1, ncclUint8, ncclMax, g.comm, g.stream),
            "ncclAllReduce");
}

void ReduceScatter(const NcclGroup& g, const Request& r, ncclDataType_t type, ncclRedOp_t op) {
  CheckNccl(ncclReduceScatter(r.in.data, r.out.data, r.out.count, type, op, g.comm, g.stream),
            "ncclReduceScatter");
}

}  // namespace

void EnqueueOperation(const NcclGroup& g, const Request& r) {
  const ConstBuffer payload = Payload(r);
  const ncclDataType_t type = NcclType(payload.type);
  const ncclRedOp_t op = NcclReduceOp(r.reduce, payload.type, g.size);
  // Counts are equal on all ranks, so all of them skip an empty call.
  const bool empty = payload.count == 0 && r.operation != Operation::kBarrier &&
                     r.operation != Operation::kAllToAllV && r.operation != Operation::kScatter &&
                     r.operation != Operation::kGather;
  if (empty) return;
  switch (r.operation) {
    case Operation::kAllReduce:
      return CheckNccl(ncclAllReduce(r.out.data, r.out.data, r.out.count, type, op, g.comm, g.stream),
                       "ncclAllReduce");
    case Operation::kBroadcast:
      return CheckNccl(ncclBroadcast(r.out.data, r.out.data, r.out.count, type, r.root, g.comm, g.stream),
                       "ncclBroadcast");
    case Operation::kAllGather:
      return CheckNccl(ncclAllGather(r.in.data, r.out.data, r.in.count, type, g.comm, g.stream),
                       "ncclAllGather");
    case Operation::kReduce:
      return CheckNccl(ncclReduce(r.in.data, r.out.data, r.in.count, type, op, r.root, g.comm, g.stream),
                       "ncclReduce");
    case Operation::kReduceScatter:
      return ReduceScatter(g, r, type, op);
    case Operation::kAllToAll:
      return AllToAll(g, r);
    case Operation::kAllToAllV:
      return Exchange(g, r.in, r.send_counts, r.out, r.receive_counts);
    case Operation::kGather:
      return Gather(g, r);
    case Operation::kScatter:
      return Scatter(g, r);
    case Operation::kBarrier:
      return Barrier(g);
    case Operation::kSend:
    case Operation::kReceive:
    case Operation::kSplit:
      return;
  }
}

}  // namespace plait::comm
