#include "comm/mpi/shared_collective.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/mpi/mpi_collectives.h"
#include "comm/mpi/reduction.h"

namespace plait::comm {
namespace {

// Up to this size, an all-reduce in which each rank reads all values is faster than one with a second exchange. Between
// two ranks both transfer the same amount.
constexpr std::int64_t kPostAllBytes = 16 << 10;
constexpr std::int64_t kPostAllBytesOfTwo = 128 << 10;
constexpr std::int64_t kLineBytes = 64;
// Rows of one-way operations: the sender copies a row in while the receivers copy the previous one out.
constexpr std::int64_t kOneWayBytes = 64 << 10;
// Bytes of all parts together. Between these limits, one copy by the kernel is faster than two copies into and out of
// shared memory. Above, where values do not fit into the caches, the kernel's copy is slower than both.
constexpr std::int64_t kMostShortBytes = 128 << 10, kMostDirectBytes = 8 << 20;

}  // namespace

SharedCollective::SharedCollective(std::shared_ptr<NodeSegment> segment, std::shared_ptr<Progress> progress,
                                   const Request& request, const CallFingerprint& call)
    : segment_(std::move(segment)),
      progress_(std::move(progress)),
      call_(call),
      rank_(segment_->rank()),
      size_(segment_->size()),
      op_(request.reduce),
      type_(Payload(request).type),
      element_bytes_(SizeInBytes(type_)),
      count_(WholeCount(request, size_)),
      scheme_(SchemeOf(request)),
      direct_(IsDirect()),
      in_(static_cast<const std::byte*>(request.in.data)),
      out_(static_cast<std::byte*>(request.out.data)) {
  PlaceBuffers(request);
  PlanRows();
  first_post_ = segment_->TakePosts(rows_ * posts_per_row_);
  Advance();
  if (!complete()) progress_->Add(this);
}

SharedCollective::Scheme SharedCollective::SchemeOf(const Request& r) const {
  const bool is_root = rank_ == r.root;
  const std::int64_t all_bytes = size_ == 2 ? kPostAllBytesOfTwo : kPostAllBytes;
  const bool is_short = count_ * element_bytes_ <= std::min(all_bytes, segment_->slot_bytes());
  switch (r.operation) {
    case Operation::kAllReduce:
    case Operation::kReduce: {
      if (is_short) return {.reduces = true};
      const bool copies = is_root || r.operation == Operation::kAllReduce;
      return {.parts = size_,
              .parcels = true,
              .reduces = true,
              .posts_sums = true,
              .copies = true,
              .copied_rank = copies ? kEverybody : kNobody};
    }
    case Operation::kReduceScatter:
      return {.parts = size_, .parcels = true, .reduces = true};
    case Operation::kAllGather:
      return {.parts = size_, .copies = true, .copied_rank = kEverybody, .keeps_own_part = true};
    case Operation::kGather:
      return {.parts = size_,
              .one_way = true,
              .posts = !is_root,
              .copies = true,
              .copied_rank = is_root ? kEverybody : kNobody,
              .keeps_own_part = is_root};
    case Operation::kAllToAll:
      return {
          .parts = size_, .parcels = true, .copies = true, .copied_rank = kEverybody, .keeps_own_part = true};
    case Operation::kScatter:
      return {.parts = size_,
              .one_way = true,
              .posts = is_root,
              .parcels = true,
              .copies = true,
              .copied_rank = r.root,
              .takes_own_part = true,
              .keeps_own_part = is_root};
    case Operation::kBroadcast:
      return {.one_way = true, .posts = is_root, .copies = true, .copied_rank = r.root};
    default:  // empty posts
      return {.reduces = true};
  }
}

// Equal on all ranks. Only for values with one reader: several readers can share one copy in shared memory. Not for
// reductions, because values that another core has read are slow to overwrite.
bool SharedCollective::IsDirect() const {
  const std::int64_t bytes = count_ * element_bytes_;
  const bool exchanges = !scheme_.reduces && !scheme_.one_way, one_reader = scheme_.parcels || size_ == 2;
  return segment_->reads_peers() && exchanges && one_reader && bytes > kMostShortBytes &&
         bytes <= kMostDirectBytes;
}

void SharedCollective::PlaceBuffers(const Request& r) {
  const std::int64_t own_begin = rank_ * (count_ / size_);
  switch (r.operation) {
    case Operation::kAllReduce:
    case Operation::kBroadcast:
      in_ = out_;
      return;
    case Operation::kReduce:
      if (rank_ != r.root) out_ = nullptr;
      return;
    case Operation::kReduceScatter:
    case Operation::kScatter:
      out_begin_ = own_begin;
      return;
    case Operation::kAllGather:
    case Operation::kGather:
      in_begin_ = own_begin;
      return;
    case Operation::kAllToAll:
      // In place, the others would read values that this rank has received.
      if (direct_ && in_ == out_) {
        copy_.assign(in_, in_ + count_ * element_bytes_);
        in_ = copy_.data();
      }
      return;
    default:
      return;
  }
}

void SharedCollective::PlanRows() {
  // A slot holds what one rank posts to all others.
  const int parcels = scheme_.parcels ? size_ - 1 : 1;
  std::int64_t parcel_bytes = segment_->slot_bytes() / parcels / kLineBytes * kLineBytes;
  if (scheme_.one_way) parcel_bytes = std::min(parcel_bytes, kOneWayBytes);
  row_count_ = parcel_bytes / element_bytes_;
  const std::int64_t longest_part = (count_ + scheme_.parts - 1) / scheme_.parts;
  if (direct_) row_count_ = longest_part;
  rows_ = std::max<std::int64_t>((longest_part + row_count_ - 1) / row_count_, 1);
  posts_per_row_ = scheme_.posts_sums ? 2 : 1;
}

// Parts are counted by rank; the first ones are longer by one element where they do not divide.
SharedCollective::Piece SharedCollective::PieceOf(int part, std::int64_t row) const {
  const std::int64_t least = count_ / scheme_.parts, longer = count_ % scheme_.parts;
  const std::int64_t length = least + (part < longer ? 1 : 0);
  const std::int64_t begin = std::min(row * row_count_, length);
  return {part * least + std::min<std::int64_t>(part, longer) + begin, std::min(row_count_, length - begin)};
}

// A rank's post holds the parcels for the others in the order of their ranks; none for itself.
std::byte* SharedCollective::Parcel(int sender, int receiver, std::int64_t post) const {
  std::byte* data = segment_->Data(sender, post);
  if (!scheme_.parcels) return data;
  const int index = receiver < sender ? receiver : receiver - 1;
  return data + index * row_count_ * element_bytes_;
}

// Posts the address that element 0 of all parts would have, even if this rank only has its own part.
void SharedCollective::PostAddress(std::int64_t post) {
  *reinterpret_cast<const std::byte**>(segment_->Data(rank_, post)) = in_ - in_begin_ * element_bytes_;
}

const std::byte* SharedCollective::AddressOf(int sender, std::int64_t element, std::int64_t post) const {
  return *reinterpret_cast<const std::byte* const*>(segment_->Data(sender, post)) + element * element_bytes_;
}

void SharedCollective::PostValues(std::int64_t row, std::int64_t post) {
  const int first = scheme_.parcels ? 0 : own_part(), last = scheme_.parcels ? size_ : own_part() + 1;
  for (int part = first; part < last && scheme_.posts; ++part) {
    if (scheme_.parcels && part == rank_) continue;
    const Piece piece = PieceOf(part, row);
    if (piece.count == 0) continue;
    std::memcpy(Parcel(rank_, part, post), In(piece.begin), piece.count * element_bytes_);
  }
}

bool SharedCollective::PostRow() {
  if (posted_rows_ == rows_) return false;
  const std::int64_t row = posted_rows_, post = PostOf(row);
  if (!segment_->CanWrite(post)) return false;
  direct_ ? PostAddress(post) : PostValues(row, post);
  segment_->Publish(post, call_);
  CopyOwnPiece(row);
  ++posted_rows_;
  return true;
}

// Runs while the others read the row; if this rank posted it, it is in the cache.
void SharedCollective::CopyOwnPiece(std::int64_t row) const {
  const Piece piece = PieceOf(own_part(), row);
  if (!scheme_.keeps_own_part || piece.count == 0 || Out(piece.begin) == In(piece.begin)) return;
  std::memcpy(Out(piece.begin), In(piece.begin), piece.count * element_bytes_);
}

bool SharedCollective::RowHasCome(std::int64_t row) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && !segment_->IsPublished(rank, PostOf(row), call_)) return false;
  }
  return true;
}

