// Gates written out as loops over tokens and experts, in float64, with exact derivatives by dual numbers.
#ifndef PLAIT_PARALLEL_MOE_TESTING_GATE_ORACLE_H_
#define PLAIT_PARALLEL_MOE_TESTING_GATE_ORACLE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <vector>

#include "parallel/moe/gate.h"

namespace plait::moe::testing {

// A value and its derivative with respect to one parameter.
struct Dual {
  double value = 0, slope = 0;
  Dual(double v = 0, double s = 0) : value(v), slope(s) {}  // NOLINT(google-explicit-constructor)
};
inline Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
inline Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
inline Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
inline Dual operator/(Dual a, Dual b) {
  return {a.value / b.value, (a.slope * b.value - a.value * b.slope) / (b.value * b.value)};
}
inline Dual Exp(Dual a) { return {std::exp(a.value), a.slope * std::exp(a.value)}; }
inline Dual Log(Dual a) { return {std::log(a.value), a.slope / a.value}; }
inline Dual Phi(Dual a) {
  return {std::erfc(-a.value / std::numbers::sqrt2) / 2,
          a.slope * std::exp(-a.value * a.value / 2) / std::sqrt(2 * std::numbers::pi)};
}

using Row = std::vector<Dual>;

// What is random or given, for the whole batch.
struct OracleInput {
  GateOptions options;
  bool training = true;
  std::vector<Row> logits = {}, noise_logits = {};
  std::vector<std::vector<double>> normal = {};  // (tokens, experts)
  std::vector<double> uniform = {};              // (tokens): of second experts
  std::vector<double> bias = {};                 // (experts)
};

struct OracleRouting {
  std::vector<std::vector<int>> experts;  // (tokens, k)
  std::vector<Row> weights;               // (tokens, experts), 0 elsewhere
  Dual loss;                              // of the whole batch: a mean over tokens
};

// Experts of the k largest values; of equal ones the lower.
inline std::vector<int> Largest(const Row& values, int k) {
  std::vector<int> chosen;
  for (int i = 0; i < k; ++i) {
    int best = -1;
    for (int e = 0; e < static_cast<int>(values.size()); ++e) {
      if (std::find(chosen.begin(), chosen.end(), e) != chosen.end()) continue;
      if (best < 0 || values[e].value > values[best].value) best = e;
    }
    chosen.push_back(best);
  }
  return chosen;
}

// The k-th largest of all values but that of `without`.
inline Dual KthExcluding(const Row& values, int k, int without) {
  Row others;
  for (int e = 0; e < static_cast<int>(values.size()); ++e) {
    if (e != without) others.push_back(values[e]);
  }
  std::sort(others.begin(), others.end(), [](Dual a, Dual b) { return a.value > b.value; });
  return others[k - 1];
}

// Variance over squared mean.
inline Dual SquaredVariation(const Row& sums) {
  const double count = static_cast<double>(sums.size());
  Dual mean, variance;
  for (const Dual& x : sums) mean = mean + x / count;
  for (const Dual& x : sums) variance = variance + (x - mean) * (x - mean) / count;
  return variance / (mean * mean);
}

// One token: experts and weights, and what it adds to the sums of the losses.
struct OracleSums {
  Row rows, first_rows, probability, importance, load;
  Dual squared_z;
};

inline void RouteToken(const OracleInput& in, int t, OracleRouting& routing, OracleSums& sums) {
  const GateOptions& options = in.options;
  const int experts = options.experts, k = options.k;
  const bool noisy = options.kind == GateKind::kNoisyTopK && in.training;
  Row h(experts), p(experts), scores(experts), values(experts), deviations(experts);
  Dual all, z;
  for (int e = 0; e < experts; ++e) {
    if (noisy) deviations[e] = Log(Dual(1) + Exp(in.noise_logits[t][e]));
    h[e] = in.logits[t][e] + (noisy ? deviations[e] * in.normal[t][e] : Dual());
    all = all + Exp(h[e]);
    z = z + Exp(in.logits[t][e]);
  }
  for (int e = 0; e < experts; ++e) {
    p[e] = Exp(h[e]) / all;
    scores[e] = options.sigmoid ? Dual(1) / (Dual(1) + Exp(Dual() - h[e])) : p[e];
    values[e] = options.kind == GateKind::kBias ? scores[e] + in.bias[e] : h[e];
    sums.probability[e] = sums.probability[e] + p[e];
  }
  std::vector<int> chosen = Largest(values, k);
  Dual total;
  for (const int e : chosen) total = total + scores[e];
  const bool normalized =
      options.kind == GateKind::kGShard || (options.kind != GateKind::kSwitch && options.normalizes && k > 1);
  Row weights(experts);
  for (const int e : chosen) weights[e] = normalized ? scores[e] / total : scores[e];
  for (int e = 0; e < experts; ++e) {
    const bool is_chosen = std::find(chosen.begin(), chosen.end(), e) != chosen.end();
    sums.rows[e] = sums.rows[e] + (is_chosen ? 1 : 0);
    sums.importance[e] = sums.importance[e] + weights[e];
    const Dual selected = !noisy         ? Dual(is_chosen ? 1 : 0)
                          : k == experts ? Dual(1)
                                         : Phi((in.logits[t][e] - KthExcluding(h, k, e)) / deviations[e]);
    sums.load[e] = sums.load[e] + selected;
  }
  sums.first_rows[chosen[0]] = sums.first_rows[chosen[0]] + 1;
  sums.squared_z = sums.squared_z + Log(z) * Log(z);
  if (options.kind == GateKind::kGShard && in.training && 2 * weights[chosen[1]].value <= in.uniform[t]) {
    weights[chosen[1]] = 0;
    chosen[1] = -1;
  }
  routing.experts.push_back(chosen);
  routing.weights.push_back(weights);
}

inline OracleRouting RouteByLoops(const OracleInput& in) {
  const GateOptions& options = in.options;
  const auto tokens = static_cast<double>(in.logits.size());
  const Row none(options.experts);
  OracleRouting routing;
  OracleSums sums = {none, none, none, none, none, 0};
  for (std::size_t t = 0; t < in.logits.size(); ++t) RouteToken(in, static_cast<int>(t), routing, sums);
  Dual balance;
  for (int e = 0; e < options.experts; ++e) {
    const bool first = options.kind == GateKind::kGShard;
    const Dual share = first ? sums.first_rows[e] / tokens : sums.rows[e] / (tokens * options.k);
    balance = balance + share * sums.probability[e] / tokens * options.experts;
  }
  if (options.kind == GateKind::kNoisyTopK) {
    balance = SquaredVariation(sums.importance) + SquaredVariation(sums.load);
  }
  if (options.kind == GateKind::kBias) balance = 0;
  routing.loss = balance * options.balance_weight + sums.squared_z / tokens * options.z_weight;
  return routing;
}

}  // namespace plait::moe::testing

#endif  // PLAIT_PARALLEL_MOE_TESTING_GATE_ORACLE_H_
