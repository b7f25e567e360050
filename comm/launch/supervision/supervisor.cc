#include "comm/launch/supervision/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file_descriptor.h"
#include "base/status_macros.h"
#include "base/terminal.h"
#include "comm/launch/supervision/launcher_notes.h"
#include "comm/launch/supervision/process_tree.h"
#include "comm/launch/supervision/rank_agent.h"
#include "comm/launch/supervision/rank_registry.h"

namespace plait::comm {
namespace {

// A scheduler may send these to all processes of a job. The ranks handle them; mpirun, which unblocks signals for its
// ranks, would kill them a second later, even while they save their state.
constexpr std::array<int, 2> kOfEveryProcess = {SIGTERM, SIGINT};
constexpr double kSecondsForLauncher = 1;  // to notice that its ranks are gone
constexpr double kSecondsToDrain = 2;      // for output and agents after the launcher's end
constexpr double kSecondsToKill = 5;
constexpr double kSecondsSuspended = 3;  // without a step, which a second ends

// The steps by which a job is ended.
enum class Stage { kRunning, kAsked, kTerminated, kKilled, kLauncherKilled };
enum class Reason { kNone, kSignal, kIdle, kTimeout, kRankFailed, kUserLeft };

// A background process group must not read from the terminal.
int StandardInput() { return isatty(0) == 1 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1; }

class Supervisor {
 public:
  explicit Supervisor(const SuperviseOptions& options)
      : options_(options),
        output_({.ranks = options.ranks, .log_folder = options.log_folder, .label = options.label}) {}

  absl::StatusOr<int> Run() {
    base::AllowManyFiles();  // a connection and a log for every rank
    PLAIT_RETURN_IF_ERROR(output_.OpenLogs());
    PLAIT_ASSIGN_OR_RETURN(AgentListener listener, AgentListener::Open(options_.this_host_only));
    listener_ = &listener;
    RankRegistry registry(listener.address().token, &output_);
    registry_ = &registry;
    PLAIT_RETURN_IF_ERROR(Start());
    while (!Over()) Step();
    KillDescendants(kSecondsToKill);
    if (!options_.agents) WriteError(notes_.Rest());
    output_.Flush();
    Report();
    output_.Finish(stage_ == Stage::kRunning ? INFINITY : kSecondsToDrain, signals_);
    if (!output_.problem().empty()) {
      base::WriteError(
          absl::StrCat(options_.name, ": standard output cannot be written: ", output_.problem()));
    }
    return ExitCode();
  }

 private:
  absl::Status Start() {
    // Where the parent ignored it, the launcher's end would go unnoticed.
    signal(SIGCHLD, SIG_DFL);
    const sigset_t handled = HandledSignals({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2});
    sigset_t before;
    sigprocmask(SIG_BLOCK, &handled, &before);
    sigset_t of_launcher = before;
    for (const int signal : kOfEveryProcess) {
      if (options_.shield_launcher) sigaddset(&of_launcher, signal);
    }
    signals_ = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot wait for signals: ", std::strerror(errno)));
    }
    signal(SIGPIPE, SIG_IGN);
    AdoptOrphans();
    int output[2], error[2];
    if (pipe2(output, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot make pipes: ", std::strerror(errno)));
    }
    ForkOptions fork = {.standard_input = StandardInput(),
                        .standard_output = output[1],
                        .standard_error = error[1],
                        .signal_at_our_end = ForLauncher(SIGTERM),
                        .mask = of_launcher,
                        .environment = options_.environment};
    fork.environment.emplace_back(kAgentVariable, ToText(listener_->address()));
    const absl::StatusOr<pid_t> started = StartProcess(options_.command, fork);
    close(output[1]);
    close(error[1]);
    if (fork.standard_input >= 0) close(fork.standard_input);
    pipes_ = {output[0], error[0]};
    PLAIT_RETURN_IF_ERROR(started);
    launcher_ = *started;
    start_ = NowSeconds();
    return absl::OkStatus();
  }

