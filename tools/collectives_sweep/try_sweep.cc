#include <cstdio>
#include <cstdlib>
#include "comm/session_main.h"
#include "tools/collectives_sweep/run_sweep.h"
#include "tools/collectives_sweep/table.h"
int main(int argc, char** argv) {
  return plait::comm::RunMain(argc, argv, {}, [&](plait::comm::Session& session) {
    plait::collectives_sweep::SweepOptions o{.largest_bytes = std::atoll(argv[1])};
    o.file = argv[2];
    o.plots_folder = argv[3];
    return RunSweep(session.world(), o, [](const std::string& l) { std::puts(l.c_str()); });
  });
}
