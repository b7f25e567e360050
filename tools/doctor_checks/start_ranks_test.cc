#include "tools/doctor_checks/start_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace plait::doctor {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

// A launcher that ends with `code` after its ranks have written `report`.
RunCommand Launcher(int code, const std::string& report) {
  return [=](const std::vector<std::string>&, const Environment& environment, double) -> absl::StatusOr<int> {
    EXPECT_EQ(environment[0].first, kReportVariable);
    std::ofstream(environment[0].second) << report;
    return code;
  };
}

TEST(ReportOfRanks, IsWhatRankZeroWrote) {
  const auto findings = ReportOfRanks(
      {"mpirun", "doctor"}, 10, Launcher(0, ToJson({{Severity::kWarning, "memory", "little", "more"}})));
  ASSERT_TRUE(findings.ok());
  ASSERT_EQ(findings->size(), 1u);
  EXPECT_EQ(Line((*findings)[0]), "WARNING  memory: little; more");
}

TEST(ReportOfRanks, RanksThatFailAfterTheirReportAreAnError) {
  const auto findings =
      ReportOfRanks({"mpirun", "doctor"}, 10, Launcher(139, ToJson({{Severity::kOk, "memory", "much", ""}})));
  ASSERT_TRUE(findings.ok());
  ASSERT_EQ(findings->size(), 2u);
  EXPECT_EQ(
      Line((*findings)[1]),
      "ERROR    end: the ranks gave this report and then failed, with exit code 139; see the launcher's own "
      "message above");
}

TEST(ReportOfRanks, ALauncherThatFailsIsNamed) {
  EXPECT_EQ(ReportOfRanks({"mpirun", "-n", "4", "doctor"}, 10, Launcher(213, "")).status().message(),
            "mpirun -n 4 doctor ended with exit code 213 before it gave a report");
  EXPECT_EQ(ReportOfRanks({"mpirun", "doctor"}, 10, Launcher(124, "")).status().message(),
            "mpirun doctor gave no report within 10 s");
  EXPECT_FALSE(ReportOfRanks({"mpirun", "doctor"}, 10, Launcher(0, "[{\"sev")).ok());
}

TEST(ReportOfRanks, ALauncherThatIsNotThereIsAnError) {
  const RunCommand absent = [](const auto&, const auto&, double) -> absl::StatusOr<int> {
    return absl::NotFoundError("there is no mpirun");
  };
  const auto findings = ReportOfRanks({"mpirun"}, 10, absent);
  EXPECT_EQ(
      Line(NotStarted(4, findings.status())),
      "ERROR    start: 4 ranks do not start: there is no mpirun; the checks below are of this host alone");
}

}  // namespace
}  // namespace plait::doctor