  // The launcher has ended, and its pipes and all agents are closed or their time is over. What the agents have sent is
  // read to its end, however slowly the user reads; if the launcher was killed, ranks may write for ever.
  bool Over() const {
    if (!launcher_end_) return false;
    const bool silent = pipes_[0] < 0 && pipes_[1] < 0 && registry_->empty() && !output_.waits();
    const bool to_the_end = launcher_end_->signal == 0 && stage_ == Stage::kRunning;
    if (to_the_end && output_.waits()) return false;
    const double since = to_the_end ? std::max(launcher_ended_at_, heard_at_) : launcher_ended_at_;
    return silent || NowSeconds() > since + kSecondsToDrain;
  }

  // While the user does not take what the ranks have written, the rest waits with them, unless they are being ended.
  bool HoldsRanks() const { return output_.is_full() && stage_ == Stage::kRunning; }

  void Step() {
    std::vector<pollfd> wait;
    const bool holds = HoldsRanks();
    if (holds) held_at_ = NowSeconds();
    for (const int file : {signals_, listener_->socket(), holds ? -1 : pipes_[0], holds ? -1 : pipes_[1]}) {
      wait.push_back({.fd = file, .events = POLLIN, .revents = 0});
    }
    for (const int file : output_.FilesToWaitFor()) {
      wait.push_back({.fd = file, .events = POLLOUT, .revents = 0});
    }
    const std::size_t first = wait.size();
    for (const auto& [socket, connection] : registry_->connections()) {
      wait.push_back({.fd = holds ? -1 : socket, .events = POLLIN, .revents = 0});
    }
    const double before = NowSeconds();
    poll(wait.data(), wait.size(), MillisecondsToNextDeadline());
    if (NowSeconds() > before + kSecondsSuspended) resumed_at_ = NowSeconds();
    if (output_.waits()) output_.WriteWaiting();
    for (std::size_t i = first; i < wait.size(); ++i) {
      if (wait[i].revents == 0) continue;
      registry_->Read(wait[i].fd);
      heard_at_ = NowSeconds();
    }
    if (wait[2].revents != 0) ReadLauncher(0);
    if (wait[3].revents != 0) ReadLauncher(1);
    if (wait[1].revents != 0) registry_->Add(listener_->Accept());
    if (wait[0].revents != 0) ReadSignals();
    WatchTheClock();
  }

  int MillisecondsToNextDeadline() const {
    if (launcher_end_) return 20;
    double next = deadline_;
    for (const double limit : {IdleDeadline(), TimeDeadline()}) next = std::min(next, limit);
    if (std::isinf(next)) return -1;
    return static_cast<int>(std::clamp((next - NowSeconds()) * 1000 + 1, 0.0, 1000.0));
  }

  double IdleDeadline() const {
    if (options_.idle_timeout_seconds <= 0 || stage_ != Stage::kRunning || HoldsRanks()) return INFINITY;
    return std::max({start_, output_.last_write(), held_at_, resumed_at_}) + options_.idle_timeout_seconds;
  }
  double TimeDeadline() const {
    if (options_.timeout_seconds <= 0 || stage_ != Stage::kRunning) return INFINITY;
    return start_ + options_.timeout_seconds;
  }

  void ReadLauncher(int which) {
    char buffer[65536];
    const ssize_t got = read(pipes_[which], buffer, sizeof buffer);
    if (got > 0) {
      const Stream stream = which == 0 ? Stream::kOutput : Stream::kError;
      const absl::string_view text(buffer, static_cast<std::size_t>(got));
      if (options_.agents || stream == Stream::kOutput) {
        output_.Write(kLauncherItself, stream, text);
      } else {
        WriteError(notes_.Pass(text));
      }
      without_agent_ = without_agent_ || absl::StrContains(text, kWithoutAgent);
    } else if (got == 0 || errno != EINTR) {
      close(std::exchange(pipes_[which], -1));
    }
  }

  void WriteError(const std::string& text) {
    told_ = told_ || !text.empty();
    output_.Write(kLauncherItself, Stream::kError, text);
  }

