#include "parallel/pipeline/schedule.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace plait::parallel {
namespace {

// Builds the list of actions of one rank.
class Writer {
 public:
  Writer(const Schedule& schedule, int rank) : schedule_(schedule) {
    for (int stage = 0; stage < schedule.stages(); ++stage) {
      if (schedule.rank_of_stage[stage] == rank) stages_.push_back(stage);
    }
    next_.assign(4 * stages_.size(), 0);
  }

  // Ignores micro-batches beyond the last one.
  void Add(ActionKind kind, int chunk, int micro_batch) {
    if (micro_batch >= schedule_.micro_batches) return;
    actions_.push_back({kind, stages_[static_cast<std::size_t>(chunk)], micro_batch});
  }
  // Adds the action for the chunk's next micro-batch of this kind.
  void Next(ActionKind kind, int chunk) { Add(kind, chunk, Count(kind, chunk)++); }
  void F(int chunk = 0) { Next(ActionKind::kForward, chunk); }
  void B(int chunk = 0) { Next(ActionKind::kBackward, chunk); }
  void I(int chunk = 0) { Next(ActionKind::kInputGradient, chunk); }
  void W(int chunk = 0) { Next(ActionKind::kWeightGradient, chunk); }
  int forwards(int chunk) { return Count(ActionKind::kForward, chunk); }

  // Adds the remaining weight gradients, those of the last stage first.
  void Finish() {
    for (int chunk = schedule_.chunks; chunk-- > 0;) {
      while (Count(ActionKind::kWeightGradient, chunk) < Count(ActionKind::kInputGradient, chunk)) W(chunk);
    }
  }
  std::vector<Action> Take() { return std::move(actions_); }

 private:
  int& Count(ActionKind kind, int chunk) {
    return next_[static_cast<std::size_t>(chunk) * 4 + static_cast<std::size_t>(kind)];
  }

  const Schedule& schedule_;
  std::vector<int> stages_, next_;
  std::vector<Action> actions_;
};

void WriteGpipe(const Schedule& s, int, Writer& w) {
  for (int m = 0; m < s.micro_batches; ++m) w.F();
  for (int m = 0; m < s.micro_batches; ++m) w.B();
}

void Write1F1B(const Schedule& s, int rank, Writer& w) {
  const int ahead = std::min(s.ranks - 1 - rank, s.micro_batches);
  for (int m = 0; m < ahead; ++m) w.F();
  for (int m = ahead; m < s.micro_batches; ++m) {
    w.F();
    w.B();
  }
  for (int m = 0; m < ahead; ++m) w.B();
}

// Ranks cycle through the chunks, with `ranks` micro-batches at a time; in backward, from the last chunk.
void WriteInterleaved(const Schedule& s, int rank, Writer& w) {
  if (s.chunks == 1) return Write1F1B(s, rank, w);
  const int total = s.micro_batches * s.chunks, turn = s.ranks * s.chunks;
  const int ahead = std::min(2 * (s.ranks - 1 - rank) + (s.chunks - 1) * s.ranks, total);
  const auto chunk = [&](int k) { return k % turn / s.ranks; };
  for (int k = 0; k < ahead; ++k) w.F(chunk(k));
  for (int k = ahead; k < total; ++k) {
    w.F(chunk(k));
    w.B(s.chunks - 1 - chunk(k - ahead));
  }
  for (int k = total - ahead; k < total; ++k) w.B(s.chunks - 1 - chunk(k));
}

// Rank r delays W by r micro-batches, so that all ranks have the same number in flight, and fills the end with them.
void WriteZbH1(const Schedule& s, int rank, Writer& w) {
  const int ahead = std::min(s.ranks - 1 - rank, s.micro_batches);
  for (int m = 0; m < ahead; ++m) w.F();
  for (int m = ahead; m < s.micro_batches; ++m) {
    w.F();
    w.I();
    if (m - ahead >= rank) w.W();
  }
  for (int m = 0; m < ahead; ++m) {
    w.I();
    w.W();
  }
  w.Finish();
}

void WriteZbv(const Schedule& s, int rank, Writer& w) {
  const auto last_chunk = [&w] {
    w.F(1);
    w.I(1);
    w.W(1);
  };
  // The phases are those of a full pipeline; actions of micro-batches beyond the last one are ignored.
  const int micro_batches = std::max(s.micro_batches, 2 * s.ranks - 1);
  for (int m = 0; m < 2 * (s.ranks - rank) - 1; ++m) w.F(0);
  for (int m = 0; m < rank; ++m) {
    w.F(1);
    w.F(0);
  }
  for (int m = 0; m < s.ranks - rank; ++m) last_chunk();
  while (w.forwards(1) < micro_batches) {
    if (w.forwards(0) < micro_batches) w.F(0);
    w.I(0);
    w.W(0);
    last_chunk();
  }
  for (int m = 0; m < rank; ++m) {
    w.I(0);
    w.I(1);
  }
  for (int m = 0; m < s.ranks - rank; ++m) {
    w.I(0);
    w.W(0);
  }
  w.Finish();
}

absl::Status Invalid(ScheduleKind kind, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(Name(kind), ": ", what));
}

