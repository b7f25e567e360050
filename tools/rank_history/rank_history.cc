#include "tools/rank_history/rank_history.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/time/clock.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "data/history/settings_line.h"
#include "data/history/sinks.h"

namespace plait::rank_history {
namespace {

class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds), begin_(Clock::now()) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(Clock::now() - begin_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& seconds_;
  Clock::time_point begin_;
};

data::NamedTexts HyperparametersIn(const std::map<std::string, std::string>& attributes) {
  const auto settings = attributes.find("settings");
  if (settings == attributes.end()) return {};
  return data::ParseSettings(settings->second);
}

using Sinks = std::vector<std::unique_ptr<data::HistorySink>>;

// Adds the exports to `sinks`, up to the first that fails.
absl::Status MakeSinks(const RankHistoryOptions& options, Sinks& sinks) {
  const bool resumes = options.resume_draws >= 0;
  for (const auto& [path, make] : {std::pair(options.exports.csv, &data::MakeCsvSink),
                                   std::pair(options.exports.json_lines, &data::MakeJsonLinesSink)}) {
    if (path.empty()) continue;
    PLAIT_ASSIGN_OR_RETURN(sinks.emplace_back(), make(path, /*move_old_aside=*/resumes));
  }
  if (options.exports.tensorboard.empty()) return absl::OkStatus();
  const data::TensorboardOptions tensorboard = {.attributes = options.attributes,
                                                .hyperparameters = HyperparametersIn(options.attributes),
                                                .resume_draws = options.resume_draws};
  PLAIT_ASSIGN_OR_RETURN(sinks.emplace_back(),
                         data::MakeTensorboardSink(options.exports.tensorboard, tensorboard));
  return absl::OkStatus();
}

// The exports first: if one fails, there is no new history yet, and a resumed one has all its draws.
absl::StatusOr<std::unique_ptr<data::History>> OpenFiles(const RankHistoryOptions& options, Sinks& sinks) {
  PLAIT_RETURN_IF_ERROR(MakeSinks(options, sinks));
  const data::HistoryOptions file = {.attributes = options.attributes};
  return options.resume_draws >= 0 ? data::History::Resume(options.path, options.resume_draws, file)
                                   : data::History::Create(options.path, file);
}

}  // namespace

RankHistory::RankHistory(comm::Communicator group, RankBlock block, const RankHistoryOptions& options)
    : group_(std::move(group)),
      gather_every_(options.gather_every),
      block_(std::move(block)),
      draws_(std::max<std::int64_t>(0, options.resume_draws)) {}

RankHistory::~RankHistory() = default;

absl::StatusOr<std::unique_ptr<RankHistory>> RankHistory::Create(const comm::Communicator& world,
                                                                 const RankHistoryOptions& options) {
  PLAIT_CHECK(options.gather_every > 0) << "gather_every is " << options.gather_every;
  PLAIT_ASSIGN_OR_RETURN(RankBlock block, RankBlock::Make(options.metrics));
  auto history = std::unique_ptr<RankHistory>(
      new RankHistory(world.Split(0, world.rank(), "history"), std::move(block), options));
  const absl::Status opened = world.rank() == 0 ? history->Open(options) : absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(history->group_.Agree(opened));
  return history;
}

absl::Status RankHistory::Open(const RankHistoryOptions& options) {
  Sinks sinks;
  absl::StatusOr<std::unique_ptr<data::History>> opened = OpenFiles(options, sinks);
  if (!opened.ok()) {
    for (const std::unique_ptr<data::HistorySink>& sink : sinks) sink->Discard();
    return opened.status();
  }
  history_ = *std::move(opened);
  for (std::unique_ptr<data::HistorySink>& sink : sinks) history_->AddSink(std::move(sink));
  block_.KeepApart(history_->metrics(), group_.size());
  for (const data::Metric& metric : block_.Metrics(group_.size())) {
    PLAIT_RETURN_IF_ERROR(history_->Declare(metric));
  }
  return absl::OkStatus();
}

absl::Status RankHistory::Append(absl::Span<const data::Scalar> scalars,
                                 absl::Span<const data::Vector> vectors) {
  const Stopwatch watch(seconds_);
  if (!agreed_.ok()) return agreed_;
  // An unknown name is a local error on one rank: the next all-gather reports it to all.
  own_.Update(block_.AddDraw(scalars, vectors));
  times_.push_back(absl::Now());
  ++draws_;
  return block_.draws() >= gather_every_ ? Gather() : absl::OkStatus();
}

// One all-gather: a flag whether this rank has failed, then its numbers (draw, number).
absl::Status RankHistory::Gather() {
  if (block_.draws() == 0) return absl::OkStatus();
  std::vector<double> mine = {own_.ok() ? 0.0 : 1.0};
  block_.AppendNumbers(mine);
  std::vector<double> all(mine.size() * group_.size());
  group_.AllGather(comm::BufferOf(absl::MakeSpan(mine)), comm::BufferOf(absl::MakeSpan(all)));
  GatheredBlock block{.ranks = group_.size(), .draws = block_.draws()};
  block.numbers.reserve(all.size());
  bool failed = false;
  for (std::size_t at = 0; at < all.size(); at += mine.size()) {
    failed = failed || all[at] != 0;
    block.numbers.insert(block.numbers.end(), all.begin() + at + 1, all.begin() + at + mine.size());
  }
  if (failed) return agreed_ = group_.Agree(own_);
  if (history_ != nullptr) WriteDraws(block);
  block_.Clear();
  times_.clear();
  return absl::OkStatus();
}

// An error is kept until the next all-gather, which reports it to all ranks.
void RankHistory::WriteDraws(const GatheredBlock& block) {
  for (std::int64_t draw = 0; draw < block.draws && own_.ok(); ++draw) {
    const ReducedDraw& reduced = block_.Reduce(block, draw);
    own_.Update(history_->Append(reduced.scalars, reduced.vectors, times_[draw]));
  }
}

absl::Status RankHistory::Flush() {
  if (!agreed_.ok()) return agreed_;
  const Stopwatch watch(seconds_);
  PLAIT_RETURN_IF_ERROR(Gather());
  if (history_ != nullptr && own_.ok()) own_ = history_->Commit();
  return agreed_ = group_.Agree(own_);
}

absl::Status RankHistory::Close() {
  if (!agreed_.ok()) return agreed_;
  const Stopwatch watch(seconds_);
  PLAIT_RETURN_IF_ERROR(Gather());
  if (history_ != nullptr && own_.ok()) own_ = history_->Close();
  return agreed_ = group_.Agree(own_);
}

}  // namespace plait::rank_history
