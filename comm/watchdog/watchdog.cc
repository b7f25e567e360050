#include "comm/watchdog/watchdog.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include "comm/interrupt.h"
#include "comm/watchdog/watchdog_endpoint.h"

namespace plait::comm {
namespace {

constexpr int kTickMilliseconds = 50;
constexpr double kSuspensionSeconds = 1;  // a longer pause of this thread is one of the whole process

// Each step looks at every link, and each rank sends four times a second: what arrives within this time shares a step.
int MillisecondsToGather(std::size_t links) {
  return static_cast<int>(std::min<std::size_t>(links / 100, 50));
}

constexpr std::array<int, 5> kCrashSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// Global state for the signal handler, which has no argument: how to notify the watchdog's thread.
struct CrashNotice {
  std::atomic<Signals*> signals{nullptr};
  std::atomic<int> wake{-1};
  std::atomic<pid_t> owner{0};
  std::array<struct sigaction, kCrashSignals.size()> before{};
};
CrashNotice& ThisProcess() {
  static CrashNotice notice;
  return notice;
}

// Gives the watchdog's thread time to send this rank's position, then re-raises the signal for the previous handler.
void OnCrash(int number) {
  CrashNotice& notice = ThisProcess();
  for (std::size_t i = 0; i < kCrashSignals.size(); ++i) {
    if (kCrashSignals[i] == number) sigaction(number, &notice.before[i], nullptr);
  }
  Signals* signals = notice.signals;
  if (signals != nullptr && getpid() == notice.owner) {
    signals->crashed = true;
    signals->exit_code = number;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(notice.wake, &one, sizeof one);
    poll(nullptr, 0, 300);
  }
  raise(number);
}

void WatchCrashes(Signals* signals, int wake) {
  CrashNotice& notice = ThisProcess();
  notice.owner = getpid();
  notice.wake = wake;
  notice.signals = signals;
  for (std::size_t i = 0; i < kCrashSignals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = OnCrash;
    action.sa_flags = SA_NODEFER;
    sigaction(kCrashSignals[i], &action, &notice.before[i]);
  }
}

void IgnoreCrashes() {
  CrashNotice& notice = ThisProcess();
  if (notice.signals.exchange(nullptr) == nullptr) return;
  for (std::size_t i = 0; i < kCrashSignals.size(); ++i)
    sigaction(kCrashSignals[i], &notice.before[i], nullptr);
}

sigset_t HeldSignals(bool stop_on_signals) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  if (stop_on_signals) sigaddset(&set, SIGUSR1);
  for (const int signal : {SIGINT, SIGHUP}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

class Watchdog::State {
 public:
  State(Communicator world, const WatchdogOptions& options)
      : world_(std::move(world)),
        stop_on_signals_(options.stop_on_signals),
        owner_(getpid()),
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    const sigset_t held = HeldSignals(stop_on_signals_);
    held_signals_ = signalfd(-1, &held, SFD_NONBLOCK | SFD_CLOEXEC);
    signals_.timeout_seconds = options.timeout_seconds;
  }
  ~State() {
    IgnoreCrashes();
    Stop();
    close(wake_);
    close(held_signals_);
  }

  void Begin(Meeting meeting) {
    endpoint_ = world_.rank() == 0
                    ? MakeWatchdogServer(std::move(meeting), world_.recorder(), signals_)
                    : MakeWatchdogClient(world_.rank(), std::move(meeting), world_.recorder(), signals_);
    thread_ = std::thread([this] { Loop(); });
    WatchCrashes(&signals_, wake_);
  }

  Signals& signals() { return signals_; }

  void Wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
  }

  // exit() before the end of the session: the server ends the job while this waits.
  void OnExit(int code) {
    if (getpid() != owner_ || signals_.finishing) return;
    signals_.exit_code = code;
    Wake();
    poll(nullptr, 0, 1000);
    _exit(code == 0 ? kJobFailedExitCode : code);
  }

  void Stop() {
    stopped_ = true;
    Wake();
    if (thread_.joinable()) thread_.join();
  }

