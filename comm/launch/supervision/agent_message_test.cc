#include "comm/launch/supervision/agent_message.h"

#include <gtest/gtest.h>

namespace plait::comm {
namespace {

TEST(AgentMessageReader, TakesBytesInAnyPieces) {
  const std::string bytes = Encode({AgentMessageKind::kHello, "t 3 42 node7"}) +
                            Encode({AgentMessageKind::kOutput, std::string("a\0\n", 3)}) +
                            Encode({AgentMessageKind::kError, ""}) +
                            Encode({AgentMessageKind::kOutput, std::string(70000, 'x')}) +
                            Encode({AgentMessageKind::kEnded, "3 0 "});
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
    AgentMessageReader reader;
    std::vector<AgentMessage> got;
    for (std::size_t i = 0; i < bytes.size(); i += piece) {
      reader.Feed(absl::string_view(bytes).substr(i, piece));
      while (const auto message = reader.Next()) got.push_back(*message);
    }
    ASSERT_EQ(got.size(), 5u) << piece;
    EXPECT_EQ(got[0].payload, "t 3 42 node7");
    EXPECT_EQ(got[1].payload, std::string("a\0\n", 3));
    EXPECT_EQ(got[2].kind, AgentMessageKind::kError);
    EXPECT_EQ(got[3].payload.size(), 70000u);
    EXPECT_EQ(got[4].kind, AgentMessageKind::kEnded);
    EXPECT_FALSE(reader.broken());
  }
}

TEST(AgentMessageReader, HangsUpOnOthers) {
  for (const char* bytes : {"GET / HTTP/1.1\r\n", "o\xff\xff\xff\xff", "z\0\0\0\1"}) {
    AgentMessageReader reader;
    reader.Feed(absl::string_view(bytes, 5));
    EXPECT_FALSE(reader.Next().has_value());
    EXPECT_TRUE(reader.broken()) << bytes;
  }
}

TEST(AgentTexts, ReadBackAsWritten) {
  const auto address = ParseSupervisorAddress(ToText(SupervisorAddress{"abc", 4711, {"10.0.0.1", "node7"}}));
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(address->token, "abc");
  EXPECT_EQ(address->port, 4711);
  EXPECT_EQ(address->hosts, (std::vector<std::string>{"10.0.0.1", "node7"}));
  const auto hello = ParseAgentHello(ToText(AgentHello{"abc", 3, 42, "node7"}));
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(hello->rank, 3);
  EXPECT_EQ(hello->pid, 42);
  const auto end = ParseProcessEnd(ToText(ProcessEnd{127, 0, "cannot start x: No such file"}));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->problem, "cannot start x: No such file");
  EXPECT_EQ(end->code(), 127);
  for (const char* bad : {"", "abc", "abc x h", "a b c d"})
    EXPECT_FALSE(ParseSupervisorAddress(bad).has_value()) << bad;
  for (const char* bad : {"", "abc 1 2", "abc -1 2 h", "abc x 2 h"}) {
    EXPECT_FALSE(ParseAgentHello(bad).has_value()) << bad;
  }
  for (const char* bad : {"", "1", "x 0 ", "1 y "}) EXPECT_FALSE(ParseProcessEnd(bad).has_value()) << bad;
}

TEST(ProcessEnd, InWords) {
  EXPECT_EQ(Describe({3, 0, ""}), "exit code 3");
  EXPECT_EQ(Describe({0, 9, ""}), "signal 9 (Killed)");
  EXPECT_EQ((ProcessEnd{0, 11, ""}).code(), 139);
  EXPECT_FALSE((ProcessEnd{}).failed());
}

}  // namespace
}  // namespace plait::comm
