// All-reduce, reduce-scatter, all-gather, barrier and split between ranks of one node, through memory that
// they share. Private to comm/mpi.
//
// The values travel in rows, a slot of the outbox each (comm/mpi/node_segment.h). Per row,
//
//   all-reduce       every rank posts its values of the parts that others reduce; reduces its own part; posts
//                    the result; copies the results of the others out
//   reduce-scatter   the first two of these
//   all-gather       every rank posts its part and copies the parts of the others out
//   barrier, split   an empty post; short all-reduces are done so, too: all post all, each reduces all
//
// Sums are formed in the ranks' order (comm/mpi/reduction.h): an all-reduce and a reduce-scatter of the same
// values, in one piece or many, give the same bits. Half precision travels as it is.
//
// Ranks of an empty buffer meet in an empty row. Where another rank has made another call, its fingerprint
// tells (comm/call_fingerprint.h), before any of its values is read.
//
// The first rows are posted at the start, as many as there is memory for; the rest is done by Test and Wait.
// A rank is done once it has read what it needs; the others need no more of its calls.
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
  static bool Handles(Operation operation);
  // Starts `request`, checked, on all ranks of the segment. `call` is what the others are compared with; with
  // a barrier as `request` it may be of an operation whose values take another way.
  SharedCollective(std::shared_ptr<NodeSegment> segment, std::shared_ptr<Progress> progress,
                   const Request& request, const CallFingerprint& call);
  ~SharedCollective() override { progress_->Remove(this); }

  bool Test() override;
  void Wait() override { progress_->WaitFor(*this); }
  bool Advance() override;
  bool complete() const override { return finished_rows_ == rows_; }

 private:
  enum class Scheme { kAllReduce, kReduceScatter, kAllGather, kPostAll };
  struct Piece {
    std::int64_t begin, count;  // elements
  };

  void PlanRows();
  Piece PieceOf(int part, std::int64_t row) const;
  std::byte* Parcel(int sender, int receiver, std::int64_t post) const;
  std::int64_t PostOf(std::int64_t row) const { return first_post_ + row * posts_per_row_; }
  bool PostRow();
  bool ReduceRow();
  bool CopyPieceOut();
  bool RowHasCome(std::int64_t row) const;

  std::shared_ptr<NodeSegment> segment_;
  std::shared_ptr<Progress> progress_;
  CallFingerprint call_;
  int rank_, size_;

  Scheme scheme_ = Scheme::kPostAll;
  ReduceOp op_;
  DataType type_;
  std::int64_t element_bytes_;
  const std::byte* in_;     // all parts; of an all-gather the own one
  std::byte* out_;          // all parts; of a reduce-scatter the own one
  std::int64_t count_;      // elements of all parts together
  std::int64_t row_count_;  // elements of one part in one row
  std::int64_t rows_ = 0, posts_per_row_ = 1, first_post_ = 0;

  std::int64_t posted_rows_ = 0, reduced_rows_ = 0, finished_rows_ = 0;
  int copied_pieces_ = 0;  // of row finished_rows_
  std::vector<const void*> sources_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_SHARED_COLLECTIVE_H_