  void Finish() {
    IgnoreCrashes();
    signals_.finishing = true;
    Wake();
    signals_.left.wait(false);
    Stop();
    CloseInOrder(endpoint_->links(), kGoodbyeSeconds);
    endpoint_.reset();
  }

 private:
  void Loop() {
    double last = FlightRecorder::Now();
    while (!stopped_) {
      std::vector<pollfd> wait = {{wake_, POLLIN, 0}, {held_signals_, POLLIN, 0}};
      for (Link* link : endpoint_->links()) {
        link->Flush();
        wait.push_back(
            {link->socket(), static_cast<short>(link->has_unsent() ? POLLIN | POLLOUT : POLLIN), 0});
      }
      poll(wait.data(), wait.size(), kTickMilliseconds);
      if (const int pause = MillisecondsToGather(wait.size()); pause > 0) poll(nullptr, 0, pause);
      // Before anything is concluded from times: a process that is suspended is so within poll(), as a rule.
      const double now = FlightRecorder::Now();
      if (const double pause = now - std::exchange(last, now); pause > kSuspensionSeconds) {
        world_.recorder().NoteSuspension(pause);
        endpoint_->OnSuspension(pause);
      }
      std::uint64_t woken;
      [[maybe_unused]] ssize_t count = read(wake_, &woken, sizeof woken);
      signalfd_siginfo info;
      while (read(held_signals_, &info, sizeof info) == sizeof info) {
        OnSignal(static_cast<int>(info.ssi_signo));
      }
      if (!stopped_) endpoint_->Step();
    }
  }

  void OnSignal(int signal) {
    const bool insists = signal == SIGINT && std::exchange(interrupted_, true);
    if (!stop_on_signals_ || insists) {
      return signal == SIGINT ? endpoint_->OnInterrupt() : endpoint_->OnTermination(signal);
    }
    int none = 0;
    signals_.stop_signal.compare_exchange_strong(none, signal);
    if (signal == SIGINT && world_.rank() == 0) WriteInterruptedAndStopping();
  }

  Communicator world_;
  bool stop_on_signals_;
  bool interrupted_ = false;
  pid_t owner_;
  int wake_;
  int held_signals_;
  Signals signals_;
  std::unique_ptr<WatchdogEndpoint> endpoint_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

void Watchdog::HoldSignals(bool stop_on_signals) {
  const sigset_t held = HeldSignals(stop_on_signals);
  pthread_sigmask(SIG_BLOCK, &held, nullptr);
}

absl::StatusOr<std::unique_ptr<Watchdog>> Watchdog::Start(const Communicator& world,
                                                          const WatchdogOptions& options) {
  absl::StatusOr<Meeting> meeting = Meet(world, options.start_timeout_seconds);
  if (!meeting.ok()) return meeting.status();
  auto state = std::make_shared<State>(world, options);
  state->Begin(*std::move(meeting));
  // Lives until the process ends: exit() may come at any time.
  auto for_exit = std::make_unique<std::weak_ptr<State>>(state);
  on_exit(
      [](int code, void* watched) {
        const std::unique_ptr<std::weak_ptr<State>> owned(static_cast<std::weak_ptr<State>*>(watched));
        if (const auto state = owned->lock()) state->OnExit(code);
      },
      for_exit.release());
  return std::unique_ptr<Watchdog>(new Watchdog(std::move(state)));
}

Watchdog::Watchdog(std::shared_ptr<State> state) : state_(std::move(state)) {}
Watchdog::~Watchdog() = default;

void Watchdog::SetTimeout(double seconds) { state_->signals().timeout_seconds = seconds; }
int Watchdog::StopSignal() const { return state_->signals().stop_signal; }

void Watchdog::Fail(const std::string& error) {
  state_->signals().error = error;
  state_->signals().failing = true;
  state_->Wake();
  poll(nullptr, 0, 1500);
}

void Watchdog::Finish() { state_->Finish(); }

}  // namespace plait::comm
