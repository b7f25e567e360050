// The watchdog of all ranks but 0: sends its position, asks the server for an inquiry, and ends the process when told.
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <set>

#include "base/host_name.h"
#include "comm/byte_stream.h"
#include "comm/interrupt.h"
#include "comm/watchdog/verdict.h"
#include "comm/watchdog/watchdog.h"
#include "comm/watchdog/watchdog_endpoint.h"

namespace plait::comm {
namespace {

constexpr double kPublishSeconds = 0.25;
constexpr double kServerAnswerSeconds = 0.6;  // the server waits 0.4 s for silent ranks first
constexpr double kServerSilentSeconds = 2;    // it sends its position to the deputy four times per second
constexpr double kOrphanSeconds = 0.5;        // the deputy prints first
constexpr double kSigtermSeconds = 0.6;       // the server may report a fault first

class WatchdogClient : public WatchdogEndpoint {
 public:
  WatchdogClient(int rank, Meeting meeting, const FlightRecorder& recorder, Signals& signals)
      : rank_(rank),
        is_deputy_(rank == meeting.deputy),
        server_(std::move(meeting.peers[0])),
        recorder_(recorder),
        signals_(signals),
        server_seen_(FlightRecorder::Now()) {}

  std::vector<Link*> links() override {
    return server_.link.open() ? std::vector<Link*>{&server_.link} : std::vector<Link*>{};
  }

  void Step() override {
    now_ = FlightRecorder::Now();
    for (const Frame& frame : server_.link.Receive()) Hear(frame);
    if (!server_.link.open() && !server_left_ && interrupt_deadline_) _exit(kInterruptedExitCode);
    if (!server_.link.open() && !server_left_) return OnServerLost(RankState::kDead);
    if (interrupt_deadline_ && now_ > *interrupt_deadline_) _exit(kInterruptedExitCode);
    if (sigterm_deadline_ && now_ > *sigterm_deadline_) OnTerminated();
    Report();
    Suspect();
    Leave();
    Publish();
  }

  void OnSuspension(double seconds) override {
    suspected_at_.reset();
    server_seen_ += seconds;
  }

  void OnTermination(int signal) override {
    if (sigterm_deadline_) return;
    sigterm_deadline_ = FlightRecorder::Now() + kSigtermSeconds;
    SendSignal(ended_by_ = signal);
  }

  // The server got the signal too and ends the job; a second SIGINT ends this process at once.
  void OnInterrupt() override {
    if (interrupt_deadline_) _exit(kInterruptedExitCode);
    interrupt_deadline_ = FlightRecorder::Now() + kSigtermSeconds;
    SendSignal(SIGINT);
  }

 private:
  void Hear(const Frame& frame) {
    switch (frame.kind) {
      case FrameKind::kQuery:
        suspected_at_.reset();
        known_groups_.clear();
        SendPosition();
        break;
      case FrameKind::kEnd:
        _exit(ByteReader(frame.payload).Read<int>());
      case FrameKind::kGoodbye:
        server_left_ = true;
        signals_.left = true;
        signals_.left.notify_all();
        break;
      case FrameKind::kPosition:
        if (auto position = DecodePosition(frame.payload)) server_position_ = std::move(*position);
        server_seen_ = now_;
        break;
      default:
        break;
    }
  }

  void SendSignal(int number) {
    ByteWriter payload;
    payload.Write(number);
    server_.link.Send(FrameKind::kTerminated, payload.Take());
  }

  // SIGTERM may come from the launcher because another rank lost the server and ended first.
  void OnTerminated() {
    if (is_deputy_ && now_ > server_seen_ + kServerSilentSeconds) OnServerLost(RankState::kSilent);
    _exit(128 + ended_by_);
  }

  void OnServerLost(RankState state) {
    if (!server_lost_at_) server_lost_at_ = now_;
    if (is_deputy_) {
      std::vector<RankReport> reports(rank_ + 1);
      reports[0] = {.rank = 0,
                    .host = server_.host,
                    .pid = server_.pid,
                    .state = state,
                    .exit_code = 0,
                    .position = server_position_,
                    .received_seconds = server_seen_};
      // Its calls show who waits for rank 0; its failures are omitted, because they may follow from the loss.
      reports[rank_].rank = rank_;
      reports[rank_].host = base::HostName();
      reports[rank_].pid = getpid();
      reports[rank_].position = TakePosition(recorder_);
      PrintLines(FindGuilty(reports, signals_.timeout_seconds, now_));
    } else if (now_ < *server_lost_at_ + kOrphanSeconds) {
      return;
    }
    // If the server was only stopped (SIGSTOP), it reads this when it continues, and exits without a report.
    ByteWriter payload;
    payload.Write(kJobFailedExitCode);
    server_.link.Send(FrameKind::kEnd, payload.Take());
    _exit(kJobFailedExitCode);
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
    server_.link.Send(FrameKind::kExiting, payload.Take());
  }

  void Suspect() {
    if (signals_.left || recorder_.WaitingSeconds() < signals_.timeout_seconds) {
      suspected_at_.reset();
    } else if (!suspected_at_) {
      suspected_at_ = now_;
      server_.link.Send(FrameKind::kSuspicion);
      last_published_ = now_;  // what follows at once would pass for the answer to the query
    } else if (now_ > *suspected_at_ + kServerAnswerSeconds) {
      OnServerLost(RankState::kSilent);
    }
  }

  void Leave() {
    if (!signals_.finishing || said_goodbye_) return;
    said_goodbye_ = true;
    server_.link.Send(FrameKind::kGoodbye);
  }

  void Publish() {
    if (now_ < last_published_ + kPublishSeconds) return;
    SendPosition();
  }

  void SendPosition() {
    last_published_ = now_;
    Position position = OwnPosition(recorder_, signals_);
    for (auto& [id, group] : position.groups) {
      if (!known_groups_.insert(id).second) group.members.clear();
    }
    server_.link.Send(FrameKind::kPosition, Encode(position));
  }

  int rank_;
  bool is_deputy_;
  Peer server_;
  const FlightRecorder& recorder_;
  Signals& signals_;
  Position server_position_;
  double server_seen_;
  std::set<std::uint64_t> known_groups_;  // whose members the server has
  double now_ = 0;
  double last_published_ = 0;
  bool server_left_ = false;
  bool said_goodbye_ = false;
  bool reported_ = false;
  std::optional<double> server_lost_at_;
  std::optional<double> suspected_at_;
  std::optional<double> sigterm_deadline_, interrupt_deadline_;
  int ended_by_ = 0;  // the signal of the former
};

}  // namespace

std::unique_ptr<WatchdogEndpoint> MakeWatchdogClient(int rank, Meeting meeting,
                                                     const FlightRecorder& recorder, Signals& signals) {
  return std::make_unique<WatchdogClient>(rank, std::move(meeting), recorder, signals);
}

}  // namespace plait::comm
