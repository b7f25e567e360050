#include "parallel/moe/exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/host_name.h"
#include "comm/gathered_text.h"

namespace plait::moe {
namespace {

std::vector<int> NodesOf(const comm::Communicator& comm) {
  std::map<std::string, int> numbers;
  std::vector<int> nodes;
  for (const std::string& host : comm::GatherText(comm, base::HostName())) {
    nodes.push_back(numbers.try_emplace(host, static_cast<int>(numbers.size())).first->second);
  }
  return nodes;
}

std::int64_t SumOf(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

template <typename T>
at::Tensor TensorOf(std::vector<T>& values, at::IntArrayRef shape) {
  return at::from_blob(values.data(), shape, c10::CppTypeToScalarType<T>::value);
}

// A place in a message: the row's index in the message, the rank and the slot.
constexpr std::int64_t kPlaceFields = 3;

std::vector<std::int32_t> Exchanged(const comm::Communicator& comm, std::vector<std::int32_t>& fields,
                                    const std::vector<std::int64_t>& sent,
                                    const std::vector<std::int64_t>& received) {
  std::vector<std::int32_t> result(SumOf(received) * kPlaceFields);
  at::Tensor out = TensorOf(result, {SumOf(received), kPlaceFields});
  comm::AllToAllV(comm, TensorOf(fields, {SumOf(sent), kPlaceFields}), sent, out, received);
  return result;
}

}  // namespace

ExchangeRanks::ExchangeRanks(const comm::Communicator& comm) : ExchangeRanks(comm, NodesOf(comm)) {}

ExchangeRanks::ExchangeRanks(comm::Communicator comm, std::vector<int> nodes)
    : comm_(std::move(comm)), nodes_(std::move(nodes)) {
  PLAIT_CHECK(static_cast<int>(nodes_.size()) == comm_.size()) << nodes_.size() << " nodes of ranks";
  ranks_of_node_.resize(*std::max_element(nodes_.begin(), nodes_.end()) + 1);
  for (int rank = 0; rank < comm_.size(); ++rank) ranks_of_node_[nodes_[rank]].push_back(rank);
  two_level_ = ranks_of_node_.size() > 1 && ranks_of_node_.size() < nodes_.size();
}

int ExchangeRanks::RelayTo(int rank) const {
  const std::vector<int>& own = ranks_of_node_[nodes_[comm_.rank()]];
  const std::vector<int>& there = ranks_of_node_[nodes_[rank]];
  const auto place = std::find(own.begin(), own.end(), comm_.rank()) - own.begin();
  return there[place % static_cast<std::ptrdiff_t>(there.size())];
}

RowExchange::RowExchange(const ExchangeRanks& ranks, RowPlaces places, std::int64_t rows)
    : comm_(ranks.comm()), received_(std::move(places)), received_rows_(rows) {
  if (comm_.size() == 1) return;
  std::vector<int> relays, themselves;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    themselves.push_back(rank);
    relays.push_back(ranks.RelayTo(rank));
  }
  if (ranks.two_level()) hops_.push_back(MakeHop(comm_, relays, received_, received_rows_));
  hops_.push_back(MakeHop(comm_, themselves, received_, received_rows_));
}

// `next`: for each destination the rank of this hop. `places` and `rows` become those after the hop.
RowExchange::Hop RowExchange::MakeHop(const comm::Communicator& comm, const std::vector<int>& next,
                                      RowPlaces& places, std::int64_t& rows) {
  const int ranks = comm.size();
  struct Message {
    RowNumbers rows, places;
    std::vector<std::int32_t> fields;
  };
  std::vector<Message> messages(ranks);
  for (std::size_t a = 0; a < places.size(); ++a) {
    Message& to = messages[next[places.ranks[a]]];
    if (to.rows.empty() || to.rows.back() != places.rows[a]) to.rows.push_back(places.rows[a]);
    to.places.push_back(static_cast<std::int64_t>(a));
    to.fields.insert(to.fields.end(),
                     {static_cast<std::int32_t>(to.rows.size()) - 1, places.ranks[a], places.slots[a]});
  }
  Hop hop;
  hop.rows = rows;
  std::vector<std::int32_t> fields;
  std::vector<std::int64_t> counts, others(2 * ranks);
  for (const Message& message : messages) {
    hop.send_rows.insert(hop.send_rows.end(), message.rows.begin(), message.rows.end());
    hop.send_places.insert(hop.send_places.end(), message.places.begin(), message.places.end());
    fields.insert(fields.end(), message.fields.begin(), message.fields.end());
    hop.sent_rows.push_back(static_cast<std::int64_t>(message.rows.size()));
    hop.sent_places.push_back(static_cast<std::int64_t>(message.places.size()));
    counts.insert(counts.end(), {hop.sent_rows.back(), hop.sent_places.back()});
  }
  comm.AllToAll(comm::ConstBufferOf(absl::MakeConstSpan(counts)), comm::BufferOf(absl::MakeSpan(others)));
  for (int rank = 0; rank < ranks; ++rank) {
    hop.received_rows.push_back(others[2 * rank]);
    hop.received_places.push_back(others[2 * rank + 1]);
  }
  const std::vector<std::int32_t> received = Exchanged(comm, fields, hop.sent_places, hop.received_places);
  places = {};
  std::int64_t before = 0;  // rows received from lower ranks
  auto field = received.begin();
  for (int rank = 0; rank < ranks; before += hop.received_rows[rank++]) {
    for (std::int64_t i = 0; i < hop.received_places[rank]; ++i, field += kPlaceFields) {
      places.rows.push_back(before + field[0]);
      places.ranks.push_back(field[1]);
      places.slots.push_back(field[2]);
    }
  }
  rows = before;
  return hop;
}

RowExchange::Pending RowExchange::StartDispatch(const at::Tensor& rows) const {
  Pending pending;
  pending.exchange_ = this;
  if (hops_.empty()) {
    pending.received_ = rows;
    return pending;
  }
  const Hop& hop = hops_[0];
  pending.sent_ = GatherRows(rows, hop.send_rows);
  pending.received_ = at::empty({SumOf(hop.received_rows), rows.size(1)}, rows.options());
  pending.work_ =
      comm::AllToAllVAsync(comm_, pending.sent_, hop.sent_rows, pending.received_, hop.received_rows);
  return pending;
}

RowExchange::Pending RowExchange::StartCombine(const at::Tensor& results) const {
  Pending pending;
  pending.exchange_ = this;
  pending.combines_ = true;
  if (hops_.empty()) {
    pending.received_ = results;
    return pending;
  }
  pending.sent_ = results;
  for (std::size_t h = hops_.size(); h-- > 0;) {
    const Hop& hop = hops_[h];
    pending.received_ = at::empty({SumOf(hop.sent_rows), results.size(1)}, results.options());
    pending.work_ =
        comm::AllToAllVAsync(comm_, pending.sent_, hop.received_rows, pending.received_, hop.sent_rows);
    if (h == 0) break;
    pending.work_.Wait();
    pending.sent_ = SumRows(pending.received_, hop.send_rows, hop.rows);
  }
  return pending;
}

at::Tensor RowExchange::Pending::Wait() {
  work_.Wait();
  const std::vector<Hop>& hops = exchange_->hops_;
  if (hops.empty()) return received_;
  if (combines_) return SumRows(received_, hops[0].send_rows, hops[0].rows);
  for (std::size_t h = 1; h < hops.size(); ++h) {
    sent_ = GatherRows(received_, hops[h].send_rows);
    received_ = at::empty({SumOf(hops[h].received_rows), sent_.size(1)}, sent_.options());
    comm::AllToAllV(exchange_->comm_, sent_, hops[h].sent_rows, received_, hops[h].received_rows);
  }
  return received_;
}

at::Tensor RowExchange::DispatchPlaces(const at::Tensor& values) const {
  at::Tensor result = values;
  for (const Hop& hop : hops_) {
    const at::Tensor sent = GatherRows(result.unsqueeze(1), hop.send_places);
    at::Tensor received = at::empty({SumOf(hop.received_places), 1}, values.options());
    comm::AllToAllV(comm_, sent, hop.sent_places, received, hop.received_places);
    result = received.squeeze(1);
  }
  return result;
}

at::Tensor RowExchange::CombinePlaces(const at::Tensor& values) const {
  at::Tensor result = values;
  for (auto hop = hops_.rbegin(); hop != hops_.rend(); ++hop) {
    at::Tensor received = at::empty({SumOf(hop->sent_places), 1}, values.options());
    comm::AllToAllV(comm_, result.unsqueeze(1), hop->received_places, received, hop->sent_places);
    // A permutation: each place was sent once.
    result = SumRows(received, hop->send_places, SumOf(hop->sent_places)).squeeze(1);
  }
  return result;
}

std::int64_t RowExchange::sent_rows() const {
  std::int64_t sent = 0;
  for (const Hop& hop : hops_) sent += SumOf(hop.sent_rows) - hop.sent_rows[comm_.rank()];
  return sent;
}

}  // namespace plait::moe
