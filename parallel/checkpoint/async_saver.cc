#include "parallel/checkpoint/async_saver.h"

#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace plait::parallel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPageBytes = std::size_t{1} << 21;  // a huge page
constexpr std::size_t kPieceAlignment = 64;

std::size_t RoundedUp(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

AsyncSaver::AsyncSaver(comm::Communicator comm, std::string root, const SaveOptions& options)
    : comm_(std::move(comm)), root_(std::move(root)), options_(options) {}

absl::Status AsyncSaver::Start(std::int64_t step, absl::Span<const TensorPiece> pieces,
                               const CheckpointState& state) {
  PLAIT_RETURN_IF_ERROR(Finish());
  begin_ = Clock::now();
  std::erase(options_.superseded, step);  // replaced by this one
  PLAIT_ASSIGN_OR_RETURN(SaveTask task, SaveTask::Prepare(comm_, root_, step, pieces, state, options_));
  std::vector<const void*> values = Copy(pieces, task);
  task_.emplace(std::move(task));
  writing_ = std::async(std::launch::async, [task = &*task_, values = std::move(values)] {
    absl::Status written = task->WriteValues(values);
    written.Update(task->Flush());
    return Written{written, Clock::now()};
  });
  return absl::OkStatus();
}

absl::StatusOr<std::optional<SaveReport>> AsyncSaver::Poll() {
  if (!in_flight()) return std::nullopt;
  const bool ready = writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  std::int64_t all_ready[1] = {ready ? 1 : 0};
  comm_.AllReduce(comm::BufferOf(absl::MakeSpan(all_ready)), comm::ReduceOp::kMin);
  if (all_ready[0] == 0) return std::nullopt;
  return Finish();
}

absl::StatusOr<std::optional<SaveReport>> AsyncSaver::Finish() {
  if (!in_flight()) return std::nullopt;
  const Written mine = writing_.get();
  const Clock::time_point commit = Clock::now();
  SaveTask task = std::move(*task_);
  task_.reset();
  PLAIT_ASSIGN_OR_RETURN(SaveReport report, task.Commit(mine.status));
  seconds_ = std::chrono::duration<double>(mine.end - begin_ + (Clock::now() - commit)).count();
  return std::make_optional(std::move(report));
}

std::vector<const void*> AsyncSaver::Copy(absl::Span<const TensorPiece> pieces, const SaveTask& task) {
  std::size_t bytes = 0;
  for (const LayoutPiece& piece : task.own_pieces()) {
    bytes += RoundedUp(pieces[piece.offered].bytes(), kPieceAlignment);
  }
  MakeRoom(bytes);
  std::vector<const void*> values;
  char* next = copy_.get();
  for (const LayoutPiece& piece : task.own_pieces()) {
    const TensorPiece& from = pieces[piece.offered];
    std::memcpy(next, from.data, from.bytes());
    values.push_back(next);
    next += RoundedUp(from.bytes(), kPieceAlignment);
  }
  return values;
}

void AsyncSaver::MakeRoom(std::size_t bytes) {
  if (bytes <= copy_bytes_) return;
  copy_.reset();
  copy_bytes_ = RoundedUp(bytes, kPageBytes);
  copy_.reset(static_cast<char*>(std::aligned_alloc(kPageBytes, copy_bytes_)));
  PLAIT_CHECK(copy_ != nullptr) << "no memory for a copy of " << bytes << " bytes";
  // Fewer page faults in the first copy; without huge pages it is only slower.
  madvise(copy_.get(), copy_bytes_, MADV_HUGEPAGE);
}

}  // namespace plait::parallel
