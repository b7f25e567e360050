#include "parallel/plan/cluster.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/nearest_word.h"
#include "base/status_macros.h"
#include "parallel/plan/cluster.pb.h"

namespace plait::parallel {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

constexpr double kGiga = 1e9, kTera = 1e12, kMicro = 1e-6;
constexpr double kTransfersOfAnActivation = 5;
constexpr const char* kTypes[] = {"float32", "float64", "bfloat16", "float16"};

std::vector<std::string> FieldNames(const Message& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    names.push_back(message.GetDescriptor()->field(i)->name());
  }
  return names;
}

// Keeps the first error; for an unknown field it lists the known ones.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(std::string name) : name_(std::move(name)) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = absl::StrCat(name_, ":", line + 1, ":", column + 1, ": ", message);
    const std::vector<std::string> words = absl::StrSplit(message, '"');
    if (words.size() < 4) return;
    for (const Message* of : {static_cast<const Message*>(&file::Cluster::default_instance()),
                              static_cast<const Message*>(&file::Compute::default_instance()),
                              static_cast<const Message*>(&file::Link::default_instance())}) {
      if (of->GetDescriptor()->full_name() != words[1]) continue;
      text_ = absl::StrCat(name_, ":", line + 1, ": no field \"", words[3], "\"; did you mean ",
                           base::NearestWord(words[3], FieldNames(*of)), "? There are ",
                           absl::StrJoin(FieldNames(*of), ", "));
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string name_, text_;
};

// Checks the fields of a message, each by its name.
class Fields {
 public:
  Fields(std::string file, std::string prefix, const Message& message,
         const TextFormat::ParseInfoTree& places)
      : file_(std::move(file)), prefix_(std::move(prefix)), message_(message), places_(places) {}

  absl::Status Has(const char* name, const char* what) const {
    if (message_.GetReflection()->HasField(message_, FieldOf(name))) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(file_, ": ", prefix_, name, " is missing; expected ", what));
  }
  absl::Status Check(bool right, const char* name, absl::string_view value,
                     absl::string_view expected) const {
    if (right) return absl::OkStatus();
    const auto place = places_.GetLocation(FieldOf(name), -1);
    return absl::InvalidArgumentError(
        absl::StrCat(file_, place.line < 0 ? "" : absl::StrCat(":", place.line + 1), ": ", prefix_, name,
                     " is ", value, "; expected ", expected));
  }
  absl::Status AtLeastOne(const char* name, int value) const {
    return Check(value >= 1, name, absl::StrCat(value), "at least 1");
  }
  absl::Status Positive(const char* name, double value) const {
    return Check(value > 0 && std::isfinite(value), name, absl::StrCat(value), "a positive number");
  }
  absl::Status NotNegative(const char* name, double value) const {
    return Check(value >= 0 && std::isfinite(value), name, absl::StrCat(value), "0 or more");
  }

 private:
  const FieldDescriptor* FieldOf(const char* name) const {
    return message_.GetDescriptor()->FindFieldByName(name);
  }
  std::string file_, prefix_;
  const Message& message_;
  const TextFormat::ParseInfoTree& places_;
};

absl::StatusOr<Link> LinkOf(const std::string& file, const char* name, const file::Link& link,
                            const TextFormat::ParseInfoTree& places) {
  const Fields fields(file, absl::StrCat(name, "."), link, places);
  PLAIT_RETURN_IF_ERROR(fields.Has("gigabytes_per_s", "the bytes per second of a message"));
  PLAIT_RETURN_IF_ERROR(fields.Positive("gigabytes_per_s", link.gigabytes_per_s()));
  PLAIT_RETURN_IF_ERROR(fields.NotNegative("latency_us", link.latency_us()));
  return Link{link.gigabytes_per_s() * kGiga, link.latency_us() * kMicro};
}