  void ReadSignals() {
    signalfd_siginfo info{};
    while (read(signals_, &info, sizeof info) == sizeof info) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal != SIGCHLD) Forward(signal);
    }
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != launcher_) continue;
      launcher_end_ = EndOfWaitStatus(status);
      launcher_ended_at_ = NowSeconds();
    }
  }

  void Forward(int signal) {
    if (signal == SIGUSR1 || signal == SIGUSR2) {
      SignalRanks(signal);
    } else if (stage_ == Stage::kRunning) {
      user_signal_ = signal;
      Begin(Reason::kSignal, signal);
    } else {
      user_signal_ = user_signal_ == 0 && reason_ == Reason::kRankFailed ? signal : user_signal_;
      Escalate(!options_.agents && signal == SIGINT ? SIGINT : SIGTERM);
    }
  }

  // To the ranks, by their agents or directly, so that they have the grace period to end; if there are no ranks yet, to
  // the launcher.
  void SignalRanks(int signal) {
    if (!(options_.agents ? registry_->Signal(signal) : SignalBelowLauncher(signal))) SignalLauncher(signal);
  }

  // False if there are no such processes.
  bool SignalBelowLauncher(int signal) const {
    bool sent = false;
    for (const pid_t pid : Descendants()) sent = (pid != launcher_ && kill(pid, signal) == 0) || sent;
    return sent;
  }

  void SignalLauncher(int signal) const {
    if (!launcher_end_) kill(launcher_, ForLauncher(signal));
  }

  int ForLauncher(int signal) const {
    const bool blocked = options_.shield_launcher && absl::c_linear_search(kOfEveryProcess, signal);
    return blocked ? SIGHUP : signal;
  }

  void Begin(Reason reason, int signal) {
    reason_ = reason;
    output_.DropTheRest();
    stage_ = signal == SIGTERM ? Stage::kTerminated : Stage::kAsked;
    deadline_ = NowSeconds() + options_.grace_seconds;
    SignalRanks(signal);
  }

  // Goes to the next step. `request`: the signal for ranks that have been asked to end before.
  void Escalate(int request = SIGTERM) {
    switch (stage_) {
      case Stage::kRunning:
        return;
      case Stage::kAsked:
        stage_ = Stage::kTerminated;
        deadline_ = NowSeconds() + options_.grace_seconds;
        SignalRanks(request);
        return;
      case Stage::kTerminated:
        stage_ = Stage::kKilled;
        deadline_ = NowSeconds() + kSecondsForLauncher;
        if (options_.agents) {
          registry_->Signal(SIGKILL);
        } else {
          SignalBelowLauncher(SIGKILL);
        }
        SignalLauncher(SIGTERM);
        return;
      case Stage::kKilled:
        stage_ = Stage::kLauncherKilled;
        deadline_ = INFINITY;
        SignalLauncher(SIGKILL);
        return;
      case Stage::kLauncherKilled:
        return;
    }
  }

  void WatchTheClock() {
    const double now = NowSeconds();
    if (stage_ != Stage::kRunning) {
      if (now >= deadline_) Escalate();
    } else if (now >= IdleDeadline()) {
      last_writers_ = output_.LastWriters();
      output_.Say(absl::StrFormat("launch: no output for %g s; ending the job (SIGTERM, SIGKILL after %g s)",
                                  options_.idle_timeout_seconds, options_.grace_seconds));
      Begin(Reason::kIdle, SIGTERM);
    } else if (now >= TimeDeadline()) {
      last_writers_ = output_.LastWriters();
      output_.Say(absl::StrFormat("launch: %g s are over; ending the job (SIGTERM, SIGKILL after %g s)",
                                  options_.timeout_seconds, options_.grace_seconds));
      Begin(Reason::kTimeout, SIGTERM);
    } else if (output_.user_left()) {
      Begin(Reason::kUserLeft, SIGTERM);
    } else if (registry_->first_failure() && !std::isfinite(deadline_)) {
      deadline_ = now + options_.grace_seconds;  // the launcher's time to end the others
    } else if (now >= deadline_) {
      Begin(Reason::kRankFailed, SIGTERM);
    }
  }

  void Report() {
    if (reason_ == Reason::kIdle) {
      output_.Say(absl::StrFormat("launch: ended after %g s without output (--idle-timeout); last wrote: %s",
                                  options_.idle_timeout_seconds, last_writers_));
    } else if (reason_ == Reason::kTimeout) {
      output_.Say(absl::StrFormat("launch: ended after %g s (--timeout); last wrote: %s",
                                  options_.timeout_seconds, last_writers_));
    } else if (reason_ == Reason::kSignal) {
      if (ExitCode() != 0) output_.Say(absl::StrCat(options_.name, ": ", DescribeSignal()));
    } else if (registry_->first_failure()) {
      ReportFailure(*registry_->first_failure());
    } else if (!options_.agents) {
      ReportLauncher();
    } else if (ExitCode() != 0) {
      output_.Say(absl::StrCat("launch: ", options_.command[0], " ended with ", Describe(*launcher_end_),
                               "; ", RanksThatEnded()));
    }
  }

  std::string DescribeSignal() const {
    return user_signal_ == SIGINT ? "interrupted"
                                  : absl::StrCat("ended by ", Describe({0, user_signal_, ""}));
  }

  // The ranks' watchdogs have reported everything else, unless they were not running yet.
  void ReportLauncher() {
    if (!notes_.killed_rank().empty()) {
      output_.Say(absl::StrCat(options_.name, ": ", notes_.killed_rank()));
    } else if (ExitCode() != 0 && !told_) {
      output_.Say(
          absl::StrCat(options_.name, ": ", options_.command[0], " ended with ", Describe(*launcher_end_)));
    }
  }

  std::string RanksThatEnded() const {
    if (!registry_->started()) return "no rank has started";
    return absl::StrCat(registry_->ended(), " of ", options_.ranks,
                        " ranks are known to have ended, none with an error");
  }

  void ReportFailure(const RankFailure& failure) {
    const std::vector<std::string> lines = output_.LastLines(failure.rank);
    const std::vector<std::string> others = output_.LastErrorsOfOthers(failure.rank);
    const std::string log = output_.LogOf(failure.rank);
    std::string ending = "; it wrote nothing";
    if (!lines.empty())
      ending = log.empty() ? "; its last lines:" : absl::StrCat("; its last lines (", log, "):");
    output_.Say(absl::StrFormat("launch: rank %d (%s, pid %d) failed first, %.1f s after the start: %s%s",
                                failure.rank, failure.host, failure.pid, failure.seconds - start_,
                                Describe(failure.end), ending));
    for (const std::string& line : lines) output_.Say(absl::StrCat("    ", line));
    if (!others.empty()) output_.Say("launch: last errors of other ranks:");
    for (const std::string& line : others) output_.Say(absl::StrCat("    ", line));
    for (const AgentHello& rank : registry_->NotInMpi()) {
      output_.Say(
          absl::StrFormat("launch: rank %d (%s, pid %d) has not called MPI_Init, in which rank %d waited",
                          rank.rank, rank.host, rank.pid, failure.rank));
    }
  }

  int ExitCode() const {
    if (reason_ == Reason::kIdle || reason_ == Reason::kTimeout) return kTimedOut;
    const int code =
        registry_->first_failure() ? std::max(1, registry_->first_failure()->end.code()) : CodeOfLauncher();
    if (code == 0) return output_.problem().empty() ? 0 : 1;
    return user_signal_ != 0 ? 128 + user_signal_ : code;
  }

  // srun sometimes exits with 0 although it has started nothing.
  int CodeOfLauncher() const {
    const bool all_ended = registry_->ended() >= options_.ranks || without_agent_ || !options_.agents;
    return launcher_end_->code() == 0 && !all_ended ? 1 : launcher_end_->code();
  }

  const SuperviseOptions& options_;
  JobOutput output_;
  AgentListener* listener_ = nullptr;
  RankRegistry* registry_ = nullptr;
  int signals_ = -1;
  std::array<int, 2> pipes_ = {-1, -1};
  pid_t launcher_ = -1;
  std::optional<ProcessEnd> launcher_end_;
  double launcher_ended_at_ = 0;
  double heard_at_ = 0;  // when an agent's bytes were last passed on
  double held_at_ = 0;   // when the ranks' output was last left unread
  // When this process, and probably the job, was last suspended (SIGSTOP, a scheduler that suspends jobs), or had no
  // deadline to wait for.
  double resumed_at_ = 0;
  double start_ = 0;
  Stage stage_ = Stage::kRunning;
  Reason reason_ = Reason::kNone;
  double deadline_ = INFINITY;  // of the stage
  int user_signal_ = 0;
  bool without_agent_ = false;  // some ranks run without agents: their end is not reported
  std::string last_writers_;
  LauncherNotes notes_;
  bool told_ = false;  // there was something else on standard error
};

}  // namespace

absl::StatusOr<int> Supervise(const SuperviseOptions& options) { return Supervisor(options).Run(); }

}  // namespace plait::comm
