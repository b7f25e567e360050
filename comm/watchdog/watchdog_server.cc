// The watchdog of rank 0: gathers positions, judges, ends the job.
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_format.h"
#include "comm/byte_stream.h"
#include "comm/interrupt.h"
#include "comm/watchdog/verdict.h"
#include "comm/watchdog/watchdog.h"
#include "comm/watchdog/watchdog_endpoint.h"

namespace plait::comm {
namespace {

constexpr double kAnswerSeconds = 0.4;    // a watchdog that takes longer is silent
constexpr double kFarewellSeconds = 0.1;  // ranks that die together are reported together
constexpr double kSigtermSeconds =
    0.3;  // the launcher's SIGTERM and the loss of the rank that caused it arrive in any order
constexpr double kPublishSeconds = 0.25;

// Once a rank has ended, Open MPI's mpirun sleeps for a second before each of two signals to the remaining ranks, here
// the server. SIGCHLD interrupts the sleep.
void WakeLauncher() {
  if (getenv("OMPI_COMM_WORLD_RANK") == nullptr) return;
  for (int i = 0; i < 10; ++i) {
    poll(nullptr, 0, 20);
    kill(getppid(), SIGCHLD);
  }
}

class WatchdogServer : public WatchdogEndpoint {
 public:
  WatchdogServer(Meeting meeting, const FlightRecorder& recorder, Signals& signals)
      : peers_(std::move(meeting.peers)),
        deputy_(meeting.deputy),
        recorder_(recorder),
        signals_(signals),
        innocent_(peers_.size()),
        terminated_(peers_.size()),
        answered_(peers_.size()) {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
      RankReport& report = reports_.emplace_back();
      report.rank = static_cast<int>(rank);
      report.host = peers_[rank].host;
      report.pid = peers_[rank].pid;
    }
  }

  std::vector<Link*> links() override {
    std::vector<Link*> links;
    for (Peer& peer : peers_) {
      if (peer.link.open()) links.push_back(&peer.link);
    }
    return links;
  }

  void Step() override {
    now_ = FlightRecorder::Now();
    for (std::size_t rank = 1; rank < peers_.size(); ++rank) Listen(static_cast<int>(rank));
    WatchOwnRank();
    if (inquiry_ends_) Inquire();
    NameTerminated();
    if (sigterm_deadline_ && now_ > *sigterm_deadline_) OnTerminated();
    Leave();
    Publish();
  }

  void OnSuspension(double seconds) override {
    if (inquiry_ends_) *inquiry_ends_ += seconds;
  }

  void OnTermination(int signal) override {
    if (sigterm_deadline_) return;
    sigterm_deadline_ = FlightRecorder::Now() + kSigtermSeconds;
    ended_by_ = signal;
  }

  void OnInterrupt() override {
    if (peers_.size() == 1) WriteInterrupted();
    EndJob(kInterruptedExitCode);
  }

 private:
  void Listen(int rank) {
    Link& link = peers_[rank].link;
    if (!link.open()) return;
    for (const Frame& frame : link.Receive()) Hear(rank, frame);
    if (link.open() || innocent_[rank]) return;
    if (reports_[rank].state == RankState::kAlive) reports_[rank].state = RankState::kDead;
    BeginInquiry(kFarewellSeconds);
  }

  // Members of a group are sent once, and in answers to an inquiry: every rank's lists, four times a second, would be the
  // square of the number of ranks.
  static void Keep(Position position, RankReport* report) {
    for (auto& [id, group] : position.groups) {
      const auto known = report->position.groups.find(id);
      if (group.members.empty() && known != report->position.groups.end())
        group.members = std::move(known->second.members);
    }
    report->position = std::move(position);
  }

  void Hear(int rank, const Frame& frame) {
    RankReport& report = reports_[rank];
    switch (frame.kind) {
      case FrameKind::kPosition:
        if (auto position = DecodePosition(frame.payload)) Keep(std::move(*position), &report);
        report.received_seconds = now_;
        answered_[rank] = true;
        if (!report.position.failure.empty()) BeginInquiry(kAnswerSeconds);
        break;
      case FrameKind::kSuspicion:
        BeginInquiry(kAnswerSeconds);
        break;
      case FrameKind::kExiting:
        ReadEnd(frame.payload, &report);
        BeginInquiry(kFarewellSeconds);
        break;
      case FrameKind::kEnd:
        _exit(ByteReader(frame.payload).Read<int>());
      case FrameKind::kTerminated:
        terminated_[rank] = {.signal = ByteReader(frame.payload).Read<int>(), .seconds = now_};
        [[fallthrough]];
      case FrameKind::kGoodbye:
        innocent_[rank] = true;
        break;
      default:
        break;
    }
  }

