// Dispatch and combine: sends rows from the ranks that have them to the slots that compute them, and the results back.
//
//   RowPlaces places;                                    // for every row: to which slots of which ranks
//   const RowExchange exchange(ranks, places, rows.size(0));              // collective
//   at::Tensor received = exchange.Dispatch(rows);        // (exchange.received_rows(), width)
//   at::Tensor combined = exchange.Combine(results);      // its transpose: (rows, width), summed over ranks
//
// A row is sent once to each rank that computes it, however many of its experts are there. With several nodes of which
// one has several ranks, it is sent once to each node, to a relay rank, and from there to the other ranks of the node;
// results are summed on the node and sent back once (the two-level all-to-all of Rajbhandari et al., arXiv:2201.05596,
// section 5.2, without duplicates). Combine is the transpose of dispatch: each is the backward of the other. A group of
// one moves nothing.
//
// Received rows are ordered by the rank that sent them, then by its rows; sums are in a fixed order. Collective over
// the group. Not recorded by autograd.
#ifndef PLAIT_PARALLEL_MOE_EXCHANGE_H_
#define PLAIT_PARALLEL_MOE_EXCHANGE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "comm/tensor_collectives.h"
#include "parallel/moe/rows.h"

namespace plait::moe {

// The ranks of an expert-parallel group, and their nodes.
class ExchangeRanks {
 public:
  ExchangeRanks() : ExchangeRanks(comm::Communicator::Self(), {0}) {}
  // Collective: ranks with the same host name are on the same node.
  explicit ExchangeRanks(const comm::Communicator& comm);
  // Local. `nodes`: node of each rank, from 0 on; the same on all ranks.
  ExchangeRanks(comm::Communicator comm, std::vector<int> nodes);

  const comm::Communicator& comm() const { return comm_; }
  // True if there are several nodes of which one has several ranks.
  bool two_level() const { return two_level_; }
  // The rank on `rank`'s node that receives what this rank sends to that node.
  int RelayTo(int rank) const;

 private:
  comm::Communicator comm_;
  std::vector<int> nodes_;
  std::vector<std::vector<int>> ranks_of_node_;
  bool two_level_ = false;
};

// One entry for each pair of a row and a place (rank, slot) that it goes to, sorted by row.
struct RowPlaces {
  RowNumbers rows;
  std::vector<std::int32_t> ranks, slots;
  std::size_t size() const { return rows.size(); }
};

class RowExchange {
 public:
  // Collective.
  RowExchange(const ExchangeRanks& ranks, RowPlaces places, std::int64_t rows);

  // The places on this rank of received rows, sorted by received row.
  const RowPlaces& received() const { return received_; }
  std::int64_t received_rows() const { return received_rows_; }

  // Rows in flight. On a group of one and with two levels the exchange is complete at once.
  class Pending {
   public:
    at::Tensor Wait();

   private:
    friend class RowExchange;
    const RowExchange* exchange_ = nullptr;  // must outlive this
    bool combines_ = false;
    at::Tensor sent_, received_;
    comm::TensorWork work_;
  };

  // (rows, width) -> (received_rows(), width). Collective, like all below up to CombinePlaces.
  Pending StartDispatch(const at::Tensor& rows) const;
  at::Tensor Dispatch(const at::Tensor& rows) const { return StartDispatch(rows).Wait(); }
  // (received_rows(), width) -> (rows, width): sums the results of each row.
  Pending StartCombine(const at::Tensor& results) const;
  at::Tensor Combine(const at::Tensor& results) const { return StartCombine(results).Wait(); }
  // One value per place -> one per received place, and back.
  at::Tensor DispatchPlaces(const at::Tensor& values) const;
  at::Tensor CombinePlaces(const at::Tensor& values) const;

  // Local. Rows that this rank sends to others in one dispatch, over all hops.
  std::int64_t sent_rows() const;

 private:
  // One all-to-all.
  struct Hop {
    RowNumbers send_rows, send_places;  // indices, by destination
    std::vector<std::int64_t> sent_rows, received_rows, sent_places, received_places;  // counts by rank
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
