#include <algorithm>
#include <vector>

#include "parallel/moe/policies.h"

namespace plait::moe {
namespace {

// Number of copies of each expert: repeatedly one more for the expert with the most rows per copy.
std::vector<int> CountCopies(const std::vector<double>& rows, std::vector<int> copies, int ranks, int slots) {
  for (; slots > 0; --slots) {
    int most = -1;
    for (int expert = 0; expert < static_cast<int>(rows.size()); ++expert) {
      if (rows[expert] == 0 || copies[expert] >= ranks) continue;
      if (most < 0 || rows[expert] / copies[expert] > rows[most] / copies[most]) most = expert;
    }
    if (most < 0) break;
    ++copies[most];
  }
  return copies;
}

}  // namespace

void AddEplbReplicas(const PlannerOptions& options, const Census& census, ExpertPlacement& placement) {
  const int ranks = census.ranks(), experts = census.experts();
  std::vector<double> rows(experts), loads(ranks);
  std::vector<int> present(experts, 1);
  int free_slots = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    free_slots += std::max(0, options.replica_slots - placement.replicas(rank));
    for (const int expert : placement.slots(rank).subspan(placement.home_experts(rank))) ++present[expert];
  }
  for (int expert = 0; expert < experts; ++expert)
    rows[expert] = static_cast<double>(census.OfExpert(expert));
  const std::vector<int> copies = CountCopies(rows, present, ranks, free_slots);
  for (int rank = 0; rank < ranks; ++rank) {
    for (const int expert : placement.slots(rank)) loads[rank] += rows[expert] / copies[expert];
  }
  std::vector<int> queue;  // an entry per new copy
  for (int expert = 0; expert < experts; ++expert)
    queue.insert(queue.end(), copies[expert] - present[expert], expert);
  std::stable_sort(queue.begin(), queue.end(),
                   [&](int a, int b) { return rows[a] / copies[a] > rows[b] / copies[b]; });
  for (const int expert : queue) {
    int least = -1;
    for (int rank = 0; rank < ranks; ++rank) {
      if (placement.replicas(rank) >= options.replica_slots || placement.SlotOf(expert, rank) >= 0) continue;
      if (least < 0 || loads[rank] < loads[least]) least = rank;
    }
    if (least < 0) continue;
    placement.AddReplica(expert, least);
    loads[least] += rows[expert] / copies[expert];
  }
}

}  // namespace plait::moe
