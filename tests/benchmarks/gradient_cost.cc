// How good a layer-parallel gradient is, and what it costs, over a list of settings:
//
//   bazel run //tests/benchmarks:gradient_cost -- --train-batches=0,48 --out=curve.csv --plot=curve.svg
//
// On windows of human activity (data/har; a synthetic stand-in is named as such), batch 100, one rank, one
// thread. The exact gradient is that of the serial network on the same batch. Costs: evaluations of Phi
// forward and of its adjoint backward, in sweeps (over the steps), and seconds of forward, loss and backward,
// each the median of --repeats.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/adam.h>

#include <chrono>
#include <cstdio>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/flags.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "data/har/prepare.h"
#include "data/sampler.h"
#include "models/gru/layer_parallel/layer_parallel_gru.h"
#include "models/gru/sequence_classifier.h"
#include "tests/benchmarks/curve.h"
#include "tests/benchmarks/setting.h"
#include "tests/benchmarks/settings_to_try.h"
#include "tests/benchmarks/spread.h"

ABSL_FLAG(std::string, settings, "",
          "settings separated by ; instead of the built-in list; published and default too");
ABSL_FLAG(std::string, only, "", "of the built-in list, the settings whose text contains this");
ABSL_FLAG(std::string, train_batches, "0,48",
          "batches of serial training after which gradients are compared");
ABSL_FLAG(int, repeats, 5, "timed repetitions of each setting, after one that is not");
ABSL_FLAG(int, hidden_size, 100, "units of a layer");
ABSL_FLAG(int, num_layers, 2, "stacked layers");
ABSL_FLAG(int, batch_size, 100, "samples of a batch");
ABSL_FLAG(std::uint64_t, seed, 1, "of the initial parameters and the order of the samples");
ABSL_FLAG(std::string, data_dir, "", "as train_gru's");
ABSL_FLAG(std::string, out, "", "a CSV file of all points");
ABSL_FLAG(std::string, plot, "", "an SVG of error against seconds, by gnuplot");

namespace plait::benchmarks {
namespace {

base::ToolUsage Usage() {
  return {
      .name = "gradient_cost",
      .summary = "Error of the layer-parallel gradient against its cost, over many settings of the solver.",
      .examples = {"gradient_cost --out=curve.csv --plot=curve.svg",
                   "gradient_cost --only=levels=2 --repeats=1",
                   "gradient_cost --settings='published;levels=2/cfactor=8/step=frozen'"}};
}

struct Batch {
  at::Tensor x;
  at::Tensor y;
};

// A gradient of the GRU's parameters as one vector, the last state, and the time they took.
struct Gradient {
  at::Tensor flat;
  at::Tensor state;
  double seconds = 0;
};

double RelativeError(const at::Tensor& value, const at::Tensor& exact) {
  return ((value - exact).norm() / exact.norm()).item<double>();
}

class Comparison {
 public:
  explicit Comparison(const data::SequenceSet& set)
      : set_(set),
        cell_{set.train.channels, absl::GetFlag(FLAGS_hidden_size), absl::GetFlag(FLAGS_num_layers),
              gru::GruKind::kImplicit},
        classifier_(Seeded({{cell_, {}}, static_cast<std::int64_t>(set.class_names.size())})),
        adam_(classifier_.parameters(), torch::optim::AdamOptions(1e-3)),
        sampler_({.samples = set.train.samples(),
                  .batch_size = absl::GetFlag(FLAGS_batch_size),
                  .seed = absl::GetFlag(FLAGS_seed)}) {
    batch_ = NextBatch();  // gradients are compared on the first batch
  }

  void TrainTo(int batches) {
    for (; trained_ < batches; ++trained_) {
      const Batch batch = NextBatch();
      adam_.zero_grad();
      at::cross_entropy_loss(classifier_.Forward(batch.x), batch.y).backward();
      adam_.step();
    }
    exact_ = Median([&] { return SerialGradient(); });
  }

  CurvePoint Compare(const Setting& setting) {
    gru::LayerParallelGru net([&] { return classifier_.gru().parameters(); }, cell_, at::kFloat,
                              comm::Communicator::Self(), set_.train.steps,
                              static_cast<double>(set_.train.steps), setting.solver, setting.step);
    const Gradient found = Median([&] { return ParallelGradient(net); });
    CurvePoint point;
    point.setting = TextOf(setting);
    point.train_batches = trained_;
    point.gradient_error = RelativeError(found.flat, exact_.flat);
    point.cosine =
        ((found.flat * exact_.flat).sum() / (found.flat.norm() * exact_.flat.norm())).item<double>();
    point.state_error = RelativeError(found.state, exact_.state);
    point.forward_sweeps = Sweeps(setting, net.solver().last_forward());
    point.backward_sweeps = Sweeps(setting, net.solver().last_backward());
    point.seconds = found.seconds;
    point.serial_seconds = exact_.seconds;
    return point;
  }

 private:
  static gru::SequenceClassifier Seeded(const gru::SequenceClassifierOptions& options) {
    at::manual_seed(absl::GetFlag(FLAGS_seed));
    return gru::SequenceClassifier(options, at::kFloat);
  }

