#include "mgrit/scaling/rank_clocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace plait::mgrit::scaling {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

RankClocks::RankClocks(const std::vector<RankTrace>& traces, WorkTime work_time, Bytes bytes,
                       double latency_seconds, double byte_seconds, const Machine& machine)
    : traces_(traces),
      work_time_(std::move(work_time)),
      bytes_(std::move(bytes)),
      latency_(latency_seconds),
      byte_seconds_(byte_seconds),
      machine_(machine),
      ranks_(traces.size()) {}

double RankClocks::Run() {
  const int count = static_cast<int>(ranks_.size());
  while (true) {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < count; ++rank) moved |= Advance(rank);
    }
    const bool done =
        std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.state == State::kDone; });
    if (done) return now_;
    PassTime();
  }
}

void RankClocks::Compute(Rank& rank, double seconds) {
  rank.state = State::kComputing;
  rank.remaining = seconds;
}

void RankClocks::Sleep(Rank& rank, double until) {
  rank.state = State::kSleeping;
  rank.wake = until;
}

double RankClocks::HandOver() const {
  return static_cast<int>(ranks_.size()) > machine_.cores ? machine_.hand_over : 0;
}

bool RankClocks::Advance(int index) {
  Rank& rank = ranks_[index];
  if (rank.state != State::kReady && rank.state != State::kBlocked) return false;
  const std::vector<Event>& events = traces_[index].events;
  if (rank.next == events.size()) {
    rank.state = State::kDone;
    return true;
  }
  return Begin(index, events[rank.next]);
}

// An event that cannot begin or end yet blocks its rank. One that takes time leaves the rank computing or sleeping;
// `next` is then the event after it.
bool RankClocks::Begin(int index, const Event& event) {
  Rank& rank = ranks_[index];
  rank.state = State::kBlocked;
  switch (event.type) {
    case Event::Type::kWork:
      Compute(rank, work_time_(event));
      break;
    case Event::Type::kSend: {
      if (!SendsAreReceived(index, &event)) return false;
      Channel& channel = channels_[{index, event.peer, event.tag}];
      rank.last_sent[{event.peer, event.tag}] = channel.messages.size();
      channel.messages.push_back({.available = now_ + latency_});
      rank.state = State::kReady;
      break;
    }
    case Event::Type::kReceive: {
      Channel& channel = channels_[{event.peer, index, event.tag}];
      if (channel.taken == channel.messages.size()) {
        rank.waited = true;
        return false;
      }
      Message& message = channel.messages[channel.taken];
      const double ready = message.available + (rank.waited ? HandOver() : 0);
      if (ready > now_) {
        Sleep(rank, ready);
        return true;  // the event begins again then
      }
      rank.waited = false;
      message.received = true;
      ++channel.taken;
      Compute(rank, bytes_(event) * byte_seconds_);
      break;
    }
    case Event::Type::kFinishSends:
      if (!SendsAreReceived(index, nullptr)) return false;
      rank.state = State::kReady;
      break;
    case Event::Type::kCollective:
      return BeginCollective(index, event);
  }
  ++rank.next;
  return true;
}

bool RankClocks::SendsAreReceived(int index, const Event* only) {
  for (const auto& [to, message] : ranks_[index].last_sent) {
    if (only != nullptr && to != std::pair(only->peer, only->tag)) continue;
    if (!channels_[{index, to.first, to.second}].messages[message].received) return false;
  }
  return true;
}

bool RankClocks::BeginCollective(int index, const Event& event) {
  Rank& rank = ranks_[index];
  if (collectives_.size() <= rank.collectives) collectives_.resize(rank.collectives + 1);
  Collective& collective = collectives_[rank.collectives];
  bool moved = false;
  if (!rank.entered) {
    rank.entered = moved = true;
    rank.waited = ++collective.arrived < static_cast<int>(ranks_.size());
    if (!rank.waited) {
      const double stages = std::ceil(std::log2(static_cast<double>(ranks_.size())));
      collective.done = now_ + stages * (latency_ + bytes_(event) * byte_seconds_);
    }
  }
  if (collective.done < 0) return moved;
  rank.entered = false;
  ++rank.collectives;
  ++rank.next;
  Sleep(rank, collective.done + (rank.waited ? HandOver() : 0));
  rank.waited = false;
  return true;
}

void RankClocks::PassTime() {
  const auto computing = static_cast<double>(std::count_if(
      ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.state == State::kComputing; }));
  double speed = std::min(1.0, machine_.cores / std::max(computing, 1.0));
  if (computing > 1) speed /= machine_.contention;
  double next = kNever;
  for (const Rank& rank : ranks_) {
    if (rank.state == State::kComputing) next = std::min(next, now_ + rank.remaining / speed);
    if (rank.state == State::kSleeping) next = std::min(next, rank.wake);
  }
  PLAIT_CHECK(next < kNever) << "deadlock between ranks";
  const double passed = std::max(next - now_, 0.0);
  now_ = std::max(next, now_);
  for (Rank& rank : ranks_) {
    if (rank.state == State::kComputing) {
      rank.remaining -= passed * speed;
      if (rank.remaining <= 1e-12) rank.state = State::kReady;
    } else if (rank.state == State::kSleeping && rank.wake <= now_) {
      rank.state = State::kReady;
    }
  }
}

}  // namespace plait::mgrit::scaling
