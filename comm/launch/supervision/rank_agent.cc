#include "comm/launch/supervision/rank_agent.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/host_name.h"
#include "comm/launch/launcher.h"
#include "comm/launch/supervision/agent_listener.h"
#include "comm/launch/supervision/agent_message.h"
#include "comm/launch/supervision/process_tree.h"

namespace plait::comm {
namespace {

// Between SIGTERM and SIGKILL when the supervisor is gone or mpirun ends the job: it kills its agents a second after
// SIGTERM, and what the rank has started would outlive them.
constexpr double kSecondsToEnd = 0.6;
constexpr double kSecondsToKill = 2;
constexpr double kSecondsToDrain = 0.5;  // grandchildren may hold the pipes open
constexpr std::size_t kBytesPerRead = 16 << 10;
constexpr int kStepsOfFullPipe = (64 << 10) / kBytesPerRead + 1;

absl::Status CannotOpen(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("cannot ", what, ": ", std::strerror(errno)));
}

// A pseudo-terminal in raw mode: no echo, no carriage returns added.
absl::Status OpenRawTerminal(int* ours, int* ranks) {
  if (openpty(ours, ranks, nullptr, nullptr, nullptr) != 0)
    return CannotOpen("open a pseudo-terminal (/dev/ptmx)");
  termios settings{};
  tcgetattr(*ranks, &settings);
  cfmakeraw(&settings);
  tcsetattr(*ranks, TCSANOW, &settings);
  fcntl(*ours, F_SETFD, FD_CLOEXEC);
  fcntl(*ranks, F_SETFD, FD_CLOEXEC);
  return absl::OkStatus();
}

class Agent {
 public:
  Agent(int socket, const Launcher& launcher, std::string token)
      : socket_(socket),
        rank_(launcher.rank),
        of_mpirun_(launcher.kind == LauncherKind::kOpenMpi),
        token_(std::move(token)) {}

  ProcessEnd Run(const std::vector<std::string>& command) {
    // Where the launcher's parent ignored it, the rank's end would go unnoticed.
    signal(SIGCHLD, SIG_DFL);
    const sigset_t kept =
        HandledSignals({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGCONT, SIGALRM});
    sigset_t before;
    sigprocmask(SIG_BLOCK, &kept, &before);
    signals_ = signalfd(-1, &kept, SFD_CLOEXEC | SFD_NONBLOCK);
    signal(SIGPIPE, SIG_IGN);
    AdoptOrphans();
    const absl::Status started = Start(command, before);
    if (!started.ok()) {
      Send({AgentMessageKind::kHello, Hello()});
      end_ = {.exit_code = 127, .signal = 0, .problem = std::string(started.message())};
    }
    while (!end_) Step(-1);
    Drain();
    Send({AgentMessageKind::kEnded, ToText(*end_)});
    KillDescendants(kSecondsToKill);
    close(socket_);
    return *end_;
  }

 private:
  absl::Status Start(const std::vector<std::string>& command, const sigset_t& mask) {
    int ranks_output = -1;
    if (absl::Status status = OpenRawTerminal(&output_, &ranks_output); !status.ok()) return status;
    int error[2];
    if (pipe2(error, O_CLOEXEC) != 0) return CannotOpen("make a pipe");
    error_ = error[0];
    int step[2];
    if (pipe(step) != 0) return CannotOpen("make a pipe");
    fcntl(step[0], F_SETFD, FD_CLOEXEC);
    start_step_ = step[0];
    struct stat pipe_of_rank = {};
    fstat(step[1], &pipe_of_rank);
    const ForkOptions options = {
        .standard_output = ranks_output,
        .standard_error = error[1],
        .signal_at_our_end = SIGKILL,
        .mask = mask,
        .environment = {{kStartStepVariable, absl::StrCat(step[1], " ", pipe_of_rank.st_ino)}}};
    const absl::StatusOr<pid_t> child = StartProcess(command, options);
    close(ranks_output);
    close(error[1]);
    close(step[1]);
    if (!child.ok()) return child.status();
    child_ = *child;
    Send({AgentMessageKind::kHello, Hello()});
    return absl::OkStatus();
  }

  std::string Hello() const {
    return ToText(AgentHello{
        .token = token_, .rank = rank_, .pid = static_cast<int>(child_), .host = base::HostName()});
  }

