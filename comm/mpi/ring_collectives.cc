#include "comm/mpi/ring_collectives.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "comm/mpi/mpi_types.h"
#include "comm/mpi/reduction.h"

namespace plait::comm {
namespace {

class Ring {
 public:
  Ring(const MpiGroup& group, const std::vector<Buffer>& parts, int tag)
      : comm_(group.comm), rank_(group.rank), size_(group.size), tag_(tag), parts_(parts) {}

  int size() const { return size_; }
  // Parts are counted from this rank's, round the ring; negative ones too.
  const Buffer& Part(int offset) const { return parts_[((rank_ + offset) % size_ + size_) % size_]; }

  // To the next rank, and from the one before.
  void Exchange(ConstBuffer sent, Buffer received, MpiWork& work) const {
    const MPI_Datatype type = MpiType(sent.type);
    const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
    CheckMpi(MPI_Irecv(received.data, static_cast<int>(received.count), type, before, tag_, comm_,
                       work.AddRequest()),
             "MPI_Irecv");
    CheckMpi(MPI_Isend(sent.data, static_cast<int>(sent.count), type, next, tag_, comm_, work.AddRequest()),
             "MPI_Isend");
  }

 private:
  MPI_Comm comm_;
  int rank_, size_, tag_;
  std::vector<Buffer> parts_;
};

// In step s a rank passes the sum of part rank - 1 - s on, to which it has added its own values, and gets
// that of the part before. Sums come into one of two places and leave from the other.
class RingReduceScatter {
 public:
  RingReduceScatter(Ring ring, Buffer out, ReduceOp op, std::array<std::byte*, 2> places)
      : ring_(std::move(ring)), out_(out), op_(op), places_(places) {}

  void Step(int step, MpiWork& work) const {
    if (step > 0) Add(step - 1);
    const ConstBuffer sent = step == 0 ? ConstBuffer(ring_.Part(-1)) : ConstBuffer(SumAfter(step - 1));
    ring_.Exchange(sent, SumAfter(step), work);
  }
  void AddLast() const {
    const int last = ring_.size() - 2;
    const void* sources[] = {SumAfter(last).data, ring_.Part(0).data};
    if (out_.count > 0) {
      ReduceInOrder(op_, out_.type, sources, ring_.size(), out_.count, out_.data, /*copy=*/nullptr);
    }
  }

 private:
  Buffer SumAfter(int step) const {
    Buffer sum = ring_.Part(-step - 2);
    sum.data = places_[step % 2];
    return sum;
  }
  void Add(int step) const {
    const Buffer sum = SumAfter(step);
    const void* sources[] = {sum.data, ring_.Part(-step - 2).data};
    ReduceInOrder(op_, sum.type, sources, /*divisor=*/1, sum.count, sum.data, /*copy=*/nullptr);
  }

  Ring ring_;
  Buffer out_;
  ReduceOp op_;
  std::array<std::byte*, 2> places_;
};

}  // namespace

std::vector<Buffer> PartsOf(Buffer values, int parts) {
  std::vector<Buffer> result;
  const std::int64_t least = values.count / parts, longer = values.count % parts;
  std::int64_t begin = 0;
  for (int part = 0; part < parts; ++part) {
    const std::int64_t count = least + (part < longer ? 1 : 0);
    result.push_back(Slice(values, begin, count));
    begin += count;
  }
  return result;
}

void AddRingReduceScatter(const MpiGroup& group, const std::vector<Buffer>& parts, Buffer out, ReduceOp op,
                          int tag, MpiWork* work) {
  std::int64_t longest = 0;
  for (const Buffer& part : parts) longest = std::max(longest, part.bytes());
  const std::array<std::byte*, 2> places = {work->AddScratch(longest),
                                            work->AddScratch(group.size > 2 ? longest : 0)};
  const RingReduceScatter scatter(Ring(group, parts, tag), out, op, places);
  for (int step = 0; step + 1 < group.size; ++step) {
    work->AddStage([scatter, step](MpiWork& w) { scatter.Step(step, w); });
  }
  work->AddStage([scatter](MpiWork&) { scatter.AddLast(); });
}

// In step s a rank passes part rank - s on.
void AddRingAllGather(const MpiGroup& group, const std::vector<Buffer>& parts, int tag, MpiWork* work) {
  const Ring ring(group, parts, tag);
  for (int step = 0; step + 1 < group.size; ++step) {
    work->AddStage([ring, step](MpiWork& w) { ring.Exchange(ring.Part(-step), ring.Part(-step - 1), w); });
  }
}

}  // namespace plait::comm
