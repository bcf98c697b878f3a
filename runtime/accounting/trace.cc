#include "runtime/accounting/trace.h"

#include <algorithm>
#include <iterator>
#include <variant>

#include "format/overloaded.h"
#include "runtime/accounting/define_operations.h"
#include "runtime/cached_rows.h"

namespace kinglet {
namespace {

size_t BinOf(const EmbedRow& embedding, uint32_t id) {
  const auto after =
      std::upper_bound(embedding.bins.begin(), embedding.bins.end(), id,
                       [](uint32_t token, const EmbeddingBin& bin) { return token < bin.first; });
  return static_cast<size_t>(after - embedding.bins.begin()) - 1;
}

// The arithmetic of a full distribution, as runtime/queries counts it for a query. A token takes
// two differences, a comparison, the sum with the cluster's own log p, which takes two differences
// for each tail, and the sum with log(1 - lambda); the cache's pairs are added up token by token. A
// class takes two differences.
OperationTally FullDistribution(const Plan& plan, uint64_t position) {
  OperationTally tally;
  for (size_t i = 0; i < plan.clusters.size(); ++i) {
    const double tokens = plan.clusters[i].size;
    tally += {0, (plan.cache ? 4 : 3) * tokens + (i == 0 ? 0 : 2), tokens};
  }
  if (plan.cache) {
    const double pairs =
        Real(CachePairs(position, plan.cache->capacity, plan.cache->first_position));
    tally += {0, pairs, pairs};
  }
  if (plan.classifier) tally += {0, 2 * Real(plan.buffer(plan.classifier->logits).count), 0};
  return tally;
}

bool HasPassForOnce(const EncoderPlan& encoder) {
  return std::any_of(encoder.sweeps.begin(), encoder.sweeps.end(),
                     [](const EncoderSweep& sweep) { return sweep.order == SourceOrder::kOnce; });
}

// Whether a token of the source runs a node of the encoder. A sweep for one token runs on the
// first.
bool RunsOnSource(const Plan& plan, const TokenPath& path, size_t node) {
  if (path.position == 0) return true;
  return std::none_of(
      plan.encoder->sweeps.begin(), plan.encoder->sweeps.end(), [&](const EncoderSweep& sweep) {
        return sweep.order == SourceOrder::kOnce && node >= sweep.begin && node < sweep.end;
      });
}

}  // namespace

const EmbedRow& EmbeddingOf(const Plan& plan) {
  return std::get<EmbedRow>(plan.nodes[EmbeddingNode(plan)].op);
}

const EmbedRow& SourceEmbeddingOf(const Plan& plan) {
  size_t node = plan.encoder->sweeps.front().begin;
  while (!std::holds_alternative<EmbedRow>(plan.nodes[node].op)) ++node;
  return std::get<EmbedRow>(plan.nodes[node].op);
}

bool IsOfEncoder(const Plan& plan, size_t node) {
  return plan.encoder && node >= plan.encoder->sweeps.front().begin;
}

uint64_t SteadyPosition(const Plan& plan) {
  uint64_t position = 0;
  for (const Node& node : plan.nodes) {
    position = std::max(
        position,
        std::visit(
            Overloaded{
                [](const WindowAttention& op) { return uint64_t{op.window}; },
                [](const CacheWeights& op) {
                  return std::max(uint64_t{op.capacity}, op.first_position);
                },
                []<OneOf<CacheAppend, EmbedRow, LayerNorm, MatVec, PartialProducts, CodedSums,
                         CodedProduct, Quantise, Add, AddScalar, AddPositionRow, AddSinusoids,
                         AddQueryBias, LogSumExp, LstmGates, GruGates, RnnGates, QrnnGates,
                         BagAppend, BagFeatures, ScaleShiftRelu, StoreRow, LoadRow, SourceAttention,
                         RootMeanSquareNorm, ApplyActivation, Join>
                       AnyPosition>(const AnyPosition&) { return uint64_t{0}; }},
            node.op));
  }
  return position;
}

size_t BinOf(const Plan& plan, uint32_t id) { return BinOf(EmbeddingOf(plan), id); }

bool RunsOn(const Plan& plan, const TokenPath& path, size_t node) {
  const bool encodes = IsOfEncoder(plan, node);
  if (encodes || path.encodes) return encodes && path.encodes && RunsOnSource(plan, path, node);
  const auto after = std::upper_bound(
      plan.clusters.begin(), plan.clusters.end(), node,
      [](size_t s, const ClusterPlan& cluster) { return s < cluster.nodes.begin; });
  if (after == plan.clusters.begin() || node >= std::prev(after)->nodes.end) return true;
  return path.clusters.Contains(static_cast<size_t>(after - plan.clusters.begin()) - 1);
}

std::vector<uint64_t> BinCounts(const Plan& plan, std::span<const uint32_t> ids) {
  std::vector<uint64_t> counts(EmbeddingOf(plan).bins.size());
  for (const uint32_t id : ids) ++counts[BinOf(plan, id)];
  return counts;
}

uint64_t Trace::tokens() const {
  uint64_t sum = 0;
  for (const auto& [path, count] : paths) sum += count;
  return sum;
}

Trace& Trace::operator+=(const Trace& more) {
  for (const auto& [path, count] : more.paths) paths[path] += count;
  distribution += more.distribution;
  return *this;
}

TokenPath PathOf(const Plan& plan, uint64_t position, uint32_t id, const ClusterSet& clusters,
                 bool row_is_cached, uint64_t source_length) {
  TokenPath path{std::min(position, SteadyPosition(plan)), BinOf(plan, id), clusters, row_is_cached,
                 source_length};
  if (!row_is_cached) path.letters = LettersOf(plan, id);
  return path;
}

FullTracer::FullTracer(const Plan& plan, uint64_t source_length)
    : plan_(&plan),
      source_length_(source_length),
      clusters_(ClusterSet::First(plan.clusters.size())),
      rows_(plan) {}

void FullTracer::Step(uint32_t id) {
  ++trace_.paths[PathOf(*plan_, position_, id, clusters_, rows_.Step(id), source_length_)];
  trace_.distribution += FullDistribution(*plan_, position_);
  ++position_;
}

Trace FullTrace(const Plan& plan, std::span<const uint32_t> ids, uint64_t source_length) {
  FullTracer tracer(plan, source_length);
  for (const uint32_t id : ids) tracer.Step(id);
  return tracer.trace();
}

Trace EncoderTrace(const Plan& plan, std::span<const uint32_t> source) {
  const EmbedRow& embedding = SourceEmbeddingOf(plan);
  CachedRows rows(embedding);
  Trace trace;
  const bool first_differs = HasPassForOnce(*plan.encoder);
  bool first = true;
  for (const uint32_t id : source) {
    TokenPath path;
    path.position = first_differs && !first ? 1 : 0;
    first = false;
    path.row_is_cached = rows.Step(id);
    path.bin = BinOf(embedding, id);
    path.source_length = source.size();
    path.encodes = true;
    ++trace.paths[path];
  }
  return trace;
}

Trace SteadyFullTrace(const Plan& plan, std::span<const uint64_t> bin_counts) {
  const uint64_t steady = SteadyPosition(plan);
  const ClusterSet clusters = ClusterSet::First(plan.clusters.size());
  Trace trace;
  for (size_t bin = 0; bin < bin_counts.size(); ++bin) {
    if (bin_counts[bin] == 0) continue;
    TokenPath path{steady, bin, clusters};
    const EmbeddingBin& of = EmbeddingOf(plan).bins[bin];
    if (of.spelling) path.letters = MeanLetters(plan, of);
    trace.paths[path] = bin_counts[bin];
    trace.distribution += FullDistribution(plan, steady) * Real(bin_counts[bin]);
  }
  return trace;
}

}  // namespace kinglet
