#include "comm/launch/supervision/rank_agent.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "comm/launch/supervision/agent_listener.h"
#include "comm/launch/supervision/agent_message.h"

namespace plait::comm {
namespace {

// Runs an agent that may open `files` more files; it needs one to reach its supervisor, and one for signals.
[[noreturn]] void RunWithFewFiles(const SupervisorAddress& address, int files) {
  setenv(kAgentVariable, ToText(address).c_str(), /*overwrite=*/1);
  const int next = open("/dev/null", O_RDONLY);
  close(next);
  const auto most = static_cast<rlim_t>(next + files);
  const rlimit limit = {.rlim_cur = most, .rlim_max = most};
  setrlimit(RLIMIT_NOFILE, &limit);
  std::_Exit(RunRankAgent({"true"}));
}

// What such an agent sends to its supervisor.
std::string MessagesWithFewFiles(int files) {
  const absl::StatusOr<AgentListener> listener = AgentListener::Open(/*this_host_only=*/true);
  EXPECT_TRUE(listener.ok());
  const pid_t agent = fork();
  if (agent == 0) RunWithFewFiles(listener->address(), files);
  pollfd wait = {.fd = listener->socket(), .events = POLLIN, .revents = 0};
  poll(&wait, 1, -1);
  const int connection = listener->Accept();
  fcntl(connection, F_SETFL, fcntl(connection, F_GETFL) & ~O_NONBLOCK);
  std::string text;
  char buffer[1024];
  for (ssize_t got; (got = read(connection, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  close(connection);
  waitpid(agent, nullptr, 0);
  return text;
}

TEST(RankAgent, SaysWhatItCannotOpen) {
  EXPECT_NE(MessagesWithFewFiles(2).find("cannot open a pseudo-terminal (/dev/ptmx): Too many open files"),
            std::string::npos);
  EXPECT_NE(MessagesWithFewFiles(5).find("cannot make a pipe: Too many open files"), std::string::npos);
}

}  // namespace
}  // namespace plait::comm