  Batch NextBatch() {
    auto indices = sampler_.Next();
    if (!indices) {
      sampler_.NextEpoch();
      indices = sampler_.Next();
    }
    const auto count = static_cast<std::int64_t>(indices->size());
    Batch batch{at::empty({count, set_.train.steps, set_.train.channels}, at::kFloat),
                at::empty({count}, at::kLong)};
    data::Gather(set_.train, *indices,
                 {batch.x.mutable_data_ptr<float>(), static_cast<std::size_t>(batch.x.numel())},
                 {batch.y.mutable_data_ptr<std::int64_t>(), static_cast<std::size_t>(count)});
    return batch;
  }

  Gradient Flat(const at::Tensor& scores, const at::Tensor& state) {
    const at::Tensor loss = at::cross_entropy_loss(scores, batch_.y);
    std::vector<at::Tensor> parts;
    for (const at::Tensor& part : torch::autograd::grad({loss}, classifier_.gru().parameters())) {
      parts.push_back(part.reshape(-1));
    }
    return {at::cat(parts), state.detach(), 0};
  }

  Gradient SerialGradient() {
    const gru::GruResult result = classifier_.gru().Forward(batch_.x);
    return Flat(classifier_.Output({.hidden = result.output}), result.state);
  }

  Gradient ParallelGradient(gru::LayerParallelGru& net) {
    const at::Tensor state = net.Forward(batch_.x);
    return Flat(classifier_.Output({.hidden = state[-1]}), state);
  }

  template <typename Run>
  Gradient Median(const Run& run) {
    Gradient gradient = run();
    std::vector<double> seconds;
    for (int i = 0; i < absl::GetFlag(FLAGS_repeats); ++i) {
      const auto start = std::chrono::steady_clock::now();
      gradient = run();
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    gradient.seconds = SpreadOf(seconds).median;
    return gradient;
  }

  double Sweeps(const Setting& setting, const mgrit::Solution& solution) const {
    return static_cast<double>(Evaluations(setting, solution.work.steps)) /
           static_cast<double>(set_.train.steps);
  }

  const data::SequenceSet& set_;
  gru::GruConfig cell_;
  gru::SequenceClassifier classifier_;
  torch::optim::Adam adam_;
  data::Sampler sampler_;
  Batch batch_;
  Gradient exact_;
  int trained_ = 0;
};

absl::StatusOr<std::vector<Setting>> Settings(std::int64_t steps) {
  std::vector<std::string> texts = {"published", "default"};
  if (absl::GetFlag(FLAGS_settings).empty()) {
    for (const std::string& text : SettingsToTry()) {
      if (text.find(absl::GetFlag(FLAGS_only)) != std::string::npos) texts.push_back(text);
    }
  } else {
    texts = absl::StrSplit(absl::GetFlag(FLAGS_settings), ';');
  }
  std::vector<Setting> settings;
  for (const std::string& text : texts) {
    PLAIT_ASSIGN_OR_RETURN(const Setting setting, ParseSetting(text));
    PLAIT_RETURN_IF_ERROR(base::Prefixed(mgrit::LayerParallel::Check(setting.solver, steps), text));
    settings.push_back(setting);
  }
  return settings;
}

absl::StatusOr<std::vector<int>> TrainBatches() {
  std::vector<int> counts;
  for (const absl::string_view part : absl::StrSplit(absl::GetFlag(FLAGS_train_batches), ',')) {
    int count = 0;
    if (!absl::SimpleAtoi(part, &count) || count < 0 || (!counts.empty() && count <= counts.back())) {
      return absl::InvalidArgumentError("--train-batches: expected rising numbers, such as 0,48");
    }
    counts.push_back(count);
  }
  return counts;
}

std::string MarkOf(const CurvePoint& point) {
  if (point.setting == TextOf(PublishedSetting())) return "published";
  return point.setting == TextOf(*ParseSetting("default")) ? "default" : "";
}

absl::Status Run() {
  if (absl::GetFlag(FLAGS_repeats) < 1) return absl::InvalidArgumentError("--repeats: must be at least 1");
  at::set_num_threads(1);
  PLAIT_ASSIGN_OR_RETURN(const data::SequenceSet set,
                         data::OpenHar({.data_dir = base::FromUser(absl::GetFlag(FLAGS_data_dir))}, {}));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<int> counts, TrainBatches());
  PLAIT_ASSIGN_OR_RETURN(const std::vector<Setting> settings, Settings(set.train.steps));
  std::printf("Data: %s\n%s\n", set.description().c_str(), CurveHeader().c_str());
  Comparison comparison(set);
  std::vector<CurvePoint> points;
  for (const int count : counts) {
    comparison.TrainTo(count);
    for (const Setting& setting : settings) {
      points.push_back(comparison.Compare(setting));
      points.back().mark = MarkOf(points.back());
      std::printf("%s\n", CurveLine(points.back()).c_str());
      std::fflush(stdout);
    }
  }
  const std::string out = base::FromUser(absl::GetFlag(FLAGS_out)),
                    plot = base::FromUser(absl::GetFlag(FLAGS_plot));
  if (!out.empty()) PLAIT_RETURN_IF_ERROR(WriteCurve(out, set.description(), points));
  if (plot.empty()) return absl::OkStatus();
  return PlotCurve(plot, set.synthetic ? "synthetic data" : "human-activity windows", points);
}

}  // namespace
}  // namespace plait::benchmarks

int main(int argc, char** argv) {
  plait::base::ParseFlagsOrExit(argc, argv, plait::benchmarks::Usage());
  const absl::Status status = plait::benchmarks::Run();
  if (!status.ok()) std::fprintf(stderr, "gradient_cost: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
