// The watchdog of every rank but 0: publishes its position, calls the hub, obeys it.
#include <unistd.h>

#include <csignal>
#include <optional>

#include "comm/watchdog/byte_stream.h"
#include "comm/watchdog/post.h"
#include "comm/watchdog/verdict.h"
#include "comm/watchdog/watchdog.h"

namespace plait::comm {
namespace {

constexpr double kPublishSeconds = 0.25;
constexpr double kGoodbyeSeconds = 2;
constexpr double kHubAnswerSeconds = 0.6;
constexpr double kOrphanSeconds = 0.5;   // rank 1 prints first
constexpr double kSigtermSeconds = 0.6;  // the hub may have something to say

class Outpost : public Post {
 public:
  Outpost(int rank, Peer hub, const FlightRecorder& recorder, Signals& signals)
      : rank_(rank), hub_(std::move(hub)), recorder_(recorder), signals_(signals) {}

  std::vector<Link*> links() override {
    return hub_.link.open() ? std::vector<Link*>{&hub_.link} : std::vector<Link*>{};
  }

  void Step() override {
    now_ = FlightRecorder::Now();
    for (const Frame& frame : hub_.link.Receive()) Hear(frame);
    if (!hub_.link.open() && !hub_left_) return OnHubLost(RankState::kDead);
    if (sigterm_deadline_ && now_ > *sigterm_deadline_) _exit(128 + SIGTERM);
    Report();
    Suspect();
    Publish();
  }

  void OnSigterm() override {
    if (signals_.stop_on_sigterm) {
      signals_.stop_requested = true;
    } else if (!sigterm_deadline_) {
      sigterm_deadline_ = FlightRecorder::Now() + kSigtermSeconds;
      hub_.link.Send(FrameKind::kTerminated);
    }
  }

  void SayGoodbye() override {
    hub_.link.Send(FrameKind::kGoodbye);
    CloseInOrder(links(), kGoodbyeSeconds);
  }

 private:
  void Hear(const Frame& frame) {
    switch (frame.kind) {
      case FrameKind::kQuery:
        suspected_at_.reset();
        SendPosition();
        break;
      case FrameKind::kEnd:
        _exit(ByteReader(frame.payload).Read<int>());
      case FrameKind::kGoodbye:
        hub_left_ = true;
        break;
      case FrameKind::kPosition:
        if (auto position = DecodePosition(frame.payload)) hub_position_ = std::move(*position);
        hub_seen_ = now_;
        break;
      default:
        break;
    }
  }

  void OnHubLost(RankState state) {
    if (!hub_lost_at_) hub_lost_at_ = now_;
    if (rank_ == 1) {
      RankReport report{.rank = 0,
                        .host = hub_.host,
                        .pid = hub_.pid,
                        .state = state,
                        .exit_code = 0,
                        .position = hub_position_,
                        .received_seconds = hub_seen_};
      PrintLines(FindGuilty({report}, signals_.timeout_seconds, now_));
      _exit(kJobFailedExitCode);
    }
    if (now_ > *hub_lost_at_ + kOrphanSeconds) _exit(kJobFailedExitCode);
  }

  // An error or an exit() of this rank: once.
  void Report() {
    if (reported_ || (!signals_.failing && signals_.exit_code < 0)) return;
    reported_ = true;
    SendPosition();
    if (signals_.exit_code < 0) return;
    ByteWriter payload;
    payload.Write(EndState(signals_));
    payload.Write(signals_.exit_code.load());
    hub_.link.Send(FrameKind::kExiting, payload.Take());
  }

  void Suspect() {
    if (recorder_.WaitingSeconds() < signals_.timeout_seconds) {
      suspected_at_.reset();
    } else if (!suspected_at_) {
      suspected_at_ = now_;
      hub_.link.Send(FrameKind::kSuspicion);
    } else if (now_ > *suspected_at_ + kHubAnswerSeconds) {
      OnHubLost(RankState::kSilent);
    }
  }

  void Publish() {
    if (now_ < last_published_ + kPublishSeconds) return;
    SendPosition();
  }

  void SendPosition() {
    last_published_ = now_;
    hub_.link.Send(FrameKind::kPosition, Encode(OwnPosition(recorder_, signals_)));
  }

  int rank_;
  Peer hub_;
  const FlightRecorder& recorder_;
  Signals& signals_;
  Position hub_position_;
  double hub_seen_ = 0;
  double now_ = 0;
  double last_published_ = 0;
  bool hub_left_ = false;
  bool reported_ = false;
  std::optional<double> hub_lost_at_;
  std::optional<double> suspected_at_;
  std::optional<double> sigterm_deadline_;
};

}  // namespace

std::unique_ptr<Post> MakeOutpost(int rank, Peer hub, const FlightRecorder& recorder, Signals& signals) {
  return std::make_unique<Outpost>(rank, std::move(hub), recorder, signals);
}

}  // namespace plait::comm
