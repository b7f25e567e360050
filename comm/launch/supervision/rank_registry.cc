#include "comm/launch/supervision/rank_registry.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "comm/launch/supervision/process_tree.h"

namespace plait::comm {

RankRegistry::~RankRegistry() {
  for (const auto& [socket, connection] : connections_) close(socket);
}

void RankRegistry::Add(int connection) {
  if (connection >= 0) connections_.emplace(connection, Connection{});
}

void RankRegistry::Read(int socket) {
  Connection& connection = connections_.at(socket);
  char buffer[65536];
  const ssize_t got = recv(socket, buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return Drop(socket);
  connection.reader.Feed(absl::string_view(buffer, static_cast<std::size_t>(got)));
  while (const std::optional<AgentMessage> message = connection.reader.Next()) {
    if (!Handle(connection, *message)) return Drop(socket);
  }
  if (connection.reader.broken()) Drop(socket);
}

// False if the other side is no agent of this job.
bool RankRegistry::Handle(Connection& connection, const AgentMessage& message) {
  if (message.kind == AgentMessageKind::kHello) {
    connection.hello = ParseAgentHello(message.payload);
    const bool ours = connection.hello && connection.hello->token == token_;
    if (!ours) connection.hello.reset();
    started_ = started_ || ours;
    if (ours) ranks_[connection.hello->rank] = *connection.hello;
    return ours;
  }
  if (!connection.hello) return false;
  if (message.kind == AgentMessageKind::kEnded) {
    const std::optional<ProcessEnd> end = ParseProcessEnd(message.payload);
    if (end) Ended(connection, *end);
    connection.ended = true;
    ++ended_;
    return end.has_value();
  }
  if (message.kind == AgentMessageKind::kStartStep) {
    start_steps_[connection.hello->rank] = message.payload;
    return true;
  }
  const Stream stream = message.kind == AgentMessageKind::kError ? Stream::kError : Stream::kOutput;
  output_->Write(connection.hello->rank, stream, message.payload);
  return true;
}

void RankRegistry::Ended(const Connection& connection, const ProcessEnd& end) {
  if (first_failure_ || !end.failed()) return;
  first_failure_ = RankFailure{.rank = connection.hello->rank,
                               .host = connection.hello->host,
                               .pid = connection.hello->pid,
                               .end = end,
                               .seconds = NowSeconds()};
}

void RankRegistry::Drop(int socket) {
  const Connection& connection = connections_.at(socket);
  if (connection.hello && !connection.ended) {
    Ended(connection, {.exit_code = 1,
                       .signal = 0,
                       .problem = "lost (killed together with its agent, or its host is gone)"});
  }
  close(socket);
  connections_.erase(socket);
}

std::vector<AgentHello> RankRegistry::NotInMpi() const {
  std::vector<AgentHello> absent;
  if (!first_failure_) return absent;
  const auto step = start_steps_.find(first_failure_->rank);
  if (step == start_steps_.end() || step->second != kStartOfMpi) return absent;
  for (const auto& [rank, hello] : ranks_) {
    if (start_steps_.count(rank) == 0) absent.push_back(hello);
  }
  return absent;
}

bool RankRegistry::Signal(int signal) {
  const char byte = static_cast<char>(signal);
  bool sent = false;
  for (const auto& [socket, connection] : connections_) {
    if (connection.hello && !connection.ended) sent = send(socket, &byte, 1, MSG_NOSIGNAL) == 1 || sent;
  }
  return sent;
}

}  // namespace plait::comm
