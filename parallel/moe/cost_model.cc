#include "parallel/moe/cost_model.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace plait::moe {

absl::Status Validate(const MoeCostModel& cost) {
  const auto check = [](const char* name, double value, bool zero_too) {
    if (std::isfinite(value) && (value > 0 || (zero_too && value == 0))) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("cost model of mixtures of experts: ", name, " is ", value,
                                                   "; expected ",
                                                   zero_too ? "0 or more" : "a positive number"));
  };
  absl::Status status = check("link_bytes_per_second", cost.link_bytes_per_second, false);
  status.Update(check("latency_seconds", cost.latency_seconds, true));
  status.Update(check("rank_flops_per_second", cost.rank_flops_per_second, false));
  status.Update(check("width", static_cast<double>(cost.width), false));
  status.Update(check("hidden", static_cast<double>(cost.hidden), false));
  status.Update(check("element_bytes", cost.element_bytes, false));
  status.Update(check("micro_batches", cost.micro_batches, false));
  return status;
}

MoeSeconds PredictSeconds(const MoeCostModel& cost, absl::Span<const RankLoad> ranks) {
  std::int64_t computed = 0, moved = 0;
  int copied = 0;
  for (const RankLoad& rank : ranks) {
    computed = std::max(computed, rank.rows);
    moved = std::max({moved, rank.sent_rows, rank.received_rows});
    copied = std::max({copied, rank.replicas, rank.replicas_of_its_experts});
  }
  const double messages = static_cast<double>(ranks.size()) - 1;
  MoeSeconds seconds;
  seconds.compute = static_cast<double>(computed) * cost.row_flops() / cost.rank_flops_per_second;
  seconds.exchange = 4 * (static_cast<double>(moved) * cost.row_bytes() / cost.link_bytes_per_second +
                          messages * cost.latency_seconds);
  seconds.replicas = (1 + 1.0 / cost.micro_batches) * copied *
                     (cost.replica_bytes() / cost.link_bytes_per_second + cost.latency_seconds);
  return seconds;
}

}  // namespace plait::moe