// The actions of more would take gigabytes.
constexpr std::int64_t kMostActions = std::int64_t{1} << 24;

absl::Status CheckOptions(ScheduleKind kind, const Schedule& s) {
  if (s.ranks < 1 || s.micro_batches < 1 || s.chunks < 1) {
    return Invalid(kind, absl::StrCat(s.ranks, " ranks, ", s.chunks, " chunks, ", s.micro_batches,
                                      " micro-batches; expected at least one of each"));
  }
  const std::int64_t stages = std::int64_t{s.ranks} * s.chunks;
  if (static_cast<double>(stages) * s.micro_batches > kMostActions) {
    return Invalid(kind,
                   absl::StrCat(stages, " stages and ", s.micro_batches, " micro-batches; expected at most ",
                                kMostActions, " passes of micro-batches over stages"));
  }
  if (kind == ScheduleKind::kZbv && s.chunks != 2) {
    return Invalid(kind, absl::StrCat("has 2 stages on each rank, not ", s.chunks));
  }
  if (kind != ScheduleKind::kZbv && kind != ScheduleKind::kInterleaved && s.chunks != 1) {
    return Invalid(kind,
                   absl::StrCat("has one stage on each rank, not ", s.chunks, "; interleaved has several"));
  }
  if (kind == ScheduleKind::kInterleaved && s.chunks > 1 && s.micro_batches % s.ranks != 0) {
    return Invalid(kind, absl::StrCat(s.micro_batches, " micro-batches; expected a multiple of the ", s.ranks,
                                      " ranks of pp"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view Name(ScheduleKind kind) {
  constexpr const char* kNames[] = {"gpipe", "1f1b", "interleaved", "zb-h1", "zbv"};
  return kNames[static_cast<int>(kind)];
}

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const ScheduleKind kind : kScheduleKinds) names.emplace_back(Name(kind));
  return names;
}

absl::StatusOr<ScheduleKind> ParseScheduleKind(absl::string_view name) {
  for (const ScheduleKind kind : kScheduleKinds) {
    if (Name(kind) == name) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no pipeline schedule \"", name, "\"; expected ", absl::StrJoin(ScheduleNames(), " or ")));
}

absl::StatusOr<Schedule> MakeSchedule(ScheduleKind kind, const ScheduleOptions& options) {
  const bool two = kind == ScheduleKind::kInterleaved || kind == ScheduleKind::kZbv;
  Schedule schedule = {.name = std::string(Name(kind)),
                       .ranks = options.ranks,
                       .chunks = options.chunks != 0 ? options.chunks : (two ? 2 : 1),
                       .micro_batches = options.micro_batches,
                       .rank_of_stage = {},
                       .actions = {}};
  PLAIT_RETURN_IF_ERROR(CheckOptions(kind, schedule));
  for (int stage = 0; stage < schedule.ranks * schedule.chunks; ++stage) {
    const int place = stage % schedule.ranks;
    const bool back = kind == ScheduleKind::kZbv && stage >= schedule.ranks;
    schedule.rank_of_stage.push_back(back ? schedule.ranks - 1 - place : place);
  }
  constexpr void (*kWriters[])(const Schedule&, int, Writer&) = {WriteGpipe, Write1F1B, WriteInterleaved,
                                                                 WriteZbH1, WriteZbv};
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    Writer writer(schedule, rank);
    kWriters[static_cast<int>(kind)](schedule, rank, writer);
    schedule.actions.push_back(writer.Take());
  }
  return schedule;
}

std::string ToText(const Action& action) {
  return absl::StrCat(action.stage, std::string(1, "FBIW"[static_cast<int>(action.kind)]),
                      action.micro_batch);
}

std::string ToText(const Schedule& schedule) {
  std::string text;
  for (const std::vector<Action>& actions : schedule.actions) {
    absl::StrAppend(
        &text, absl::StrJoin(actions, " ", [](std::string* out, const Action& a) { out->append(ToText(a)); }),
        "\n");
  }
  return text;
}

}  // namespace plait::parallel