  // A signal to the whole job reaches this rank, too, at about the same time. Of one that a rank got alone, from a person
  // or from the guard of a machine's memory, the launcher would tell an exit code only.
  void NameTerminated() {
    int signal = 0;
    for (std::size_t rank = 1; rank < peers_.size(); ++rank) {
      const Termination& its = terminated_[rank];
      if (its.signal == 0 || peers_[rank].link.open() || now_ < its.seconds + kSigtermSeconds) continue;
      if (sigterm_deadline_ && *sigterm_deadline_ < its.seconds + 2 * kSigtermSeconds) continue;
      PrintTerminated(static_cast<int>(rank), signal = its.signal);
    }
    if (signal != 0) EndJob(128 + signal);
  }

  void OnTerminated() {
    const bool alone = std::none_of(terminated_.begin(), terminated_.end(),
                                    [](const Termination& its) { return its.signal != 0; });
    if (alone && peers_.size() > 1) PrintTerminated(0, ended_by_);
    EndJob(128 + ended_by_);
  }

  void PrintTerminated(int rank, int signal) {
    const RankReport& report = reports_[rank];
    PrintLines({absl::StrFormat("rank %d (%s, pid %d) was ended by signal %d (%s)", rank, report.host,
                                report.pid, signal, strsignal(signal))});
  }

  static void ReadEnd(absl::string_view payload, RankReport* report) {
    ByteReader from(payload);
    report->state = from.Read<RankState>();
    report->exit_code = from.Read<int>();
  }

  void WatchOwnRank() {
    if (signals_.exit_code >= 0 && reports_[0].state == RankState::kAlive) {
      reports_[0].state = EndState(signals_);
      reports_[0].exit_code = signals_.exit_code;
      BeginInquiry(kFarewellSeconds);
    }
    if (signals_.failing || recorder_.WaitingSeconds() >= signals_.timeout_seconds)
      BeginInquiry(kAnswerSeconds);
  }

  void BeginInquiry(double seconds) {
    if (inquiry_ends_ || signals_.left) return;
    inquiry_ends_ = now_ + seconds;
    only_gone_ = seconds < kAnswerSeconds;
    std::fill(answered_.begin(), answered_.end(), false);
    SendToAll(FrameKind::kQuery, "");
  }

  void Inquire() {
    const bool complete = Complete();
    if (now_ < *inquiry_ends_ && (only_gone_ || !complete)) return;
    inquiry_ends_.reset();
    reports_[0].position = OwnPosition(recorder_, signals_);
    reports_[0].received_seconds = now_;
    for (std::size_t rank = 1; rank < reports_.size(); ++rank) {
      const bool silent = !only_gone_ && !answered_[rank] && !innocent_[rank];
      if (silent && reports_[rank].state == RankState::kAlive) reports_[rank].state = RankState::kSilent;
    }
    const std::vector<std::string> lines = FindGuilty(reports_, signals_.timeout_seconds, now_);
    PrintLines(lines);
    if (!lines.empty()) EndJob(kJobFailedExitCode);
  }

  bool Complete() const {
    for (std::size_t rank = 1; rank < peers_.size(); ++rank) {
      if (peers_[rank].link.open() && !answered_[rank]) return false;
    }
    return true;
  }

  // The job is over once all other ranks have said goodbye (or ended by SIGTERM or SIGINT).
  void Leave() {
    if (!signals_.finishing || signals_.left) return;
    if (std::find(innocent_.begin() + 1, innocent_.end(), false) != innocent_.end()) return;
    SendToAll(FrameKind::kGoodbye, "");
    signals_.left = true;
    signals_.left.notify_all();
  }

  // The deputy reports the loss of rank 0, with its last position.
  void Publish() {
    if (peers_.size() < 2 || now_ < last_published_ + kPublishSeconds) return;
    last_published_ = now_;
    peers_[deputy_].link.Send(FrameKind::kPosition, Encode(OwnPosition(recorder_, signals_)));
  }

  void SendToAll(FrameKind kind, absl::string_view payload) {
    for (Peer& peer : peers_) peer.link.Send(kind, payload);
  }

  [[noreturn]] void EndJob(int code) {
    ByteWriter payload;
    payload.Write(code);
    SendToAll(FrameKind::kEnd, payload.Take());
    CloseInOrder(links(), 0.3);
    WakeLauncher();
    _exit(code);
  }

  struct Termination {
    int signal = 0;
    double seconds = 0;  // when the rank had got it
  };

  std::vector<Peer> peers_;
  int deputy_;
  const FlightRecorder& recorder_;
  Signals& signals_;
  std::vector<RankReport> reports_;
  std::vector<bool> innocent_;
  std::vector<Termination> terminated_;  // by SIGTERM, SIGHUP or SIGINT
  std::vector<bool> answered_;
  double now_ = 0;
  double last_published_ = 0;
  bool only_gone_ = false;
  std::optional<double> inquiry_ends_;
  std::optional<double> sigterm_deadline_;
  int ended_by_ = 0;  // the signal of the former
};

}  // namespace

std::unique_ptr<WatchdogEndpoint> MakeWatchdogServer(Meeting meeting, const FlightRecorder& recorder,
                                                     Signals& signals) {
  return std::make_unique<WatchdogServer>(std::move(meeting), recorder, signals);
}

}  // namespace plait::comm
