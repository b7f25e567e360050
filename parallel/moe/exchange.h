// The way of rows from the ranks that have them to the slots that compute them, and back.
//
//   RowPlaces places;                                    // of every row: to which slots of which ranks
//   const RowExchange exchange(ranks, places, rows.size(0));              // collective
//   at::Tensor received = exchange.Dispatch(rows);        // (exchange.received_rows(), width)
//   at::Tensor combined = exchange.Combine(results);      // its transpose: (rows, width), summed over ranks
//
// A row travels once to each rank that computes it, however many of its experts are there. Where several nodes have several
// ranks each, it travels once to each node, to the rank that stands for this one there, and from there to the
// others of the node; results are summed on the node and come back once (the two-level all-to-all of Rajbhandari et al.,
// arXiv:2201.05596, section 5.2, without duplicates). The transpose of a dispatch is a combine: the backward of each is the
// other. Of a group of one nothing is moved.
//
// Received rows are in the order of the ranks from which they come, and of their rows; sums are in a fixed order. Every rank of
// the group makes the same calls. Not recorded by autograd.
#ifndef PLAIT_PARALLEL_MOE_EXCHANGE_H_
#define PLAIT_PARALLEL_MOE_EXCHANGE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "comm/tensor_collectives.h"
#include "parallel/moe/rows.h"

namespace plait::moe {

// The ranks of an expert-parallel group, and on which nodes they are.
class ExchangeRanks {
 public:
  ExchangeRanks() : ExchangeRanks(comm::Communicator::Self(), {0}) {}
  // Collective: ranks with the same host name are on one node.
  explicit ExchangeRanks(const comm::Communicator& comm);
  // `nodes`: of each rank, the same on all ranks. Local.
  ExchangeRanks(comm::Communicator comm, std::vector<int> nodes);

  const comm::Communicator& comm() const { return comm_; }
  // Several nodes, of which one has several ranks.
  bool two_level() const { return two_level_; }
  // Which rank of `rank`'s node receives what this rank sends there.
  int RelayTo(int rank) const;

 private:
  comm::Communicator comm_;
  std::vector<int> nodes_;
  std::vector<std::vector<int>> ranks_of_node_;
  bool two_level_ = false;
};

// One entry for each row and place that it goes to, sorted by row.
struct RowPlaces {
  RowNumbers rows;
  std::vector<std::int32_t> ranks, slots;
  std::size_t size() const { return rows.size(); }
};

class RowExchange {
 public:
  // Collective.
  RowExchange(const ExchangeRanks& ranks, RowPlaces places, std::int64_t rows);

  // What arrives here: the slots of received rows; sorted by received row.
  const RowPlaces& received() const { return received_; }
  std::int64_t received_rows() const { return received_rows_; }

  // Rows under way; a group of one, and two levels, are there at once.
  class Pending {
   public:
    at::Tensor Wait();

   private:
    friend class RowExchange;
    const RowExchange* exchange_ = nullptr;  // outlives this
    bool combines_ = false;
    at::Tensor sent_, received_;
    comm::TensorWork work_;
  };

  // (rows, width) -> (received_rows(), width). Collective, as the ones below.
  Pending StartDispatch(const at::Tensor& rows) const;
  at::Tensor Dispatch(const at::Tensor& rows) const { return StartDispatch(rows).Wait(); }
  // (received_rows(), width) -> (rows, width): sums over what comes back for each row.
  Pending StartCombine(const at::Tensor& results) const;
  at::Tensor Combine(const at::Tensor& results) const { return StartCombine(results).Wait(); }
  // A value for each place -> for each received place, and back.
  at::Tensor DispatchPlaces(const at::Tensor& values) const;
  at::Tensor CombinePlaces(const at::Tensor& values) const;

  // Rows that this rank sends to others in one dispatch, to ranks and to relays.
  std::int64_t sent_rows() const;

 private:
  // One all-to-all.
  struct Hop {
    RowNumbers send_rows, send_places;  // which go, by destination
    std::vector<std::int64_t> sent_rows, received_rows, sent_places, received_places;  // by rank
    std::int64_t rows = 0;                                                             // here, before it
  };
  static Hop MakeHop(const comm::Communicator& comm, const std::vector<int>& next, RowPlaces& places,
                     std::int64_t& rows);

  comm::Communicator comm_;
  std::vector<Hop> hops_;
  RowPlaces received_;
  std::int64_t received_rows_ = 0;
};

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_EXCHANGE_H_
