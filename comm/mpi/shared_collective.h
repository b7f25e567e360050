// Collectives between ranks of one node through shared memory. Private to comm/mpi.
//
// Values are transferred in rows, each of which fills a slot of the outbox (comm/mpi/node_segment.h). Per row, a rank
//
//   posts     its values: one parcel for all others (all-gather, gather, broadcast), one for each of them
//             (reductions, all-to-all, scatter), or nothing
//   reduces   its part of an all-reduce, reduce or reduce-scatter, and posts the result of the first two
//   copies    what the others have posted for it to its output
//
// Where ranks can read each other's memory, all-to-alls, and all-gathers of two ranks, of 128 KiB to 8 MiB are not
// copied into shared memory: there is one row, whose post contains the address of the values, and the other ranks copy
// from there. The operation is then complete only when the others have read them.
//
// A barrier or split is an empty post. Short all-reduces and reduces take one exchange: all post all values to
// all. Sums are formed in rank order (comm/mpi/reduction.h): an all-reduce and a reduce-scatter of the same values are
// bitwise identical, in any number of pieces. Half precision is transferred as such and reduced in float32.
//
// An empty buffer still has one (empty) row, in which the calls are compared. If another rank has made a different
// call, its fingerprint shows that before any of its values are read (comm/call_fingerprint.h).
//
// The constructor posts as many rows as there is memory for; the rest happens in Test and Wait. An operation is
// complete once this rank has read what it needs and the others need no further calls of it.
//
// Deadlock-free: every post of the oldest row that some rank has not finished is in a slot that only older rows used,
// so it can be written; and every wait advances all operations (comm/mpi/progress.h).
#ifndef PLAIT_COMM_MPI_SHARED_COLLECTIVE_H_
#define PLAIT_COMM_MPI_SHARED_COLLECTIVE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/backend.h"
#include "comm/call_fingerprint.h"
#include "comm/mpi/node_segment.h"
#include "comm/mpi/progress.h"
#include "comm/operation.h"

namespace plait::comm {

class SharedCollective : public PendingWork, public Progress::Task {
 public:
  // Whether `request` uses shared memory: all collectives but all_to_all_v, whose counts are not known to all ranks.
  static bool Handles(const Request& request) {
    return !IsPointToPoint(request.operation) && request.operation != Operation::kAllToAllV;
  }
  // Starts a checked request; all ranks of the segment must. `call` is compared with the calls of the others. If
  // `request` is a barrier, `call` may belong to an operation whose values are transferred by other means.
  SharedCollective(std::shared_ptr<NodeSegment> segment, std::shared_ptr<Progress> progress,
                   const Request& request, const CallFingerprint& call);
  ~SharedCollective() override { progress_->Remove(this); }

  bool Test() override;
  void Wait() override { progress_->WaitFor(*this); }
  bool Advance() override;
  bool complete() const override {
    return finished_rows_ == rows_ && (!direct_ || segment_->HasBeenRead(first_post_));
  }

 private:
  // Values of Scheme::copied_rank besides ranks.
  static constexpr int kNobody = -1, kEverybody = -2;

  // The steps of the operation; equal on all ranks, except that the root's may differ.
  struct Scheme {
    int parts = 1;                // number of parts of the values: 1, or the number of ranks
    bool one_way = false;         // from the root or to it
    bool posts = true;            // this rank posts values
    bool parcels = false;         // each other rank gets a different parcel
    bool reduces = false;         // parts are reduced,
    bool posts_sums = false;      // and the results posted
    bool copies = false;          // there is a copy step, in which this rank
    int copied_rank = kNobody;    // copies the values of this rank
    bool takes_own_part = false;  // what it copies belongs to its own part, not to the sender's
    bool keeps_own_part = false;  // part of its input goes to its own output
  };
  struct Piece {
    std::int64_t begin, count;  // elements
  };

  Scheme SchemeOf(const Request& request) const;
  bool IsDirect() const;
  void PlaceBuffers(const Request& request);
  void PlanRows();
  int own_part() const { return scheme_.parts == 1 ? 0 : rank_; }
  Piece PieceOf(int part, std::int64_t row) const;
  const std::byte* In(std::int64_t element) const { return in_ + (element - in_begin_) * element_bytes_; }
  std::byte* Out(std::int64_t element) const { return out_ + (element - out_begin_) * element_bytes_; }
  std::byte* Parcel(int sender, int receiver, std::int64_t post) const;
  const std::byte* AddressOf(int sender, std::int64_t element, std::int64_t post) const;
  void PostAddress(std::int64_t post);
  void PostValues(std::int64_t row, std::int64_t post);
  std::int64_t PostOf(std::int64_t row) const { return first_post_ + row * posts_per_row_; }
  bool PostRow();
  void CopyOwnPiece(std::int64_t row) const;
  bool ReduceRow();
  bool CopyPieceOut();
  void CopyFrom(int sender, std::int64_t post);
  bool RowHasCome(std::int64_t row) const;

  std::shared_ptr<NodeSegment> segment_;
  std::shared_ptr<Progress> progress_;
  CallFingerprint call_;
  int rank_, size_;

  ReduceOp op_;
  DataType type_;
  std::int64_t element_bytes_;
  std::int64_t count_;  // elements of all parts together
  Scheme scheme_;
  bool direct_;
  // Null if this rank has none. They hold all parts, or only its own, which begins at element in_begin_ or out_begin_.
  const std::byte* in_;
  std::byte* out_;
  std::int64_t in_begin_ = 0, out_begin_ = 0;
  std::int64_t row_count_;  // elements of one part in one row
  std::int64_t rows_ = 0, posts_per_row_ = 1, first_post_ = 0;

  std::int64_t posted_rows_ = 0, reduced_rows_ = 0, finished_rows_ = 0;
  int copied_pieces_ = 0;  // of row finished_rows_
  std::vector<const void*> sources_;
  std::vector<std::byte> copy_;  // copy of the input of an in-place all-to-all
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_SHARED_COLLECTIVE_H_
