#include "tools/collectives_sweep/exercise.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace plait::collectives_sweep {
namespace {

using comm::Buffer;
using comm::ConstBuffer;
using comm::DataType;
using comm::ReduceOp;

// Small integers: the sum over 2^17 ranks is still exact in float32. 61 is prime, so that parts of any
// usual length differ.
std::int64_t Base(std::int64_t element, int salt) { return (element + std::int64_t{7} * salt) % 61 + 1; }

// What rank r contributes at an element of its input.
std::int64_t Contributed(int rank, std::int64_t element, int salt) { return Base(element, salt) + rank; }

// What n contributions reduce to.
std::int64_t Reduced(ReduceOp op, std::int64_t ranks, std::int64_t element, int salt) {
  const std::int64_t base = Base(element, salt);
  if (op == ReduceOp::kMin) return base;
  if (op == ReduceOp::kMax) return base + ranks - 1;
  return ranks * base + ranks * (ranks - 1) / 2;
}

template <typename T, typename Function>
auto WithValues(void* memory, const Function& function) {
  return function(static_cast<T*>(memory));
}

// Calls function(T*) with the element type.
template <typename Function>
auto Typed(DataType type, void* memory, const Function& function) {
  switch (type) {
    case DataType::kFloat64:
      return WithValues<double>(memory, function);
    case DataType::kInt32:
      return WithValues<std::int32_t>(memory, function);
    case DataType::kInt64:
      return WithValues<std::int64_t>(memory, function);
    default:
      PLAIT_CHECK(type == DataType::kFloat32) << "sweeps take f32, f64, i32 and i64";
      return WithValues<float>(memory, function);
  }
}

}  // namespace

Exercise::Exercise(Swept operation, const comm::Communicator& ranks, MessageSize message, DataType type,
                   ReduceOp reduce, int root, const Workspace& workspace)
    : operation_(operation),
      ranks_(ranks),
      message_(message),
      type_(type),
      reduce_(reduce),
      root_(root < ranks.size() ? root : 0),
      workspace_(workspace) {}

// Elements that this rank gives.
std::int64_t Exercise::in_count() const {
  const std::int64_t all = message_.bytes / comm::SizeInBytes(type_);
  if (operation_ == Swept::kAllGather || operation_ == Swept::kGather) return message_.count;
  return all;
}

// All-reduce and broadcast work in place: their input lies where the result will be. Elsewhere the place of
// the result is filled with what cannot be right.
void Exercise::Fill(int salt) const {
  const bool in_place = operation_ == Swept::kAllReduce || operation_ == Swept::kBroadcast;
  std::memset(workspace_.out(), 0xFF, static_cast<std::size_t>(message_.bytes));
  Typed(type_, in_place ? workspace_.out() : workspace_.in(), [&](auto* values) {
    for (std::int64_t i = 0; i < in_count(); ++i) values[i] = Contributed(ranks_.rank(), i, salt);
  });
}

void Exercise::Clear() const {
  std::memset(workspace_.in(), 0, static_cast<std::size_t>(message_.bytes));
  std::memset(workspace_.out(), 0, static_cast<std::size_t>(message_.bytes));
}

void Exercise::Call() const {
  const std::int64_t all = message_.bytes / comm::SizeInBytes(type_);
  const ConstBuffer in = {workspace_.in(), in_count(), type_};
  const Buffer whole = {workspace_.out(), all, type_}, part = {workspace_.out(), message_.count, type_};
  switch (operation_) {
    case Swept::kAllReduce:
      return ranks_.AllReduce(whole, reduce_);
    case Swept::kReduce:
      return ranks_.Reduce(in, whole, reduce_, root_);
    case Swept::kBroadcast:
      return ranks_.Broadcast(whole, root_);
    case Swept::kAllGather:
      return ranks_.AllGather(in, whole);
    case Swept::kReduceScatter:
      return ranks_.ReduceScatter(in, part, reduce_);
    case Swept::kAllToAll:
      return ranks_.AllToAll(in, whole);
    case Swept::kGather:
      return ranks_.Gather(in, whole, root_);
    case Swept::kScatter:
      return ranks_.Scatter(in, part, root_);
    case Swept::kSendRecv: {
      const int n = ranks_.size(), rank = ranks_.rank();
      comm::Work received = ranks_.ReceiveAsync(whole, (rank + n - 1) % n, 0);
      ranks_.Send(in, (rank + 1) % n, 0);
      return received.Wait();
    }
    case Swept::kBarrier:
      return ranks_.Barrier();
  }
}

Buffer Exercise::Result() const {
  const bool root_alone = operation_ == Swept::kReduce || operation_ == Swept::kGather;
  if (operation_ == Swept::kBarrier || (root_alone && ranks_.rank() != root_)) return {nullptr, 0, type_};
  const bool part = operation_ == Swept::kReduceScatter || operation_ == Swept::kScatter;
  return {workspace_.out(), part ? message_.count : message_.bytes / comm::SizeInBytes(type_), type_};
}

Mistakes Exercise::Check(int salt) const {
  const int rank = ranks_.rank(), n = ranks_.size();
  const std::int64_t count = message_.count;
  const auto expected = [&](std::int64_t i) -> std::int64_t {
    switch (operation_) {
      case Swept::kAllReduce:
      case Swept::kReduce:
        return Reduced(reduce_, n, i, salt);
      case Swept::kReduceScatter:
        return Reduced(reduce_, n, rank * count + i, salt);
      case Swept::kBroadcast:
        return Contributed(root_, i, salt);
      case Swept::kScatter:
        return Contributed(root_, rank * count + i, salt);
      case Swept::kAllGather:
      case Swept::kGather:
        return Contributed(static_cast<int>(i / count), i % count, salt);
      case Swept::kAllToAll:
        return Contributed(static_cast<int>(i / count), rank * count + i % count, salt);
      default:
        return Contributed((rank + n - 1) % n, i, salt);
    }
  };
  Mistakes mistakes;
  const Buffer result = Result();
  Typed(type_, result.data, [&](const auto* values) {
    for (std::int64_t i = 0; i < result.count; ++i) {
      const std::int64_t right = expected(i);
      if (static_cast<double>(values[i]) == static_cast<double>(right)) continue;
      if (mistakes.count++ == 0) {
        mistakes.first =
            absl::StrCat("element ", i, " of ", result.count, ": expected ", right, ", found ", values[i]);
      }
    }
  });
  return mistakes;
}

std::string Exercise::Description() const {
  return absl::StrCat(Name(operation_), "[", ranks_.name(), "] ", comm::Name(type_), "[", message_.count, "]",
                      Reduces(operation_) ? absl::StrCat(" ", comm::Name(reduce_)) : "");
}

}  // namespace plait::collectives_sweep
