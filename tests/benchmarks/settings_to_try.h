// The settings that gradient_cost goes through when it is given none (grids x iterations x variants of the coarse step),
// and the solvers that networks of any depth are tried with.
#ifndef PLAIT_TESTS_BENCHMARKS_SETTINGS_TO_TRY_H_
#define PLAIT_TESTS_BENCHMARKS_SETTINGS_TO_TRY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "mgrit/layer_parallel/layer_parallel.h"

namespace plait::benchmarks {

// Each fits 128 steps.
inline std::vector<std::string> SettingsToTry() {
  const char* solvers[] = {"levels=2/cfactor=4/iterations=1,1",
                           "levels=2/cfactor=4/iterations=2,1",
                           "levels=2/cfactor=4/iterations=2,2",
                           "levels=2/cfactor=4/iterations=3,2",
                           "levels=2/cfactor=4/iterations=3,3",
                           "levels=2/cfactor=8/iterations=1,1",
                           "levels=2/cfactor=8/iterations=2,1",
                           "levels=2/cfactor=8/iterations=2,2",
                           "levels=2/cfactor=8/iterations=3,3",
                           "levels=2/cfactor=16/iterations=1,1",
                           "levels=2/cfactor=16/iterations=2,1",
                           "levels=2/cfactor=16/iterations=2,2",
                           "levels=2/cfactor=32/iterations=2,1",
                           "levels=2/cfactor=32/iterations=2,2",
                           "levels=2/cfactor=65/iterations=1,1",
                           "levels=3/cfactor=4/iterations=2,1",
                           "levels=3/cfactor=4/iterations=2,2",
                           "levels=3/cfactor=4/iterations=2,2/sweeps=0",
                           "levels=3/cfactor=4/iterations=3,2",
                           "levels=3/cfactor=4/iterations=3,3",
                           "levels=3/cfactor=4/iterations=12,10",
                           "levels=3/cfactor=4/iterations=1,1/fmg=1/sweeps=0",
                           "levels=3/cfactor=4/iterations=1,1/fmg=1",
                           "levels=3/cfactor=4/iterations=2,1/fmg=1",
                           "levels=3/cfactor=4/iterations=2,1/fmg=0/bfmg=1",
                           "levels=3/cfactor=4/iterations=2,2/fmg=1",
                           "levels=3/cfactor=8,4/iterations=2,1",
                           "levels=3/cfactor=8,2/iterations=2,1",
                           "levels=3/cfactor=8,2/iterations=2,2",
                           "levels=3/cfactor=8,2/iterations=2,1/fmg=1/sweeps=0",
                           "levels=3/cfactor=4,2/iterations=2,1",
                           "levels=3/cfactor=4,2/iterations=2,2"};
  std::vector<std::string> settings;
  for (const char* step : {"/step=one/hold=0", "/step=frozen/hold=0", "/step=frozen/hold=2",
                           "/step=frozen/hold=2,4", "/step=frozen/hold=4"}) {
    for (const char* solver : solvers) {
      // On two levels a second entry says nothing, and with factor 4 a hold of 4 is none.
      const std::string text = std::string(solver) + step;
      const bool two_levels = text.find("levels=2") == 0;
      if (two_levels && text.find("hold=2,4") != std::string::npos) continue;
      if (text.find("levels=2/cfactor=4/") == 0 && text.find("hold=4") != std::string::npos) continue;
      settings.push_back(text);
    }
  }
  return settings;
}

// Those that fit; grids x iterations.
inline std::vector<mgrit::LayerParallelOptions> DepthSolversToTry(std::int64_t layers) {
  constexpr int kIterations[][2] = {{1, 1}, {2, 1}, {2, 2}, {3, 2}, {3, 3}};
  std::vector<mgrit::LayerParallelOptions> solvers;
  for (const int levels : {2, 3, 4, 5}) {
    for (const int factor : {2, 4, 8, 16}) {
      for (const auto& [forward, backward] : kIterations) {
        solvers.push_back(mgrit::MakeLayerParallelOptions(levels, factor, forward, backward));
        if (!mgrit::LayerParallel::Check(solvers.back(), layers).ok()) solvers.pop_back();
      }
    }
  }
  return solvers;
}

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_SETTINGS_TO_TRY_H_
