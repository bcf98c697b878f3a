#include "kernels/cuda/queries.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>
#include <variant>

#include "format/overloaded.h"
#include "kernels/cluster_of.h"
#include "kernels/functions.h"

namespace kinglet::cuda {
namespace {

// Shared memory of a thread block whose logits are computed twice: two such thread blocks fit a
// multiprocessor.
constexpr uint64_t kMaxSharedBytes = 98304;

// Whether the operation writes to the buffer.
class WritesTo {
 public:
  explicit WritesTo(BufferId id) : id_(id) {}
  void Reads(BufferId /*id*/) {}
  void Writes(BufferId id) { found_ = found_ || id == id_; }
  void Weight(WeightId /*id*/) {}
  void Codes(WeightId /*id*/) {}
  bool found() const { return found_; }

 private:
  const BufferId id_;
  bool found_ = false;
};
bool Writes(const Op& op, BufferId id) {
  WritesTo writes(id);
  std::visit([&](const auto& operation) { operation.Operands(writes); }, op);
  return writes.found();
}

struct FusedProduct {
  size_t plan_node;
  IntegerProduct product;
};

// The integer product that computes the logits of all tokens of a cluster, if it may be computed
// twice instead of stored. A head that tails follow is small, and its logits are read again.
std::optional<FusedProduct> FindProduct(const Plan& plan, const ClusterPlan& cluster,
                                        const std::vector<std::vector<Node>>& bound,
                                        const Logits& logits, const Device& device) {
  const bool is_head = cluster.first == 0 && plan.clusters.size() > 1;
  if (is_head) return std::nullopt;
  std::optional<FusedProduct> found;
  for (size_t i = cluster.nodes.begin; i < cluster.nodes.end; ++i) {
    if (!Writes(plan.nodes[i].op, cluster.logits)) continue;
    const auto* product = std::get_if<MatVec>(&plan.nodes[i].op);
    if (product == nullptr) return std::nullopt;
    if (product->y_offset != 0) continue;
    const Node& last = bound[i].back();
    if (!IsKind<IntegerProduct>(last)) return std::nullopt;
    found = {i, ArgumentsOf<IntegerProduct>(last)};
  }
  if (!found || found->product.matrix.rows < cluster.size || logits.count < kShortSum) {
    return std::nullopt;
  }
  const IntegerProduct& product = found->product;
  if (product.matrix.narrow()) {
    const bool as_halves = device.HasExactHalves() && product.fits_halves && !product.finish.relu;
    return as_halves ? found : std::nullopt;
  }
  const SumsOfProducts<false> fused = {product, logits};
  const bool fits = fused.SharedBytes() <= std::min(kMaxSharedBytes, device.SharedBytesOfBlock()) &&
                    fused.PaddedColumns() <= RankedTokensPlan::kMostColumns;
  return fits ? found : std::nullopt;
}

// Where two nodes put and take a vector.
bool IsAt(const Place& a, const Place& b) { return a.space == b.space && a.offset == b.offset; }

// Takes device nodes one after the other.
class NodeReader {
 public:
  explicit NodeReader(std::span<const Node> nodes) : nodes_(nodes) {}
  // The next node, if it is a T.
  template <class T>
  std::optional<T> Take() {
    if (nodes_.empty() || !IsKind<T>(nodes_[0])) return std::nullopt;
    const T taken = ArgumentsOf<T>(nodes_[0]);
    nodes_ = nodes_.subspan(1);
    return taken;
  }
  bool empty() const { return nodes_.empty(); }