absl::Status TakeCompute(const std::string& name, const file::Cluster& parsed,
                         const TextFormat::ParseInfoTree& places, Cluster& cluster) {
  const FieldDescriptor* field = file::Cluster::descriptor()->FindFieldByName("compute");
  if (parsed.compute_size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": compute is missing; expected compute { type: \"float32\" teraflops: ... } for each type"));
  }
  for (int i = 0; i < parsed.compute_size(); ++i) {
    const file::Compute& compute = parsed.compute(i);
    const Fields fields(name, "compute.", compute, *places.GetTreeForNested(field, i));
    const bool known = std::count(std::begin(kTypes), std::end(kTypes), compute.type()) > 0;
    PLAIT_RETURN_IF_ERROR(
        fields.Check(known, "type", absl::StrCat("\"", compute.type(), "\""), absl::StrJoin(kTypes, ", ")));
    PLAIT_RETURN_IF_ERROR(fields.Positive("teraflops", compute.teraflops()));
    PLAIT_RETURN_IF_ERROR(
        fields.NotNegative("activation_gigabytes_per_s", compute.activation_gigabytes_per_s()));
    if (compute.activation_gigabytes_per_s() > 0) {
      cluster.activation_bandwidths[compute.type()] = compute.activation_gigabytes_per_s() * kGiga;
    }
    const bool first = cluster.flops.emplace(compute.type(), compute.teraflops() * kTera).second;
    PLAIT_RETURN_IF_ERROR(
        fields.Check(first, "type", absl::StrCat("\"", compute.type(), "\" again"), "each type once"));
  }
  return absl::OkStatus();
}

absl::Status TakeLinks(const std::string& name, const file::Cluster& parsed,
                       const TextFormat::ParseInfoTree& places, Cluster& cluster) {
  const auto take = [&](const char* field, const file::Link& link, Link& into) -> absl::Status {
    const FieldDescriptor* descriptor = file::Cluster::descriptor()->FindFieldByName(field);
    PLAIT_ASSIGN_OR_RETURN(into, LinkOf(name, field, link, *places.GetTreeForNested(descriptor, -1)));
    return absl::OkStatus();
  };
  const Fields fields(name, "", parsed, places);
  if (cluster.ranks_per_node > 1) {
    PLAIT_RETURN_IF_ERROR(fields.Has("within_node", "a link, for several ranks on a node"));
  }
  if (cluster.nodes > 1) {
    PLAIT_RETURN_IF_ERROR(fields.Has("between_nodes", "a link, for several nodes"));
  }
  if (parsed.has_within_node())
    PLAIT_RETURN_IF_ERROR(take("within_node", parsed.within_node(), cluster.within_node));
  cluster.between_nodes = cluster.within_node;
  if (parsed.has_between_nodes()) {
    PLAIT_RETURN_IF_ERROR(take("between_nodes", parsed.between_nodes(), cluster.between_nodes));
  }
  if (!parsed.has_within_node()) cluster.within_node = cluster.between_nodes;
  return absl::OkStatus();
}

absl::StatusOr<Cluster> ClusterOf(const file::Cluster& parsed, const std::string& name,
                                  const TextFormat::ParseInfoTree& places) {
  const Fields fields(name, "", parsed, places);
  PLAIT_RETURN_IF_ERROR(fields.Has("nodes", "how many there are"));
  PLAIT_RETURN_IF_ERROR(fields.Has("ranks_per_node", "the accelerators of a node, or its cores"));
  PLAIT_RETURN_IF_ERROR(fields.Has("memory_gigabytes_per_rank", "what a rank can allocate"));
  PLAIT_RETURN_IF_ERROR(
      fields.Has("memory_gigabytes_per_s", "bytes that a rank reads and writes per second"));
  PLAIT_RETURN_IF_ERROR(fields.AtLeastOne("nodes", parsed.nodes()));
  PLAIT_RETURN_IF_ERROR(fields.AtLeastOne("ranks_per_node", parsed.ranks_per_node()));
  const int processors =
      parsed.has_processors_per_node() ? parsed.processors_per_node() : parsed.ranks_per_node();
  PLAIT_RETURN_IF_ERROR(fields.AtLeastOne("processors_per_node", processors));
  PLAIT_RETURN_IF_ERROR(fields.Positive("memory_gigabytes_per_rank", parsed.memory_gigabytes_per_rank()));
  PLAIT_RETURN_IF_ERROR(
      fields.NotNegative("offload_gigabytes_per_rank", parsed.offload_gigabytes_per_rank()));
  PLAIT_RETURN_IF_ERROR(fields.Positive("memory_gigabytes_per_s", parsed.memory_gigabytes_per_s()));
  PLAIT_RETURN_IF_ERROR(
      fields.NotNegative("activation_gigabytes_per_s", parsed.activation_gigabytes_per_s()));
  PLAIT_RETURN_IF_ERROR(fields.NotNegative("block_us", parsed.block_us()));
  Cluster cluster = {.name = parsed.name(),
                     .nodes = parsed.nodes(),
                     .ranks_per_node = parsed.ranks_per_node(),
                     .processors_per_node = processors,
                     .memory_bytes = parsed.memory_gigabytes_per_rank() * kGiga,
                     .offload_bytes = parsed.offload_gigabytes_per_rank() * kGiga,
                     .memory_bandwidth = parsed.memory_gigabytes_per_s() * kGiga,
                     .activation_bandwidth = parsed.activation_gigabytes_per_s() * kGiga,
                     .block_seconds = parsed.block_us() * kMicro,
                     .messages_overlap = !parsed.has_messages_overlap() || parsed.messages_overlap()};
  if (cluster.activation_bandwidth == 0) {
    cluster.activation_bandwidth = cluster.memory_bandwidth / kTransfersOfAnActivation;
  }
  PLAIT_RETURN_IF_ERROR(TakeCompute(name, parsed, places, cluster));
  PLAIT_RETURN_IF_ERROR(TakeLinks(name, parsed, places, cluster));
  return cluster;
}