bool SharedCollective::ReduceRow() {
  if (!scheme_.reduces || reduced_rows_ == posted_rows_) return false;
  const std::int64_t row = reduced_rows_, post = PostOf(row);
  if (!RowHasCome(row) || (scheme_.posts_sums && !segment_->CanWrite(post + 1))) return false;
  const Piece piece = PieceOf(own_part(), row);
  std::byte* sums = scheme_.posts_sums ? segment_->Data(rank_, post + 1) : nullptr;
  std::byte* out = out_ == nullptr ? sums : Out(piece.begin);
  if (piece.count > 0 && out != nullptr) {
    sources_.resize(size_);
    for (int rank = 0; rank < size_; ++rank) {
      sources_[rank] = rank == rank_ ? In(piece.begin) : Parcel(rank, rank_, post);
    }
    ReduceInOrder(op_, type_, sources_, size_, piece.count, out, out == sums ? nullptr : sums);
  }
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) segment_->MarkRead(rank, post);
  }
  ++reduced_rows_;
  if (scheme_.posts_sums) {
    segment_->Publish(post + 1, call_);
  } else {
    finished_rows_ = reduced_rows_;
  }
  return true;
}

void SharedCollective::CopyFrom(int sender, std::int64_t post) {
  const Piece mine = PieceOf(own_part(), finished_rows_);
  const Piece piece = scheme_.parts == 1 || scheme_.takes_own_part ? mine : PieceOf(sender, finished_rows_);
  if (piece.count == 0) return;
  const std::int64_t bytes = piece.count * element_bytes_;
  if (direct_) {
    const std::int64_t element = scheme_.parcels ? mine.begin : piece.begin;
    segment_->ReadFrom(sender, AddressOf(sender, element, post), Out(piece.begin), bytes);
  } else {
    std::memcpy(Out(piece.begin),
                scheme_.posts_sums ? segment_->Data(sender, post) : Parcel(sender, rank_, post), bytes);
  }
}

bool SharedCollective::CopyPieceOut() {
  const std::int64_t ready_rows = scheme_.posts_sums ? reduced_rows_ : posted_rows_;
  if (!scheme_.copies || finished_rows_ == ready_rows) return false;
  const int from = (rank_ + 1 + copied_pieces_) % size_;
  const std::int64_t post = PostOf(finished_rows_) + posts_per_row_ - 1;
  if (!segment_->IsPublished(from, post, call_)) return false;
  if (scheme_.copied_rank == kEverybody || scheme_.copied_rank == from) CopyFrom(from, post);
  segment_->MarkRead(from, post);
  if (++copied_pieces_ == size_ - 1) {
    copied_pieces_ = 0;
    ++finished_rows_;
  }
  return true;
}

// Alternates between the three, so that values are read while they are in the cache.
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
