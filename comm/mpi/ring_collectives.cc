#include "comm/mpi/ring_collectives.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "comm/mpi/call_check.h"
#include "comm/mpi/mpi_types.h"
#include "comm/mpi/reduction.h"

namespace plait::comm {
namespace {

// Number of pieces in flight. A rank that has not posted its receives yet, but calls MPI for something else, buffers at
// most this many pieces from its neighbour.
constexpr std::int64_t kPiecesUnderWay = 32;

class Ring {
 public:
  Ring(const MpiGroup& group, const std::vector<Buffer>& parts)
      : comm_(group.comm),
        rank_(group.rank),
        size_(group.size),
        tag_(TagOf(MessageKind::kRing, group)),
        piece_(std::min<std::int64_t>(group.max_elements, kPieceBytes / SizeInBytes(parts[0].type))),
        parts_(parts) {}

  int size() const { return size_; }
  std::int64_t piece() const { return piece_; }  // elements
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
  std::int64_t piece_;
  std::vector<Buffer> parts_;
};

// step(piece) for the pieces of `values` that begin in [begin, end).
template <typename Values, typename Step>
void ForEachPiece(Values values, std::int64_t begin, std::int64_t end, std::int64_t piece, Step step) {
  for (end = std::min(end, values.count); begin < end; begin += piece) {
    step(Slice(values, begin, std::min(piece, values.count - begin)));
  }
}

// Adds the stages of one step of the ring, starting at element `begin` of the two parts.
void AddExchange(const Ring& ring, ConstBuffer sent, Buffer received, std::int64_t begin, MpiWork* work) {
  const std::int64_t piece = ring.piece(), stage = kPiecesUnderWay * piece;
  for (; begin < std::max(sent.count, received.count); begin += stage) {
    work->AddStage([=](MpiWork& w) {
      ForEachPiece(received, begin, begin + stage, piece,
                   [&](Buffer values) { ring.Receive(values, w.AddRequest()); });
      ForEachPiece(sent, begin, begin + stage, piece,
                   [&](ConstBuffer values) { ring.Send(values, w.AddRequest()); });
    });
  }
}

// The first step. If `call` is given, the first piece is sent with it, and the others start once the neighbour is known
// to make the same call.
void AddFirstExchange(const MpiGroup& group, const Ring& ring, ConstBuffer sent, Buffer received,
                      const CallFingerprint* call, MpiWork* work) {
  if (call == nullptr) return AddExchange(ring, sent, received, 0, work);
  AddCallCheckWithValues(group, *call, Slice(sent, 0, std::min(sent.count, ring.piece())),
                         Slice(received, 0, std::min(received.count, ring.piece())), *work);
  AddExchange(ring, sent, received, ring.piece(), work);
}

// In step s a rank sends the partial sum of part rank - 1 - s, to which it has added its own values, and receives
// that of the part before. Sums are received in one of two buffers and sent from the other.
class RingReduceScatter {
 public:
  struct Sums {
    Buffer out;
    ReduceOp op;
    std::array<std::byte*, 2> places;
  };
  RingReduceScatter(Ring ring, const Sums& sums) : ring_(std::move(ring)), sums_(sums) {}

  // This rank's values of the part that begins with it.
  ConstBuffer First() const { return ring_.Part(-1); }
  Buffer SumAfter(int step) const {
    Buffer sum = ring_.Part(-step - 2);
    sum.data = sums_.places[step % 2];
    return sum;
  }
  void Add(int step) const {
    const Buffer sum = SumAfter(step);
    const void* sources[] = {sum.data, ring_.Part(-step - 2).data};
    ReduceInOrder(sums_.op, sum.type, sources, /*divisor=*/1, sum.count, sum.data, /*copy=*/nullptr);
  }
  void AddLast() const {
    const int last = ring_.size() - 2;
    const void* sources[] = {SumAfter(last).data, ring_.Part(0).data};
    const Buffer& out = sums_.out;
    if (out.count > 0) {
      ReduceInOrder(sums_.op, out.type, sources, ring_.size(), out.count, out.data, /*copy=*/nullptr);
    }
  }

 private:
  Ring ring_;
  Sums sums_;
};

void AddSection(const MpiGroup& group, const std::vector<Buffer>& parts, RingReduceScatter::Sums sums,
                const CallFingerprint* call, MpiWork* work) {
  const Ring ring(group, parts);
  const RingReduceScatter scatter(ring, sums);
  AddFirstExchange(group, ring, scatter.First(), scatter.SumAfter(0), call, work);
  for (int step = 1; step + 1 < group.size; ++step) {
    work->AddStage([scatter, step](MpiWork&) { scatter.Add(step - 1); });
    AddExchange(ring, scatter.SumAfter(step - 1), scatter.SumAfter(step), 0, work);
  }
  work->AddStage([scatter](MpiWork&) { scatter.AddLast(); });
}

// At most `count` elements from `begin` on; none behind the end.
Buffer Section(Buffer values, std::int64_t begin, std::int64_t count) {
  begin = std::min(begin, values.count);
  return Slice(values, begin, std::min(count, values.count - begin));
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

// One section of all parts after the other, so that sums stay in the cache and scratch memory is small.
void AddRingReduceScatter(const MpiGroup& group, const std::vector<Buffer>& parts, Buffer out, ReduceOp op,
                          const CallFingerprint* call, MpiWork* work) {
  std::int64_t longest = 0;
  for (const Buffer& part : parts) longest = std::max(longest, part.count);
  const std::int64_t section = std::min(longest, kPiecesUnderWay * Ring(group, parts).piece());
  const std::int64_t bytes = section * SizeInBytes(out.type);
  const std::array<std::byte*, 2> places = {work->AddScratch(bytes),
                                            work->AddScratch(group.size > 2 ? bytes : 0)};
  for (std::int64_t begin = 0; begin < longest; begin += section) {
    std::vector<Buffer> sections;
    for (const Buffer& part : parts) sections.push_back(Section(part, begin, section));
    AddSection(group, sections, {Section(out, begin, section), op, places}, begin == 0 ? call : nullptr,
               work);
  }
}

// In step s a rank sends part rank - s.
void AddRingAllGather(const MpiGroup& group, const std::vector<Buffer>& parts, const CallFingerprint* call,
                      MpiWork* work) {
  const Ring ring(group, parts);
  AddFirstExchange(group, ring, ring.Part(0), ring.Part(-1), call, work);
  for (int step = 1; step + 1 < group.size; ++step) {
    AddExchange(ring, ring.Part(-step), ring.Part(-step - 1), 0, work);
  }
}

}  // namespace plait::comm
