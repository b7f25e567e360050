#include "parallel/checkpoint/save_task.h"

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/status_macros.h"
#include "comm/byte_stream.h"
#include "comm/gathered_text.h"
#include "comm/long_barrier.h"
#include "parallel/checkpoint/index_file.h"
#include "parallel/checkpoint/step_folders.h"

namespace plait::parallel {
namespace {

absl::Status CheckRankState(const CheckpointState& state) {
  for (const auto& [name, bytes] : state.rank_state) {
    if (name.empty() || name == "." || name == ".." || absl::StrContains(name, '/')) {
      return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" cannot name a rank's state"));
    }
  }
  return absl::OkStatus();
}

// FAILED_PRECONDITION if rank 0 does not see another rank's file: it would be missing from the checkpoint.
absl::Status CheckVisible(const std::string& folder, const std::vector<ShardSummary>& shards) {
  for (std::size_t rank = 0; rank < shards.size(); ++rank) {
    const std::string path = absl::StrCat(folder, "/", ShardFileName(static_cast<int>(rank)));
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(path, error);
    if (!error && static_cast<std::int64_t>(bytes) == shards[rank].bytes) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": rank ", rank, " wrote it, it is not visible to rank 0; use a shared file system"));
  }
  return absl::OkStatus();
}

absl::Status SyncFile(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const base::FileDescriptor file,
                         base::FileDescriptor::Open(path, base::FileDescriptor::Mode::kReadWrite));
  return file.Sync();
}

}  // namespace

SaveTask::SaveTask(comm::Communicator comm, std::string root, Layout layout, const CheckpointState& state,
                   const SaveOptions& options, SaveObserver observer)
    : comm_(std::move(comm)),
      root_(std::move(root)),
      layout_(std::move(layout)),
      state_(state),
      options_(options),
      observer_(std::move(observer)),
      own_(layout_.PiecesOf(comm_.rank())) {}

absl::Status SaveTask::Passed(SavePoint point) const {
  return observer_ ? observer_(point) : absl::OkStatus();
}

absl::StatusOr<SaveTask> SaveTask::Prepare(const comm::Communicator& comm, const std::string& root,
                                           std::int64_t step, absl::Span<const TensorPiece> pieces,
                                           const CheckpointState& state, const SaveOptions& options,
                                           SaveObserver observer) {
  PLAIT_ASSIGN_OR_RETURN(Layout layout, AgreeOnLayout(comm, step, pieces));
  SaveTask task(comm, root, std::move(layout), state, options, std::move(observer));
  absl::Status made = CheckRankState(state);
  if (comm.rank() == 0 && made.ok()) made = task.MakeReadyFolder();
  PLAIT_RETURN_IF_ERROR(task.GiveUpUnless(comm.Agree(made)));
  PLAIT_RETURN_IF_ERROR(task.GiveUpUnless(comm.Agree(task.LayOutFile())));
  return task;
}

absl::Status SaveTask::MakeReadyFolder() const {
  PLAIT_RETURN_IF_ERROR(MakeReady(root_, layout_.TotalBytes()));
  return Passed(SavePoint::kFolderReady);
}

absl::Status SaveTask::LayOutFile() {
  const std::string path = absl::StrCat(PartialFolder(root_, layout_.step), "/", ShardFileName(comm_.rank()));
  PLAIT_ASSIGN_OR_RETURN(file_, ShardFile::LayOut(path, layout_, comm_.rank(), state_.rank_state));
  return Passed(SavePoint::kFileLaidOut);
}

absl::Status SaveTask::WriteValues(absl::Span<const void* const> values) {
  PLAIT_RETURN_IF_ERROR(file_.Write(values));
  return Passed(SavePoint::kValuesWritten);
}

absl::StatusOr<SaveReport> SaveTask::Commit(const absl::Status& mine) {
  absl::Status flushed = mine;
  flushed.Update(Flush());
  comm::LongBarrier(comm_, comm::SecondsToWrite(layout_.TotalBytes()));
  PLAIT_RETURN_IF_ERROR(GiveUpUnless(comm_.Agree(flushed)));
  const std::vector<ShardSummary> shards = GatherSummaries();
  absl::Status written;
  if (comm_.rank() == 0) written = WriteIndexFile(shards);
  PLAIT_RETURN_IF_ERROR(GiveUpUnless(comm_.Agree(written)));
  absl::Status published;
  if (comm_.rank() == 0) published = Publish(shards);
  PLAIT_RETURN_IF_ERROR(GiveUpUnless(comm_.Agree(published)));
  RemovePartials(comm_, root_);
  const absl::Status passed = comm_.rank() == 0 ? Passed(SavePoint::kOlderRemoved) : absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(comm_.Agree(passed));
  SaveReport report{StepFolder(root_, layout_.step)};
  for (const ShardSummary& shard : shards) report.bytes += shard.bytes;
  return report;
}

std::vector<ShardSummary> SaveTask::GatherSummaries() const {
  comm::ByteWriter mine;
  mine.Write(file_.summary().bytes);
  mine.Write(file_.summary().checksums_crc32);
  std::vector<ShardSummary> shards;
  for (const std::string& bytes : comm::GatherText(comm_, mine.Take())) {
    comm::ByteReader reader(bytes);
    ShardSummary& shard = shards.emplace_back();
    shard.bytes = reader.Read<decltype(shard.bytes)>();
    shard.checksums_crc32 = reader.Read<decltype(shard.checksums_crc32)>();
  }
  return shards;
}

absl::Status SaveTask::WriteIndexFile(const std::vector<ShardSummary>& shards) const {
  return WriteIndex(
      absl::StrCat(PartialFolder(root_, layout_.step), "/", kIndexFile),
      {.layout = layout_, .shards = shards, .texts = state_.texts, .integers = state_.integers});
}

absl::Status SaveTask::Publish(const std::vector<ShardSummary>& shards) const {
  const std::string folder = PartialFolder(root_, layout_.step);
  PLAIT_RETURN_IF_ERROR(CheckVisible(folder, shards));
  PLAIT_RETURN_IF_ERROR(SyncFile(absl::StrCat(folder, "/", kIndexFile)));
  PLAIT_RETURN_IF_ERROR(Passed(SavePoint::kIndexWritten));
  PLAIT_RETURN_IF_ERROR(PublishFolder(root_, layout_.step));
  PLAIT_RETURN_IF_ERROR(Passed(SavePoint::kPublished));
  PLAIT_RETURN_IF_ERROR(WriteLatest(root_, layout_.step));
  PLAIT_RETURN_IF_ERROR(Passed(SavePoint::kLatestWritten));
  RetireOlder(root_, layout_.step, options_.keep_last, options_.superseded);
  return absl::OkStatus();
}

absl::Status SaveTask::GiveUpUnless(const absl::Status& agreed) const {
  if (agreed.ok()) return agreed;
  if (comm_.rank() == 0) RemovePartialFolder(root_, layout_.step);
  comm_.Barrier();  // no rank returns before the folder is removed
  return agreed;
}

}  // namespace plait::parallel