std::string LinkText(const char* name, const Link& link) {
  return absl::StrFormat("%s { gigabytes_per_s: %.4g latency_us: %.4g }\n", name,
                         link.bytes_per_second / kGiga, link.latency_seconds / kMicro);
}

}  // namespace

absl::StatusOr<Cluster> ParseCluster(const std::string& text, const std::string& name) {
  file::Cluster parsed;
  FirstError error(name);
  TextFormat::ParseInfoTree places;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&places);
  if (!parser.ParseFromString(text, &parsed)) return absl::InvalidArgumentError(error.text());
  return ClusterOf(parsed, name, places);
}

absl::StatusOr<Cluster> ReadCluster(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file.is_open() || file.bad()) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  return ParseCluster(text.str(), path);
}

std::string ClusterText(const Cluster& cluster, const std::string& comment) {
  std::string text;
  for (const absl::string_view line : absl::StrSplit(comment, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&text, "# ", line, "\n");
  }
  if (!cluster.name.empty()) absl::StrAppend(&text, "name: \"", absl::CEscape(cluster.name), "\"\n");
  absl::StrAppend(&text, "nodes: ", cluster.nodes, "\nranks_per_node: ", cluster.ranks_per_node,
                  "\nprocessors_per_node: ", cluster.processors_per_node, "\n");
  absl::StrAppendFormat(&text, "memory_gigabytes_per_rank: %.4g\n", cluster.memory_bytes / kGiga);
  if (cluster.offload_bytes > 0) {
    absl::StrAppendFormat(&text, "offload_gigabytes_per_rank: %.4g\n", cluster.offload_bytes / kGiga);
  }
  for (const auto& [type, flops] : cluster.flops) {
    const auto own = cluster.activation_bandwidths.find(type);
    absl::StrAppendFormat(&text, "compute { type: \"%s\" teraflops: %.4g%s }\n", type, flops / kTera,
                          own == cluster.activation_bandwidths.end()
                              ? ""
                              : absl::StrFormat(" activation_gigabytes_per_s: %.4g", own->second / kGiga));
  }
  absl::StrAppendFormat(&text, "memory_gigabytes_per_s: %.4g\nactivation_gigabytes_per_s: %.4g\n",
                        cluster.memory_bandwidth / kGiga, cluster.activation_bandwidth / kGiga);
  if (cluster.block_seconds > 0) {
    absl::StrAppendFormat(&text, "block_us: %.4g\n", cluster.block_seconds / kMicro);
  }
  absl::StrAppend(&text, "messages_overlap: ", cluster.messages_overlap ? "true" : "false", "\n");
  if (cluster.ranks_per_node > 1) absl::StrAppend(&text, LinkText("within_node", cluster.within_node));
  if (cluster.nodes > 1) absl::StrAppend(&text, LinkText("between_nodes", cluster.between_nodes));
  return text;
}

}  // namespace plait::parallel
