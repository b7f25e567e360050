// A layer-parallel solver setting for the GRU, or another network, as one word of text that programs print and parse.
//
//   levels=3/cfactor=4/iterations=2,1/sweeps=0,1/fmg=0/skip=1/step=one/hold=0
//
// `cfactor`, `sweeps` (mgrit/options.h) and `hold` (GruStepOptions) are lists by level; `iterations` are
// forward, backward; `bsweeps` and `bfmg` are those of the backward solve if it differs. Missing keys have the
// values of the published settings.
#ifndef PLAIT_TESTS_BENCHMARKS_SETTING_H_
#define PLAIT_TESTS_BENCHMARKS_SETTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/scaling/work_trace.h"
#include "models/gru/layer_parallel/gru_step.h"

namespace plait::benchmarks {

struct Setting {
  mgrit::LayerParallelOptions solver;
  gru::GruStepOptions step;
};

// The batch that the model of scaling replays.
mgrit::scaling::BatchShape ShapeOf(const Setting& setting, std::int64_t steps, int ranks);

// Evaluations of the cell in `steps` steps of each level: a coarse step may have several (GruStepOptions).
std::int64_t Evaluations(const Setting& setting, const std::vector<std::int64_t>& steps);

// Three levels, factor 4, 2 forward and 1 backward iterations, F-relaxation on the finest level and FCF- on
// the others, coarse steps of one long step over the first item (Moon and Cyr, ICLR 2022, arXiv 2203.04738).
Setting PublishedSetting();

// Parses the format above, or one of the words `published`, `published-cycle` (the same with train_gru's coarse steps:
// what it does with the published flags) and `default` (what it does without flags).
absl::StatusOr<Setting> ParseSetting(absl::string_view text);
std::string TextOf(const Setting& setting);
// Without the GRU's `step` and `hold`.
std::string TextOf(const mgrit::LayerParallelOptions& solver);

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_SETTING_H_
