#include "tools/rank_history/rank_history.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "comm/gathered_text.h"
#include "data/history/settings_line.h"
#include "data/history/sinks.h"

namespace plait::rank_history {
namespace {

// In front of a rank's numbers in every all-gather.
constexpr std::size_t kHeader = 2;
enum Header : std::size_t { kHasNews, kFailed };

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

}  // namespace

RankHistory::RankHistory(comm::Communicator group, const RankHistoryOptions& options)
    : group_(std::move(group)),
      active_(!options.path.empty()),
      gather_every_(options.gather_every),
      draws_(std::max<std::int64_t>(0, options.resume_draws)) {}

RankHistory::~RankHistory() = default;

absl::StatusOr<std::unique_ptr<RankHistory>> RankHistory::Create(const comm::Communicator& world,
                                                                 const RankHistoryOptions& options) {
  PLAIT_CHECK(options.gather_every > 0) << "gather_every is " << options.gather_every;
  const comm::Communicator self = comm::Communicator::Self();
  auto history = std::unique_ptr<RankHistory>(
      new RankHistory(options.path.empty() ? self : world.Split(0, world.rank(), "history"), options));
  if (!history->active_) return history;
  const absl::Status opened = world.rank() == 0 ? history->Open(options) : absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(history->group_.Agree(opened));
  return history;
}

absl::Status RankHistory::Open(const RankHistoryOptions& options) {
  const data::HistoryOptions file = {.attributes = options.attributes,
                                     .move_old_aside = options.move_old_aside};
  PLAIT_ASSIGN_OR_RETURN(history_, options.resume_draws >= 0
                                       ? data::History::Resume(options.path, options.resume_draws, file)
                                       : data::History::Create(options.path, file));
  const bool move_aside = options.move_old_aside || options.resume_draws >= 0;
  for (const auto& [path, make] : {std::pair(options.exports.csv, &data::MakeCsvSink),
                                   std::pair(options.exports.json_lines, &data::MakeJsonLinesSink)}) {
    if (path.empty()) continue;
    PLAIT_ASSIGN_OR_RETURN(auto sink, make(path, move_aside));
    history_->AddSink(std::move(sink));
  }
  if (options.exports.tensorboard.empty()) return absl::OkStatus();
  const data::TensorboardOptions tensorboard = {.attributes = options.attributes,
                                                .hyperparameters = HyperparametersIn(options.attributes),
                                                .move_old_aside = options.move_old_aside,
                                                .resume = options.resume_draws >= 0};
  PLAIT_ASSIGN_OR_RETURN(auto sink, data::MakeTensorboardSink(options.exports.tensorboard, tensorboard));
  history_->AddSink(std::move(sink));
  return absl::OkStatus();
}

absl::Status RankHistory::Declare(const data::Metric& metric, RankStatistics over) {
  return active_ ? block_.Declare(metric, over) : absl::OkStatus();
}

absl::Status RankHistory::Append(absl::Span<const data::Scalar> scalars,
                                 absl::Span<const data::Vector> vectors) {
  if (!active_) return absl::OkStatus();
  const Stopwatch watch(seconds_);
  if (!agreed_.ok()) return agreed_;
  // A bad name is a local error of the program on one rank: it is told to all with the next block.
  const absl::Status added = block_.AddDraw(scalars);
  own_.Update(added);
  if (!added.ok()) PLAIT_CHECK_OK(block_.AddDraw({}));
  if (group_.rank() == 0) KeepVectors(vectors);
  ++draws_;
  return block_.draws() >= gather_every_ ? Gather() : absl::OkStatus();
}

void RankHistory::KeepVectors(absl::Span<const data::Vector> vectors) {
  std::vector<OwnVector>& kept = vectors_.emplace_back();
  for (const data::Vector& vector : vectors) {
    kept.push_back({std::string(vector.name), {vector.values.begin(), vector.values.end()}});
  }
}

// One all-gather of all that this rank holds: the header, then (draw, column).
GatheredBlock RankHistory::Exchange(const std::string& news, bool& any_news, bool& failed) {
  std::vector<double> mine(kHeader);
  mine[kHasNews] = news.empty() ? 0 : 1;
  mine[kFailed] = own_.ok() ? 0 : 1;
  block_.AppendNumbers(mine);
  std::vector<double> all(mine.size() * group_.size());
  group_.AllGather(comm::BufferOf(absl::MakeSpan(mine)), comm::BufferOf(absl::MakeSpan(all)));
  GatheredBlock block{.ranks = group_.size(), .draws = block_.draws()};
  block.numbers.reserve(all.size());
  any_news = failed = false;
  for (std::size_t at = 0; at < all.size(); at += mine.size()) {
    any_news = any_news || all[at + kHasNews] != 0;
    failed = failed || all[at + kFailed] != 0;
    block.numbers.insert(block.numbers.end(), all.begin() + at + kHeader, all.begin() + at + mine.size());
  }
  return block;
}

// What the ranks have named since the last time becomes columns on all of them.
absl::Status RankHistory::TakeNews(const std::string& news) {
  const std::size_t before = block_.agreed().size();
  PLAIT_RETURN_IF_ERROR(block_.Agree(comm::GatherText(group_, news)));
  if (history_ == nullptr) return absl::OkStatus();
  for (const data::Metric& metric : block_.MetricsToDeclare(before, group_.size())) {
    own_.Update(history_->Declare(metric));
  }
  return absl::OkStatus();
}

absl::Status RankHistory::Gather() {
  if (block_.draws() == 0) return absl::OkStatus();
  const std::string news = block_.News();
  bool any_news = false, failed = false;
  GatheredBlock block = Exchange(news, any_news, failed);
  if (any_news) {
    agreed_ = TakeNews(news);
    if (!agreed_.ok()) return agreed_;
    block = Exchange("", any_news, failed);
  }
  if (failed) return agreed_ = group_.Agree(own_);
  if (history_ != nullptr) WriteDraws(block);
  block_.Clear();
  vectors_.clear();
  return absl::OkStatus();
}

// An error is kept for the next exchange, which tells it to all ranks.
void RankHistory::WriteDraws(const GatheredBlock& block) {
  for (std::int64_t draw = 0; draw < block.draws && own_.ok(); ++draw) {
    const ReducedDraw& reduced = block_.Reduce(block, draw);
    all_vectors_.assign(reduced.vectors.begin(), reduced.vectors.end());
    for (const OwnVector& vector : vectors_[draw]) all_vectors_.push_back({vector.name, vector.values});
    own_.Update(history_->Append(reduced.scalars, all_vectors_));
  }
}

absl::Status RankHistory::Flush() {
  if (!active_ || !agreed_.ok()) return agreed_;
  const Stopwatch watch(seconds_);
  PLAIT_RETURN_IF_ERROR(Gather());
  if (history_ != nullptr && own_.ok()) own_ = history_->Commit();
  return agreed_ = group_.Agree(own_);
}

absl::Status RankHistory::Close() {
  if (!active_ || !agreed_.ok()) return agreed_;
  const Stopwatch watch(seconds_);
  PLAIT_RETURN_IF_ERROR(Gather());
  if (history_ != nullptr && own_.ok()) own_ = history_->Close();
  return agreed_ = group_.Agree(own_);
}

}  // namespace plait::rank_history
