#include "tools/dist_test/collectives.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/collectives_sweep/run_sweep.h"
#include "tools/dist_test/startup_report.h"
#include "tools/training/run_outputs.h"

namespace plait::dist_test {

absl::Status RunCollectives(const Config& config, const device::DevicePlan& device, comm::Session& session,
                            const comm::DeviceMesh& mesh, const base::Log& log) {
  const comm::Communicator& world = session.world();
  const Place place = Introduce(config, device, mesh, log);
  PLAIT_ASSIGN_OR_RETURN(const training::OutputFolder folder,
                         training::OpenOutputFolder("test_dist", config.outputs, world));
  session.EnterSteps();
  collectives_sweep::SweepOptions options;
  options.smallest_bytes = config.smallest_bytes;
  options.largest_bytes = config.largest_bytes;
  options.factor = config.size_factor;
  options.file = folder.path + "/sweep.h5";
  options.plots_folder = config.plots ? folder.path : "";
  options.show_plots = config.plots;
  PLAIT_RETURN_IF_ERROR(collectives_sweep::RunSweep(
      world, options, [](const std::string& line) { std::puts(line.c_str()); },
      data::RunAttributes(FactsOf(config, place))));
  log.Info(absl::StrCat("sweep saved in ", options.file));
  return absl::OkStatus();
}

}  // namespace plait::dist_test
