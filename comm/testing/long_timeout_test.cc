// A job with very long timeouts starts, communicates and ends.
#include <gtest/gtest.h>

#include "comm/testing/world.h"

namespace plait::comm {
namespace {

TEST(LongTimeout, IsNotOverAtOnce) { testing::World().Barrier(); }

}  // namespace
}  // namespace plait::comm
