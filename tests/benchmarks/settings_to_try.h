// The settings that gradient_cost goes through when it is given none: grids x iterations x variants of the
// coarse step.
#ifndef PLAIT_TESTS_BENCHMARKS_SETTINGS_TO_TRY_H_
#define PLAIT_TESTS_BENCHMARKS_SETTINGS_TO_TRY_H_

#include <string>
#include <vector>

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
  for (const char* step : {"/step=one", "/step=frozen"}) {
    for (const char* input : {"/input=first", "/input=mean"}) {
      for (const char* adjoint : {"/adjoint=step", "/adjoint=fine"}) {
        for (const char* solver : solvers) settings.push_back(std::string(solver) + step + input + adjoint);
      }
    }
  }
  return settings;
}

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_SETTINGS_TO_TRY_H_
