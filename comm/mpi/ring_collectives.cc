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

  void Send(ConstBuffer values, MPI_Request* request) const {
    CheckMpi(MPI_Isend(values.data, static_cast<int>(values.count), MpiType(values.type), (rank_ + 1) % size_,
                       tag_, comm_, request),
             "MPI_Isend");
  }
  void Receive(Buffer values, MPI_Request* request) const {
    CheckMpi(MPI_Irecv(values.data, static_cast<int>(values.count), MpiType(values.type),
                       (rank_ + size_ - 1) % size_, tag_, comm_, request),
             "MPI_Irecv");
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

  // This rank's values of the part that begins with it.
  ConstBuffer First() const { return ring_.Part(-1); }
  void Step(int step, MpiWork& work) const {
    if (step > 0) {
      Add(step - 1);
      ring_.Send(SumAfter(step - 1), work.AddRequest());
    }
    work.AwaitLateRequests();
    ring_.Receive(SumAfter(step), work.AddRequest());
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

// The send of step 0, whose receive is in the next stage.
void AddFirstSend(const Ring& ring, ConstBuffer values, bool at_once, MpiWork* work) {
  if (at_once) return ring.Send(values, work->AddLateRequest());
  work->AddStage([ring, values](MpiWork& w) { ring.Send(values, w.AddLateRequest()); });
}

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
                          int tag, bool at_once, MpiWork* work) {
  std::int64_t longest = 0;
  for (const Buffer& part : parts) longest = std::max(longest, part.bytes());
  const std::array<std::byte*, 2> places = {work->AddScratch(longest),
                                            work->AddScratch(group.size > 2 ? longest : 0)};
  const Ring ring(group, parts, tag);
  const RingReduceScatter scatter(ring, out, op, places);
  AddFirstSend(ring, scatter.First(), at_once, work);
  for (int step = 0; step + 1 < group.size; ++step) {
    work->AddStage([scatter, step](MpiWork& w) { scatter.Step(step, w); });
  }
  work->AddStage([scatter](MpiWork&) { scatter.AddLast(); });
}

// In step s a rank passes part rank - s on.
void AddRingAllGather(const MpiGroup& group, const std::vector<Buffer>& parts, int tag, bool at_once,
                      MpiWork* work) {
  const Ring ring(group, parts, tag);
  AddFirstSend(ring, ring.Part(0), at_once, work);
  for (int step = 0; step + 1 < group.size; ++step) {
    work->AddStage([ring, step](MpiWork& w) {
      if (step > 0) ring.Send(ring.Part(-step), w.AddRequest());
      w.AwaitLateRequests();
      ring.Receive(ring.Part(-step - 1), w.AddRequest());
    });
  }
}

}  // namespace plait::comm
