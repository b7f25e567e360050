#include "tools/training/resume.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "data/hdf5/checked_array.h"
#include "parallel/checkpoint/step_folders.h"

namespace plait::training {
namespace {

using parallel::Checkpoint;

constexpr char kPrefix[] = "setting.";
constexpr char kFormat[] = " 2";  // behind the program's name

absl::Status AnotherRun(const Checkpoint& checkpoint, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(checkpoint.folder(), ": checkpoint of another run: ", what));
}

// Whether the run goes on with the checkpoints of `folder`, or one of them. Those of another run would be replaced.
bool ResumesFrom(const Settings& settings, const std::string& folder) {
  if (settings.resume.empty()) return false;
  if (settings.resume == "auto") return true;
  std::error_code ignored;
  const auto same = [&](const std::filesystem::path& path) {
    return std::filesystem::equivalent(path, folder, ignored);
  };
  const std::filesystem::path from = base::FromUser(settings.resume);
  return same(from) || same(std::filesystem::weakly_canonical(from, ignored).parent_path());
}

// Rank 0's part.
absl::Status OpenFolder(const Settings& settings, FolderLockOptions options,
                        std::unique_ptr<FolderLock>* lock) {
  const std::string folder = base::FromUser(settings.checkpoint_dir);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(base::ProbeWritableFolder(folder), "--checkpoint-dir"));
  absl::StatusOr<std::unique_ptr<FolderLock>> taken = FolderLock::Take(folder, options);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(taken.status(), "--checkpoint-dir"));
  *lock = *std::move(taken);
  if (ResumesFrom(settings, folder)) return absl::OkStatus();
  const absl::StatusOr<std::vector<std::int64_t>> steps = parallel::CompleteSteps(folder);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(steps.status(), "--checkpoint-dir"));
  if (steps->empty()) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "--checkpoint-dir: ", folder, " holds the checkpoints of an earlier run; resume with --resume=", folder,
      ", or name another directory"));
}

// The checkpoint that is meant; empty: none, and none is needed.
absl::StatusOr<std::string> FindCheckpoint(const Settings& settings, const comm::Communicator& world,
                                           const std::function<void(const std::string&)>& say) {
  const bool automatic = settings.resume == "auto";
  const std::string folder = base::FromUser(automatic ? settings.checkpoint_dir : settings.resume);
  std::int64_t is_one[1] = {0};
  std::error_code ignored;
  if (world.rank() == 0 && std::filesystem::exists(folder + "/index.h5", ignored)) is_one[0] = 1;
  world.Broadcast(comm::BufferOf(absl::MakeSpan(is_one)), 0);
  if (is_one[0] == 1) return folder;
  absl::Status skipped;
  const absl::StatusOr<std::string> latest = parallel::FindLatestCheckpoint(world, folder, &skipped);
  if (latest.ok()) {
    if (!skipped.ok()) {
      say(absl::StrCat("--resume: taking ", *latest, ": the latest cannot be opened: ", skipped.message()));
    }
    return latest;
  }
  PLAIT_RETURN_IF_ERROR(world.Agree(world.rank() == 0 ? settings.CheckResume(folder) : absl::OkStatus()));
  if (automatic && absl::IsNotFound(latest.status())) return std::string();
  return latest;
}

NamedValues KeptIn(const Checkpoint& checkpoint) {
  NamedValues kept;
  for (const auto& [name, value] : checkpoint.texts()) {
    absl::string_view setting = name;
    if (absl::ConsumePrefix(&setting, kPrefix)) kept[std::string(setting)] = value;
  }
  return kept;
}

absl::Status CheckProgram(const Checkpoint& checkpoint, const std::string& program) {
  const auto found = checkpoint.texts().find("program");
  const std::string other = found == checkpoint.texts().end() ? "" : found->second;
  const std::vector<std::string> words = absl::StrSplit(other, ' ');
  if (words[0] == program) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(checkpoint.folder(), ": expected a checkpoint of ", program,
                                          ", found one of \"", other, "\""));
}

