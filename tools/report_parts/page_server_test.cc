#include "tools/report_parts/page_server.h"

#include <gtest/gtest.h>

namespace plait::report {
namespace {

TEST(IsOwnHost, WithThePort) {
  for (const char* host : {"127.0.0.1:8080", "localhost:8080"}) EXPECT_TRUE(IsOwnHost(host, 8080)) << host;
  for (const char* host : {"", ":8080", "127.0.0.1", "localhost", "127.0.0.1:80", "localhost:18080",
                           "localhost:8080:8080", "example.org:8080", "example.localhost:8080"}) {
    EXPECT_FALSE(IsOwnHost(host, 8080)) << host;
  }
}

// Browsers leave out the default port.
TEST(IsOwnHost, Port80MayBeLeftOut) {
  for (const char* host : {"127.0.0.1", "localhost", "127.0.0.1:80", "localhost:80"}) {
    EXPECT_TRUE(IsOwnHost(host, 80)) << host;
  }
  for (const char* host : {"", ":80", "localhost:8080", "localhost:80:80", "example.org", "example.org:80"}) {
    EXPECT_FALSE(IsOwnHost(host, 80)) << host;
  }
}

}  // namespace
}  // namespace plait::report
