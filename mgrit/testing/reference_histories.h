// Published behaviour of other MGRIT codes: residual norms per iteration that XBraid 3.x
// (github.com/XBraid/xbraid) and PyMGRIT 1.0.6 (pypi.org/project/pymgrit) printed for the problems of
// mgrit/examples. They were run on their public interfaces with these problems written as their users would
// write them, on one rank, in float64.
//
// XBraid's options correspond to ours so: max_levels, cfactor, nrelax = cf_sweeps, skip = skip_downcycle, fmg
// with nfmg = -1, CRelaxWt = c_weights. Where a code gives no norm, the entry is NaN.
#ifndef PLAIT_MGRIT_TESTING_REFERENCE_HISTORIES_H_
#define PLAIT_MGRIT_TESTING_REFERENCE_HISTORIES_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "mgrit/grid.h"
#include "mgrit/options.h"
#include "mgrit/problem.h"

namespace plait::mgrit::testing {

struct ReferenceHistory {
  std::string name;
  std::function<std::unique_ptr<AnyProblem>()> make_problem;
  TimeGrid time;
  Options options;
  std::vector<double> residual_norms;
};

// How GoogleTest shows one.
void PrintTo(const ReferenceHistory& history, std::ostream* stream);

std::vector<ReferenceHistory> XBraidHistories();
std::vector<ReferenceHistory> PyMgritHistories();  // with ResidualTime::kCycle

}  // namespace plait::mgrit::testing

#endif  // PLAIT_MGRIT_TESTING_REFERENCE_HISTORIES_H_