absl::StatusOr<Checkpoint> OpenAndAdopt(const std::string& folder, const std::string& program,
                                        Settings& settings, SettingsTable& table,
                                        std::vector<std::string>* changes) {
  PLAIT_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(folder));
  PLAIT_RETURN_IF_ERROR(CheckProgram(checkpoint, program));
  const NamedValues kept = KeptIn(checkpoint);
  // Defaults of the checkpoint's preset: settings.flags has what differs from them.
  absl::Status adopted = table.AdoptPresets(kept);
  if (adopted.ok()) adopted = settings.ChooseDefaults(table);
  if (adopted.ok()) adopted = table.Adopt(kept, changes);
  if (!adopted.ok()) return AnotherRun(checkpoint, adopted.message());
  // The same batch on any number of ranks: Settings::DerivedFlags leaves out --batch-size then.
  const auto batch = kept.find(kGlobalBatch);
  if (batch != kept.end() && !table.Given("batch_size") && !table.Given("global_batch_size")) {
    if (!absl::SimpleAtoi(batch->second, &settings.global_batch_size)) {
      return absl::DataLossError(absl::StrCat(folder, ": \"", batch->second, "\" is no batch size"));
    }
  }
  return checkpoint;
}

}  // namespace

parallel::SaveOptions SaveOptionsOf(const Settings& settings, const std::optional<Checkpoint>& resumed) {
  parallel::SaveOptions options = {.keep_last = settings.keep_last};
  if (resumed.has_value())
    options.superseded = parallel::StepsAfter(base::FromUser(settings.checkpoint_dir), resumed->step());
  return options;
}

absl::StatusOr<CheckpointPlace> OpenCheckpointPlace(const std::string& program, Settings& settings,
                                                    SettingsTable& table, const comm::Communicator& world,
                                                    const std::string& job_id,
                                                    const std::function<void(const std::string&)>& say) {
  CheckpointPlace place;
  absl::Status opened;
  if (world.rank() == 0 && !settings.checkpoint_dir.empty()) {
    opened = OpenFolder(settings, {.job_id = job_id, .say = say}, &place.lock);
  }
  PLAIT_RETURN_IF_ERROR(world.Agree(opened));
  if (settings.resume.empty()) return place;
  absl::StatusOr<std::string> folder = FindCheckpoint(settings, world, say);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(folder.status(), "--resume"));
  if (folder->empty()) {
    say("--resume=auto: no checkpoint yet, beginning from the start");
    return place;
  }
  std::vector<std::string> changes;
  absl::StatusOr<Checkpoint> checkpoint = OpenAndAdopt(*folder, program, settings, table, &changes);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(world.Agree(checkpoint.status()), "--resume"));
  place.checkpoint.emplace(*std::move(checkpoint));
  if (!changes.empty()) {
    say(absl::StrCat("resuming with other settings than before: ", absl::StrJoin(changes, ", ")));
  }
  return place;
}

absl::Status CompareFacts(const Checkpoint& checkpoint, const NamedValues& facts) {
  const NamedValues kept = KeptIn(checkpoint);
  for (const auto& [name, value] : facts) {
    const auto found = kept.find(name);
    if (found == kept.end() || found->second == base::ValidUtf8(value)) continue;  // as Trainer saves it
    return AnotherRun(checkpoint, absl::StrCat(name, " is ", found->second, " there and ", value, " here"));
  }
  return absl::OkStatus();
}

std::string DigestOf(std::int64_t count, absl::FunctionRef<std::int64_t(std::int64_t index)> number) {
  constexpr std::int64_t kPieces = 256, kPiece = 4096;
  const std::int64_t pieces = std::min(kPieces, (count + kPiece - 1) / kPiece);
  std::vector<std::int64_t> numbers;
  std::uint32_t crc = 0;
  for (std::int64_t p = 0; p < pieces; ++p) {
    const std::int64_t begin = pieces > 1 ? (count - kPiece) * p / (pieces - 1) : 0;
    numbers.clear();
    for (std::int64_t i = begin; i < std::min(begin + kPiece, count); ++i) numbers.push_back(number(i));
    crc = data::Crc32(numbers.data(), static_cast<std::int64_t>(numbers.size() * sizeof(numbers[0])), crc);
  }
  return absl::StrFormat("%08x", crc);
}

void KeepSettings(const std::string& program, const NamedValues& kept, const NamedValues& facts,
                  parallel::CheckpointState& state) {
  state.texts["program"] = program + kFormat;
  for (const auto& [name, value] : kept) state.texts[kPrefix + name] = value;
  for (const auto& [name, value] : facts) state.texts[kPrefix + name] = value;
}

}  // namespace plait::training
