#include "comm/mpi/ring_all_reduce.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "comm/mpi/mpi_types.h"

namespace plait::comm {
namespace {

// The values in as many parts as ranks; the first ones are longer by one element where they do not divide.
class Ring {
 public:
  Ring(const MpiGroup& group, void* data, std::int64_t count, MPI_Datatype type, std::int64_t element_bytes,
       MPI_Op op, int tag)
      : comm_(group.comm),
        rank_(group.rank),
        size_(group.size),
        data_(static_cast<std::byte*>(data)),
        count_(count),
        type_(type),
        element_bytes_(element_bytes),
        op_(op),
        tag_(tag) {}

  // Parts are counted round the ring; negative ones too.
  RingPart Part(int index) const {
    const std::int64_t part = ((index % size_) + size_) % size_;
    const std::int64_t least = count_ / size_, longer = count_ % size_;
    const std::int64_t begin = part * least + std::min(part, longer);
    return {data_ + begin * element_bytes_, least + (part < longer ? 1 : 0)};
  }

  // In step s a rank passes part rank - s on, to which it has added its own values, and gets the part before.
  void Exchange(int sent, void* into, int received, MpiWork& work) const {
    const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
    const RingPart out = Part(sent);
    CheckMpi(MPI_Irecv(into, Length(Part(received)), type_, before, tag_, comm_, work.AddRequest()),
             "MPI_Irecv");
    CheckMpi(MPI_Isend(out.data, Length(out), type_, next, tag_, comm_, work.AddRequest()), "MPI_Isend");
  }
  void ReceiveToAdd(int step, std::byte* scratch, MpiWork& work) const {
    Exchange(rank_ - step, scratch, rank_ - step - 1, work);
  }
  void Add(int step, const std::byte* scratch) const {
    const RingPart part = Part(rank_ - step - 1);
    CheckMpi(MPI_Reduce_local(scratch, part.data, Length(part), type_, op_), "MPI_Reduce_local");
  }
  void ReceiveReduced(int step, MpiWork& work) const {
    Exchange(rank_ + 1 - step, Part(rank_ - step).data, rank_ - step, work);
  }
  // Complete on this rank once everybody has added.
  RingPart Own() const { return Part(rank_ + 1); }
  std::int64_t LongestPartBytes() const { return Part(0).count * element_bytes_; }
  int size() const { return size_; }

 private:
  static int Length(const RingPart& part) { return static_cast<int>(part.count); }

  MPI_Comm comm_;
  int rank_, size_;
  std::byte* data_;
  std::int64_t count_;
  MPI_Datatype type_;
  std::int64_t element_bytes_;
  MPI_Op op_;
  int tag_;
};

}  // namespace

void AddRingAllReduce(const MpiGroup& group, void* data, std::int64_t count, MPI_Datatype type,
                      std::int64_t element_bytes, MPI_Op op, int tag,
                      std::function<void(const RingPart&)> part_is_reduced, MpiWork* work) {
  const Ring ring(group, data, count, type, element_bytes, op, tag);
  std::byte* scratch = work->AddScratch(ring.LongestPartBytes());
  for (int step = 0; step + 1 < ring.size(); ++step) {
    work->AddStage([ring, step, scratch](MpiWork& w) {
      if (step > 0) ring.Add(step - 1, scratch);
      ring.ReceiveToAdd(step, scratch, w);
    });
  }
  work->AddStage([ring, scratch, part_is_reduced = std::move(part_is_reduced)](MpiWork& w) {
    ring.Add(ring.size() - 2, scratch);
    part_is_reduced(ring.Own());
    ring.ReceiveReduced(0, w);
  });
  for (int step = 1; step + 1 < ring.size(); ++step) {
    work->AddStage([ring, step](MpiWork& w) { ring.ReceiveReduced(step, w); });
  }
}

}  // namespace plait::comm
