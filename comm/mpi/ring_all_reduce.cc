#include "comm/mpi/ring_all_reduce.h"

#include <algorithm>
#include <cstddef>

#include "comm/mpi/mpi_types.h"

namespace plait::comm {
namespace {

struct Part {
  std::byte* data;
  int count;
};

// The last addition of a mean: one pass over memory instead of two. The same rounding as a sum and a
// division.
template <typename T>
void AddAndDivide(const std::byte* other, const Part& part, int divisor) {
  const auto* __restrict in = reinterpret_cast<const T*>(other);
  auto* __restrict out = reinterpret_cast<T*>(part.data);
  const auto n = static_cast<T>(divisor);
  for (int i = 0; i < part.count; ++i) out[i] = (out[i] + in[i]) / n;
}

// The values in as many parts as ranks; the first ones are longer by one element where they do not divide.
class Ring {
 public:
  Ring(const MpiGroup& group, const RingValues& values, ReduceOp op, int tag)
      : comm_(group.comm),
        rank_(group.rank),
        size_(group.size),
        data_(static_cast<std::byte*>(values.data)),
        count_(values.count),
        type_(values.type),
        mpi_type_(MpiType(values.type)),
        op_(op),
        mpi_op_(MpiReduceOp(op, values.type)),
        tag_(tag) {}

  // Parts are counted round the ring; negative ones too.
  Part PartAt(int index) const {
    const std::int64_t part = ((index % size_) + size_) % size_;
    const std::int64_t least = count_ / size_, longer = count_ % size_;
    const std::int64_t begin = part * least + std::min(part, longer);
    return {data_ + begin * SizeInBytes(type_), static_cast<int>(least + (part < longer ? 1 : 0))};
  }

  // In step s a rank passes part rank - s on, to which it has added its own values, and gets the part before.
  void Exchange(int sent, std::byte* into, int received, MpiWork& work) const {
    const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
    const Part out = PartAt(sent);
    CheckMpi(MPI_Irecv(into, PartAt(received).count, mpi_type_, before, tag_, comm_, work.AddRequest()),
             "MPI_Irecv");
    CheckMpi(MPI_Isend(out.data, out.count, mpi_type_, next, tag_, comm_, work.AddRequest()), "MPI_Isend");
  }
  void ReceiveToAdd(int step, std::byte* scratch, MpiWork& work) const {
    Exchange(rank_ - step, scratch, rank_ - step - 1, work);
  }
  void Add(int step, const std::byte* scratch) const {
    const Part part = PartAt(rank_ - step - 1);
    const bool complete = step == size_ - 2;
    if (complete && op_ == ReduceOp::kAverage) {
      type_ == DataType::kFloat64 ? AddAndDivide<double>(scratch, part, size_)
                                  : AddAndDivide<float>(scratch, part, size_);
      return;
    }
    CheckMpi(MPI_Reduce_local(scratch, part.data, part.count, mpi_type_, mpi_op_), "MPI_Reduce_local");
  }
  // After the last addition part rank + 1 is complete here.
  void ReceiveReduced(int step, MpiWork& work) const {
    Exchange(rank_ + 1 - step, PartAt(rank_ - step).data, rank_ - step, work);
  }
  std::int64_t LongestPartBytes() const { return PartAt(0).count * SizeInBytes(type_); }
  int size() const { return size_; }

 private:
  MPI_Comm comm_;
  int rank_, size_;
  std::byte* data_;
  std::int64_t count_;
  DataType type_;
  MPI_Datatype mpi_type_;
  ReduceOp op_;
  MPI_Op mpi_op_;
  int tag_;
};

}  // namespace

void AddRingAllReduce(const MpiGroup& group, const RingValues& values, ReduceOp op, int tag, MpiWork* work) {
  const Ring ring(group, values, op, tag);
  std::byte* scratch = work->AddScratch(ring.LongestPartBytes());
  for (int step = 0; step + 1 < ring.size(); ++step) {
    work->AddStage([ring, step, scratch](MpiWork& w) {
      if (step > 0) ring.Add(step - 1, scratch);
      ring.ReceiveToAdd(step, scratch, w);
    });
  }
  for (int step = 0; step + 1 < ring.size(); ++step) {
    work->AddStage([ring, step, scratch](MpiWork& w) {
      if (step == 0) ring.Add(ring.size() - 2, scratch);
      ring.ReceiveReduced(step, w);
    });
  }
}

}  // namespace plait::comm