 private:
  std::span<const Node> nodes_;
};

// A cluster whose logits are those of quantised matrices, of the hidden state's codes or of its
// projection in 15-bit fixed point.
std::optional<ClusterLogits> LogitsAtOnce(const ClusterPlan& cluster, const Logits& logits,
                                          std::span<const Node> nodes) {
  ClusterLogits found{};
  found.tokens = {cluster.first, cluster.size};
  found.logits = logits;
  NodeReader reader(nodes);
  std::optional<IntegerProduct> product = reader.Take<IntegerProduct>();
  if (const auto fixed = reader.Take<FixedPoint>(); product && fixed) {
    if (!IsAt(fixed->x, product->y) || product->matrix.rows > kSumTile) return std::nullopt;
    found.projects = true;
    found.projection = *product;
    product = reader.Take<IntegerProduct>();
    if (product && !IsAt(product->x.place, fixed->codes)) return std::nullopt;
  }
  if (!product || !IsAt(product->y, logits.x)) return std::nullopt;
  found.product = *product;
  const uint32_t rows = product->matrix.rows;
  // Of the projection, each product has a vector in fixed point of its own.
  const auto again = reader.Take<FixedPoint>();
  if (again && (!found.projects || !IsAt(again->x, found.projection.y))) return std::nullopt;
  if (const auto rest = reader.Take<IntegerProduct>()) {
    const Place x = again ? again->codes : product->x.place;
    // The other rows are all in the last tile: a tile takes them from their first on.
    const bool follows = IsAt(rest->y, logits.x.Plus(rows * sizeof(float))) &&
                         IsAt(rest->x.place, x) && logits.TileCount() == rows / kSumTile + 1;
    if (!follows) return std::nullopt;
    found.rest = *rest;
  }
  const bool normalised = reader.Take<SumsOfTiles>() && reader.Take<LogOfSum>() && reader.empty();
  if (!normalised || rows + found.rest.matrix.rows != logits.count) return std::nullopt;
  return found;
}

// Shared memory of a thread block that answers a query.
uint64_t SharedBytesOfAnswers(const RankedTokensPlan& plan) {
  RankTokens best{};
  TokenLogProbability given{};
  best.plan = given.plan = plan;
  return std::max(best.SharedBytes(), given.SharedBytes());
}

}  // namespace

Result<Queries> Queries::Bind(const Plan& plan, const std::vector<std::vector<Node>>& bound,
                              const Device& device, Binder& binder) {
  const uint64_t max_shared_bytes = device.SharedBytesOfBlock();
  Queries queries;
  std::vector<RankedCluster> stored, fused;
  for (const ClusterPlan& cluster : plan.clusters) {
    queries.stored_.firsts.push_back(static_cast<uint32_t>(queries.stored_.nodes.size()));
    queries.fused_.firsts.push_back(static_cast<uint32_t>(queries.fused_.nodes.size()));
    const Logits logits = binder.LogitsOf(cluster.normaliser);
    RankedCluster ranked{};
    ranked.first = cluster.first;
    ranked.size = cluster.size;
    ranked.logits = logits;
    ranked.stored = true;
    if (!stored.empty()) {
      ranked.parent = binder.At(plan.clusters[0].logits).Plus(cluster.parent_logit * sizeof(float));
    }
    stored.push_back(ranked);
    queries.first_tokens_.push_back(cluster.first);
    const std::optional<FusedProduct> product = FindProduct(plan, cluster, bound, logits, device);
    if (product) {
      ranked.stored = false;
      ranked.product = product->product;
    }
    fused.push_back(ranked);
    for (size_t i = cluster.nodes.begin; i < cluster.nodes.end; ++i) {
      const std::vector<Node>& nodes = bound[i];
      queries.stored_.nodes.insert(queries.stored_.nodes.end(), nodes.begin(), nodes.end());
      std::vector<Node>& to = queries.fused_.nodes;
      const bool normalises = Writes(plan.nodes[i].op, cluster.normaliser);
      if (product && i == product->plan_node) {
        // The last node computes the product, the others its vector.
        to.insert(to.end(), nodes.begin(), nodes.end() - 1);
      } else if (!product || !normalises) {
        to.insert(to.end(), nodes.begin(), nodes.end());
      }
    }
    if (product) {
      const IntegerProduct& of = product->product;
      queries.fused_.nodes.push_back(of.matrix.narrow()
                                         ? MakeNode(SumsOfProducts<true>{of, logits})
                                         : MakeNode(SumsOfProducts<false>{of, logits}));
      queries.fused_.nodes.push_back(MakeNode(LogOfSum{{}, logits}));
    }
  }
  if (plan.clusters.empty()) return queries;
  for (Way* const way : {&queries.stored_, &queries.fused_}) {
    way->firsts.push_back(static_cast<uint32_t>(way->nodes.size()));
    KINGLET_ASSIGN_OR_RETURN(way->nodes_on_device,
                             binder.weights.Constants(std::span<const Node>(way->nodes)));
  }
  KINGLET_ASSIGN_OR_RETURN(queries.stored_.clusters,
                           binder.weights.Constants(std::span<const RankedCluster>(stored)));
  KINGLET_ASSIGN_OR_RETURN(queries.fused_.clusters,
                           binder.weights.Constants(std::span<const RankedCluster>(fused)));

  RankedTokensPlan& ranking = queries.plan_;
  ranking.cluster_count = static_cast<uint32_t>(stored.size());
  for (const RankedCluster& cluster : stored) {
    ranking.sum_tiles += internal::LaneTokens::TilesOf(cluster);
  }
  if (plan.cache) {
    queries.cache_nodes_ = plan.cache->nodes;
    RankedCache& cache = ranking.cache;
    cache.present = true;
    cache.empty_is_normalised = plan.cache->first_position > 1;
    cache.capacity = plan.cache->capacity;
    cache.ring = binder.Count(plan.cache->tokens);
    cache.first_position = plan.cache->first_position;
    cache.tokens = binder.At(plan.cache->tokens);
    cache.weights = binder.At(plan.cache->weights);
    cache.total = binder.At(plan.cache->total);
    cache.keep = static_cast<float>(1.0 - plan.cache->lambda);
    cache.lambda = static_cast<float>(plan.cache->lambda);
    cache.log_keep = Log(cache.keep);
  }
  KINGLET_RETURN_IF_ERROR(queries.BindAtOnce(plan, bound, device, binder));
  queries.can_rank_ = ranking.cluster_count <= RankedTokensPlan::kMaxClusters &&
                      ranking.sum_tiles <= RankedTokensPlan::kMaxSumTiles &&
                      ranking.cache.capacity <= RankedTokensPlan::kMaxPairs &&
                      SharedBytesOfAnswers(ranking) <= max_shared_bytes;
  // How many tokens, at least, have a log-probability above minus infinity, since each pair of the
  // cache changes one token.
  const uint32_t outside = plan.vocabulary_size > ranking.cache.capacity
                               ? plan.vocabulary_size - ranking.cache.capacity
                               : 0;
  queries.max_tokens_ = std::min(outside, RankedTokens::kMost);
  return queries;
}

Status Queries::BindAtOnce(const Plan& plan, const std::vector<std::vector<Node>>& bound,
                           const Device& device, Binder& binder) {
  if (device.IsNodeByNode()) return Status();
  std::vector<ClusterLogits> clusters;
  ComputeLogits compute{};
  NormaliseClusters normalise{};
  for (const ClusterPlan& cluster : plan.clusters) {
    std::vector<Node> nodes;
    for (size_t i = cluster.nodes.begin; i < cluster.nodes.end; ++i) {
      nodes.insert(nodes.end(), bound[i].begin(), bound[i].end());
    }
    const Logits logits = binder.LogitsOf(cluster.normaliser);
    const std::optional<ClusterLogits> found = LogitsAtOnce(cluster, logits, nodes);
    if (!found) return Status();
    clusters.push_back(*found);
    compute.tiles += logits.TileCount();
    compute.columns = std::max({compute.columns, found->projection.matrix.cols,
                                found->product.matrix.cols, found->rest.matrix.cols});
    normalise.most_tiles = std::max(normalise.most_tiles, logits.TileCount());
  }
  if (plan.cache) {
    const std::vector<Node>& nodes = bound[plan.cache->nodes.begin];
    NodeReader reader(nodes);
    const auto products = reader.Take<CacheProducts>();
    if (!products || !reader.Take<CacheTotal>() || !reader.empty()) return Status();
    compute.has_cache = normalise.has_cache = true;
    compute.cache = *products;
    compute.cache.tokens = 1;
    normalise.cache = products->pairs;
  }
  if (std::max(compute.SharedBytes(), normalise.SharedBytes()) > device.SharedBytesOfBlock()) {
    return Status();
  }
  QueryClusters of{nullptr, static_cast<uint32_t>(clusters.size()), false};
  KINGLET_ASSIGN_OR_RETURN(of.clusters,
                           binder.weights.Constants(std::span<const ClusterLogits>(clusters)));
  for (const bool only_asked : {false, true}) {
    of.only_asked = only_asked;
    compute.of = normalise.of = of;
    at_once_.push_back(MakeNode(compute));
    at_once_.push_back(MakeNode(normalise));
  }
  KINGLET_ASSIGN_OR_RETURN(at_once_on_device_,
                           binder.weights.Constants(std::span<const Node>(at_once_)));
  return Status();
}

NodeList Queries::NodesAtOnce(bool only_asked, uint32_t lanes) const {
  if (at_once_.empty() || lanes > kFewLanes) return {};
  const uint32_t first = only_asked ? kNodesAtOnce : 0;
  return {at_once_.data() + first, kNodesAtOnce, at_once_on_device_ + first};
}

NodeList Queries::ClusterNodes(size_t begin, size_t end, uint32_t lanes) const {
  const Way& way = WayOf(lanes);
  const uint32_t first = way.firsts[begin];
  return {way.nodes.data() + first, way.firsts[end] - first, way.nodes_on_device + first};
}

size_t Queries::ClusterOf(uint32_t token) const {
  return kinglet::ClusterOf(token, static_cast<uint32_t>(first_tokens_.size()),
                            [this](uint32_t i) { return first_tokens_[i]; });
}

RankedTokensPlan Queries::Ranking(uint32_t lanes, bool empty_cache_is_normalised,
                                  bool at_once) const {
  RankedTokensPlan ranking = plan_;
  ranking.clusters = (at_once ? stored_ : WayOf(lanes)).clusters;
  ranking.cache.empty_is_normalised |= empty_cache_is_normalised;
  return ranking;
}

}  // namespace kinglet::cuda
