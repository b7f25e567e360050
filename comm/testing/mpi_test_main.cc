// The main function of every mpi_cc_test: all ranks run the same tests, rank 0 prints the results, a failure on any
// rank fails the test.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "absl/types/span.h"
#include "base/process_exit.h"
#include "comm/session.h"
#include "comm/testing/session_flags.h"
#include "comm/testing/world.h"

namespace plait::comm::testing {
namespace {

// GoogleTest cannot pass arguments to tests; the communicator is stored here while they run.
std::optional<Communicator>& WorldOfThisProgram() {
  static std::optional<Communicator> world;
  return world;
}

// After each test, sums its failures over all ranks, on a separate group, so that the call cannot be matched with a
// stray collective of the test.
class FailuresOfAllRanks : public ::testing::EmptyTestEventListener {
 public:
  explicit FailuresOfAllRanks(Communicator ranks) : ranks_(std::move(ranks)) {}

  void OnTestPartResult(const ::testing::TestPartResult& part) override {
    if (!part.failed() || ranks_.rank() == 0) return;
    std::fprintf(stderr, "rank %d: %s:%d: Failure\n%s\n", ranks_.rank(),
                 part.file_name() == nullptr ? "?" : part.file_name(), part.line_number(), part.summary());
  }

  // Listeners are notified of a test's end in reverse order: the printer comes after this one.
  void OnTestEnd(const ::testing::TestInfo& info) override {
    std::int64_t failed[1] = {info.result()->Failed() ? 1 : 0};
    const bool failed_here = failed[0] == 1;
    ranks_.AllReduce(BufferOf(absl::MakeSpan(failed)));
    if (failed[0] > 0 && !failed_here && ranks_.rank() == 0)
      ADD_FAILURE() << failed[0] << " other ranks failed";
  }

 private:
  Communicator ranks_;
};

int RunTests(const Communicator& world) {
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (world.rank() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailuresOfAllRanks(world.Split(0, world.rank(), "test_failures")));
  WorldOfThisProgram() = world;
  const int result = RUN_ALL_TESTS();
  WorldOfThisProgram().reset();
  return result;
}

}  // namespace

const Communicator& World() { return *WorldOfThisProgram(); }

}  // namespace plait::comm::testing

int main(int argc, char** argv) {
  plait::base::PrepareExit(argv[0]);
  auto session =
      plait::comm::Session::Start(&argc, &argv, plait::comm::testing::SessionOptionsFromFlags(argc, argv));
  if (!session.ok()) {
    std::fprintf(stderr, "%s\n", session.status().ToString().c_str());
    return 1;
  }
  // One rank writes the files that the test runner asks for.
  if (session->world().rank() != 0) unsetenv("TEST_PREMATURE_EXIT_FILE");
  ::testing::InitGoogleTest(&argc, argv);
  if (session->world().rank() != 0) ::testing::GTEST_FLAG(output) = "";
  const int result = plait::comm::testing::RunTests(session->world());
  session->Finish();
  return result;
}
