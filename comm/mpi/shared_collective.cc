#include "comm/mpi/shared_collective.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/mpi/reduction.h"

namespace plait::comm {
namespace {

// All-reduces up to this size: each rank reading all values costs less than a second exchange.
constexpr std::int64_t kPostAllBytes = 16 << 10;
constexpr std::int64_t kLineBytes = 64;

}  // namespace

bool SharedCollective::Handles(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduceScatter ||
         operation == Operation::kAllGather || operation == Operation::kBarrier ||
         operation == Operation::kSplit;
}

SharedCollective::SharedCollective(std::shared_ptr<NodeSegment> segment, std::shared_ptr<Progress> progress,
                                   const Request& request, const CallFingerprint& call)
    : segment_(std::move(segment)),
      progress_(std::move(progress)),
      call_(call),
      rank_(segment_->rank()),
      size_(segment_->size()),
      op_(request.reduce),
      type_(request.out.type),
      element_bytes_(SizeInBytes(type_)),
      in_(static_cast<const std::byte*>(request.in.data)),
      out_(static_cast<std::byte*>(request.out.data)),
      count_(request.out.count) {
  switch (request.operation) {
    case Operation::kAllReduce:
      in_ = out_;
      if (count_ * element_bytes_ > std::min(kPostAllBytes, segment_->slot_bytes())) {
        scheme_ = Scheme::kAllReduce;
      }
      break;
    case Operation::kReduceScatter:
      scheme_ = Scheme::kReduceScatter;
      count_ = request.in.count;
      break;
    case Operation::kAllGather: {
      scheme_ = Scheme::kAllGather;
      std::byte* own = out_ + rank_ * request.in.bytes();
      if (request.in.count > 0 && own != in_) std::memcpy(own, in_, request.in.bytes());
      break;
    }
    default:
      break;
  }
  PlanRows();
  first_post_ = segment_->TakePosts(rows_ * posts_per_row_);
  Advance();
  if (!complete()) progress_->Add(this);
}

void SharedCollective::PlanRows() {
  if (scheme_ == Scheme::kPostAll) {
    row_count_ = count_;
    rows_ = 1;
    return;
  }
  // What one rank posts to all others fills a slot.
  const int parcels = scheme_ == Scheme::kAllGather ? 1 : size_ - 1;
  const std::int64_t parcel_bytes = segment_->slot_bytes() / parcels / kLineBytes * kLineBytes;
  row_count_ = parcel_bytes / element_bytes_;
  const std::int64_t longest_part = (count_ + size_ - 1) / size_;
  rows_ = std::max<std::int64_t>((longest_part + row_count_ - 1) / row_count_, 1);
  posts_per_row_ = scheme_ == Scheme::kAllReduce ? 2 : 1;
}

// Parts are counted by rank; the first ones are longer by one element where they do not divide.
SharedCollective::Piece SharedCollective::PieceOf(int part, std::int64_t row) const {
  if (scheme_ == Scheme::kPostAll) return {0, count_};
  const std::int64_t least = count_ / size_, longer = count_ % size_;
  const std::int64_t length = least + (part < longer ? 1 : 0);
  const std::int64_t begin = std::min(row * row_count_, length);
  return {part * least + std::min<std::int64_t>(part, longer) + begin, std::min(row_count_, length - begin)};
}

// A rank's post holds the parcels for the others in the order of their ranks; none for itself.
std::byte* SharedCollective::Parcel(int sender, int receiver, std::int64_t post) const {
  std::byte* data = segment_->Data(sender, post);
  if (scheme_ == Scheme::kPostAll || scheme_ == Scheme::kAllGather) return data;
  const int index = receiver < sender ? receiver : receiver - 1;
  return data + index * row_count_ * element_bytes_;
}

bool SharedCollective::PostRow() {
  if (posted_rows_ == rows_) return false;
  const std::int64_t row = posted_rows_, post = PostOf(row);
  if (!segment_->CanWrite(post)) return false;
  if (scheme_ == Scheme::kPostAll || scheme_ == Scheme::kAllGather) {
    const Piece piece = PieceOf(rank_, row);
    const std::byte* values = scheme_ == Scheme::kPostAll ? in_ : out_ + piece.begin * element_bytes_;
    if (piece.count > 0) std::memcpy(segment_->Data(rank_, post), values, piece.count * element_bytes_);
  } else {
    for (int part = 0; part < size_; ++part) {
      if (part == rank_) continue;
      const Piece piece = PieceOf(part, row);
      if (piece.count == 0) continue;
      std::memcpy(Parcel(rank_, part, post), in_ + piece.begin * element_bytes_,
                  piece.count * element_bytes_);
    }
  }
  segment_->Publish(post, call_);
  ++posted_rows_;
  return true;
}

bool SharedCollective::RowHasCome(std::int64_t row) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && !segment_->IsPublished(rank, PostOf(row), call_)) return false;
  }
  return true;
}

bool SharedCollective::ReduceRow() {
  if (scheme_ == Scheme::kAllGather || reduced_rows_ == posted_rows_) return false;
  const std::int64_t row = reduced_rows_, post = PostOf(row);
  const bool passes_on = scheme_ == Scheme::kAllReduce;
  if (!RowHasCome(row) || (passes_on && !segment_->CanWrite(post + 1))) return false;
  const Piece piece = PieceOf(rank_, row);
  if (piece.count > 0) {
    sources_.resize(size_);
    for (int rank = 0; rank < size_; ++rank) {
      sources_[rank] = rank == rank_ ? in_ + piece.begin * element_bytes_ : Parcel(rank, rank_, post);
    }
    const std::int64_t begin = scheme_ == Scheme::kReduceScatter ? row * row_count_ : piece.begin;
    ReduceInOrder(op_, type_, sources_, size_, piece.count, out_ + begin * element_bytes_,
                  passes_on ? segment_->Data(rank_, post + 1) : nullptr);
  }
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) segment_->MarkRead(rank, post);
  }
  ++reduced_rows_;
  if (passes_on) {
    segment_->Publish(post + 1, call_);
  } else {
    finished_rows_ = reduced_rows_;
  }
  return true;
}

bool SharedCollective::CopyPieceOut() {
  const bool copies = scheme_ == Scheme::kAllReduce || scheme_ == Scheme::kAllGather;
  const std::int64_t ready_rows = scheme_ == Scheme::kAllReduce ? reduced_rows_ : posted_rows_;
  if (!copies || finished_rows_ == ready_rows) return false;
  const int from = (rank_ + 1 + copied_pieces_) % size_;
  const std::int64_t post = PostOf(finished_rows_) + posts_per_row_ - 1;
  if (!segment_->IsPublished(from, post, call_)) return false;
  const Piece piece = PieceOf(from, finished_rows_);
  if (piece.count > 0) {
    std::memcpy(out_ + piece.begin * element_bytes_, segment_->Data(from, post),
                piece.count * element_bytes_);
  }
  segment_->MarkRead(from, post);
  if (++copied_pieces_ == size_ - 1) {
    copied_pieces_ = 0;
    ++finished_rows_;
  }
  return true;
}

// One of each in turn: what was just written is read while it is in the cache.
bool SharedCollective::Advance() {
  bool moved = false;
  for (std::int64_t turn = 0; turn < segment_->slots() * size_; ++turn) {
    const bool posted = PostRow(), reduced = ReduceRow(), copied = CopyPieceOut();
    if (!posted && !reduced && !copied) break;
    moved = true;
  }
  return moved;
}

bool SharedCollective::Test() {
  if (!complete()) progress_->AdvanceAll();
  return complete();
}

}  // namespace plait::comm
