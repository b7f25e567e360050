// Collectives between ranks of one node, through memory that they share. Private to comm/mpi.
//
// The values travel in rows, a slot of the outbox each (comm/mpi/node_segment.h). Per row, every rank
//
//   posts     its values: one parcel for all others (all-gather, gather, broadcast), or one for each of them
//             (reductions, all-to-all, scatter); or nothing
//   reduces   its part of an all-reduce, reduce or reduce-scatter, and posts the result of the first two
//   copies    what the others have posted for it out
//
// Where ranks can read each other's memory, all-to-alls, and all-gathers of two ranks, leave values of medium length where
// they are: one row, whose post tells their address, and the other rank copies them from there. A rank is then done when
// the others have its values.
//
// A barrier or split is an empty post. Short all-reduces and reduces take one exchange: all post all values to
// all. Sums are formed in the ranks' order (comm/mpi/reduction.h): an all-reduce and a reduce-scatter of the same
// values, in one piece or many, give the same bits. Half precision travels as it is.
//
// Ranks of an empty buffer meet in an empty row. Where another rank has made another call, its fingerprint
// tells (comm/call_fingerprint.h), before any of its values is read.
//
// The first rows are posted at the start, as many as there is memory for; the rest is done by Test and Wait.
// A rank is done once it has read what it needs and the others need no more of its calls.
//
// Why ranks cannot wait for each other in a circle: of the oldest row that some rank has not finished, every
// post is in a slot that only older rows used, so it can be written; and whoever waits, moves it on
// (comm/mpi/progress.h).
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
  // Whether `request` is for shared memory: all but all_to_all_v, whose rows ranks do not know of each other.
  static bool Handles(const Request& request) {
    return !IsPointToPoint(request.operation) && request.operation != Operation::kAllToAllV;
  }
  // Starts `request`, checked, on all ranks of the segment. `call` is what the others are compared with; with
  // a barrier as `request` it may be of an operation whose values take another way.
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
  // Whom a rank copies values of.
  static constexpr int kNobody = -1, kEverybody = -2;

  // What the operation does; the same on all ranks but where `is_root`.
  struct Scheme {
    int parts = 1;                // into which the values are divided: one, or one for each rank
    bool one_way = false;         // from the root or to it
    bool posts = true;            // this rank has values to post
    bool parcels = false;         // the others get different ones
    bool reduces = false;         // parts are reduced,
    bool posts_sums = false;      // and their sums posted
    bool copies = false;          // there are values to be copied out,
    int copied_rank = kNobody;    // by this rank of these
    bool takes_own_part = false;  // a sender's values are of this rank's part, not of the sender's
    bool keeps_own_part = false;  // this rank's input has values for itself
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
  // Null where this rank has none. Of all parts, or of the own one, which begins at element in_begin_.
  const std::byte* in_;
  std::byte* out_;
  std::int64_t in_begin_ = 0, out_begin_ = 0;
  std::int64_t row_count_;  // elements of one part in one row
  std::int64_t rows_ = 0, posts_per_row_ = 1, first_post_ = 0;

  std::int64_t posted_rows_ = 0, reduced_rows_ = 0, finished_rows_ = 0;
  int copied_pieces_ = 0;  // of row finished_rows_
  std::vector<const void*> sources_;
  std::vector<std::byte> copy_;  // of the values of an all-to-all in place
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_SHARED_COLLECTIVE_H_
