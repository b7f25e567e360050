// Why a meeting fails, on all ranks the same.
#include "comm/watchdog/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "comm/testing/world.h"

namespace {

// Errors of the next calls; 0: none.
int error_of_connect = 0, error_of_accept = 0;

int Fail(int error) {
  errno = error;
  return -1;
}

}  // namespace

// They replace the C library's.
int connect(int socket, const sockaddr* address, socklen_t length) {
  if (error_of_connect != 0) return Fail(error_of_connect);
  return static_cast<int>(syscall(SYS_connect, socket, address, length));
}
int accept4(int socket, sockaddr* address, socklen_t* length, int flags) {
  if (error_of_accept != 0) return Fail(error_of_accept);
  return static_cast<int>(syscall(SYS_accept4, socket, address, length, flags));
}

namespace plait::comm {
namespace {

using ::testing::ContainsRegex;
using testing::World;

absl::Status MeetWith(int connect, int accept) {
  error_of_connect = connect;
  error_of_accept = accept;
  const absl::Status status = Meet(World(), /*timeout_seconds=*/2).status();
  error_of_connect = error_of_accept = 0;
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  return status;
}

TEST(Meet, NamesARankThatCannotConnect) {
  const absl::Status status = MeetWith(World().rank() == 1 ? ECONNREFUSED : 0, 0);
  EXPECT_THAT(
      std::string(status.message()),
      ContainsRegex("^watchdog: rank 1 on .* cannot connect to rank 0 on .* port [0-9]+; is a firewall"));
}

TEST(Meet, NamesTheLimitOnOpenFiles) {
  const absl::Status status = MeetWith(0, EMFILE);
  EXPECT_THAT(std::string(status.message()),
              ContainsRegex("^watchdog: rank 0 on .* may have only [0-9]+ files open \\(ulimit -n\\)$"));
}

TEST(Meet, Succeeds) { EXPECT_TRUE(Meet(World(), /*timeout_seconds=*/20).ok()); }

}  // namespace
}  // namespace plait::comm