  // Waits for events and handles them.
  void Step(int milliseconds) {
    std::array<pollfd, 5> wait = {{{.fd = signals_, .events = POLLIN, .revents = 0},
                                   {.fd = socket_, .events = POLLIN, .revents = 0},
                                   {.fd = output_, .events = POLLIN, .revents = 0},
                                   {.fd = error_, .events = POLLIN, .revents = 0},
                                   {.fd = start_step_, .events = POLLIN, .revents = 0}}};
    if (kill_at_ > 0) milliseconds = 100;
    poll(wait.data(), wait.size(), milliseconds);
    if (wait[2].revents != 0) Pass(&output_, AgentMessageKind::kOutput);
    if (wait[3].revents != 0) Pass(&error_, AgentMessageKind::kError);
    if (wait[4].revents != 0) Pass(&start_step_, AgentMessageKind::kStartStep);
    if (wait[1].revents != 0) ReadSupervisor();
    if (wait[0].revents != 0) ReadSignals();
    if (kill_at_ > 0 && NowSeconds() > kill_at_) KillAll();
  }

  void Pass(int* from, AgentMessageKind kind) {
    char buffer[kBytesPerRead];
    const ssize_t got = read(*from, buffer, sizeof buffer);
    if (got > 0) {
      Send({kind, std::string(buffer, static_cast<std::size_t>(got))});
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {  // a terminal ends with EIO
      close(*from);
      *from = -1;
    }
  }

  void ReadSupervisor() {
    char wanted[64];
    const ssize_t got = recv(socket_, wanted, sizeof wanted, 0);
    for (ssize_t i = 0; i < got; ++i) SignalRank(wanted[i]);
    if (got == 0 || (got < 0 && errno != EINTR)) LoseSupervisor();
  }

  void ReadSignals() {
    signalfd_siginfo info{};
    while (read(signals_, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGCHLD) continue;
      SignalRank(static_cast<int>(info.ssi_signo));
      const bool from_parent = info.ssi_pid == static_cast<std::uint32_t>(getppid());
      if (info.ssi_signo == SIGTERM && from_parent && of_mpirun_) KillSoon();
    }
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid == child_) end_ = EndOfWaitStatus(status);
    }
  }

  void SignalRank(int signal) const {
    if (child_ > 0 && !end_) kill(-child_, signal);
  }

  void LoseSupervisor() {
    if (socket_ < 0) return;
    close(socket_);
    socket_ = -1;
    SignalRank(SIGTERM);
    KillSoon();
  }

  void KillSoon() {
    if (kill_at_ == 0) kill_at_ = NowSeconds() + kSecondsToEnd;
  }

  // The rank and what it has started, also in groups and sessions of their own.
  void KillAll() const {
    for (const pid_t pid : Descendants()) kill(pid, SIGKILL);
  }

  void Send(const AgentMessage& message) {
    const std::string bytes = Encode(message);
    for (std::size_t sent = 0; sent < bytes.size() && socket_ >= 0;) {
      const ssize_t more = send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (more >= 0) {
        sent += static_cast<std::size_t>(more);
      } else if (errno != EINTR) {
        LoseSupervisor();
      }
    }
  }

  // Forwards what the rank wrote before it ended. Its children may hold the pipes open, so with a time limit, but never
  // less than what the pipes hold: sending may take longer than that.
  void Drain() {
    const double deadline = NowSeconds() + kSecondsToDrain;
    for (int step = 0; output_ >= 0 || error_ >= 0; ++step) {
      if (step >= kStepsOfFullPipe && NowSeconds() >= deadline) return;
      Step(20);
    }
  }

  int socket_;
  int rank_;
  bool of_mpirun_;
  std::string token_;
  int signals_ = -1;
  int output_ = -1;
  int error_ = -1;
  int start_step_ = -1;
  pid_t child_ = -1;
  double kill_at_ = 0;
  std::optional<ProcessEnd> end_;
};

[[noreturn]] void EndBySignal(int signal) {
  const rlimit no_core = {.rlim_cur = 0, .rlim_max = 0};  // the rank has written one
  setrlimit(RLIMIT_CORE, &no_core);
  ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  raise(signal);
  _exit(128 + signal);
}

int Become(const std::vector<std::string>& command) {
  std::vector<char*> raw;
  std::vector<std::string> words = command;
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  execvp(raw[0], raw.data());
  std::fprintf(stderr, "launch: cannot start %s: %s\n", raw[0], std::strerror(errno));
  return 127;
}

}  // namespace

int RunRankAgent(const std::vector<std::string>& command) {
  const char* variable = std::getenv(kAgentVariable);
  const std::optional<SupervisorAddress> address =
      ParseSupervisorAddress(variable == nullptr ? "" : variable);
  unsetenv(kAgentVariable);
  const Launcher launcher = DetectLauncher();
  const int socket = address ? ConnectToSupervisor(*address) : -1;
  if (socket < 0) {
    std::fprintf(stderr, "launch: rank %d on %s cannot reach launch and %s\n", launcher.rank,
                 base::HostName().c_str(), kWithoutAgent);
    return Become(command);
  }
  const ProcessEnd end = Agent(socket, launcher, address->token).Run(command);
  if (end.signal != 0) EndBySignal(end.signal);
  return end.exit_code;
}

}  // namespace plait::comm
