// Reference results of other MGRIT codes: residual norms per iteration that XBraid 3.x (github.com/XBraid/xbraid) and
// PyMGRIT 1.0.6 printed for the problems of mgrit/examples, written against their public interfaces; on one rank, in
// float64.
//
// XBraid's options correspond to ours as follows: nrelax = cf_sweeps, skip = skip_downcycle, fmg with nfmg = -1,
// CRelaxWt = c_weights; max_levels and cfactor have the same names. Where a code gives no norm, the entry is NaN.
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

// Printer for GoogleTest.
void PrintTo(const ReferenceHistory& history, std::ostream* stream);

std::vector<ReferenceHistory> XBraidHistories();
std::vector<ReferenceHistory> PyMgritHistories();  // with ResidualTime::kCycle

}  // namespace plait::mgrit::testing

#endif  // PLAIT_MGRIT_TESTING_REFERENCE_HISTORIES_H_
