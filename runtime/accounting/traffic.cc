#include "runtime/accounting/traffic.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <variant>

#include "runtime/accounting/window_positions.h"

namespace kinglet {
namespace {

// Finds the addresses of parts of buffers in a stream's memory.
class BufferFinder {
 public:
  BufferFinder(const Plan& plan, const BufferLayout& layout, size_t real_bytes)
      : plan_(plan), layout_(layout), real_bytes_(real_bytes) {}
  uint64_t Size(BufferId id) const { return plan_.buffer(id).count; }
  // Elements [first, first + count).
  FrameRange Range(BufferId id, uint64_t first, uint64_t count) const {
    const Slot& slot = layout_[id];
    const BufferSpec& buffer = plan_.buffer(id);
    return {slot.state, buffer.of_queries, slot.offset + BytesOf(buffer, first, real_bytes_),
            BytesOf(buffer, count, real_bytes_)};
  }
  FrameRange Range(BufferId id) const { return Range(id, 0, Size(id)); }

 private:
  const Plan& plan_;
  const BufferLayout& layout_;
  size_t real_bytes_;
};

// Adds the parts of buffers that one node uses for one token.
class NodeTracer {
 public:
  // `dropped` are the logits that are not stored.
  NodeTracer(const Plan& plan, const BufferFinder& buffers, const TokenPath& path,
             std::optional<BufferId> dropped, NodeTraffic& traffic)
      : plan_(plan), buffers_(buffers), path_(path), dropped_(dropped), traffic_(traffic) {}

  // Operands that are used completely.
  void Reads(BufferId id) const { Read(id); }
  void Writes(BufferId id) const { Write(id); }
  void Weight(WeightId) const {}  // Kernel::weights lists the memory
  void Codes(WeightId) const {}

  void operator()(const CacheAppend& op) const {
    if (path_.position == 0) return;
    const uint64_t width = buffers_.Size(op.hidden),
                   slot = RingSlot(path_.position - 1, op.capacity);
    Read(op.hidden);
    Write(op.keys, slot * width, width);
    Write(op.tokens, slot, 1);
  }
  void operator()(const EmbedRow& op) const {
    if (const DefineRows* const define = UnitOf(op.units, path_.bin)) {
      const uint64_t width = buffers_.Size(op.out);
      // Counted as in the first set and slot of the row cache, because all have the same size.
      Read(define->row_index, 0, 2 * define->cache.ways);
      Write(define->row_index, 0, 2 * define->cache.ways);
      if (path_.row_is_cached) {
        Read(define->rows, 0, width);
      } else {
        Write(define->work);
        if (define->spelling) Write(*define->spelling);
        Write(define->rows, 0, width);
      }
    }
    Write(op.out);
  }
  void operator()(const LayerNorm& op) const { op.Operands(*this); }
  void operator()(const RootMeanSquareNorm& op) const { op.Operands(*this); }
  void operator()(const ApplyActivation& op) const { op.Operands(*this); }
  void operator()(const MatVec& op) const {
    Read(op.x);
    Write(op.y, op.y_offset, Rows(plan_.weights[op.weight].shape));
  }
  void operator()(const PartialProducts& op) const { op.Operands(*this); }
  void operator()(const CodedProduct& op) const {
    Read(op.x);
    Write(op.y, op.y_offset, Rows(plan_.weights[op.table].shape));
  }
  void operator()(const CodedSums& op) const {
    Read(op.partial);
    Write(op.y, op.y_offset, Rows(plan_.weights[op.table].shape));
  }
  void operator()(const Quantise& op) const { op.Operands(*this); }
  void operator()(const Add& op) const { op.Operands(*this); }
  void operator()(const AddScalar& op) const {
    Read(op.x, op.index, 1);
    Read(op.y, op.first, op.count);
    Write(op.y, op.first, op.count);
  }
  void operator()(const AddPositionRow& op) const { op.Operands(*this); }
  void operator()(const AddSinusoids& op) const { op.Operands(*this); }
  void operator()(const AddQueryBias& op) const { op.Operands(*this); }
  void operator()(const WindowAttention& op) const {
    const uint64_t key_row = uint64_t{op.heads} * op.key_size;
    const uint64_t value_row = uint64_t{op.heads} * op.value_size;
    const RingWindow window = WindowOf(op, path_.position);
    const uint64_t slot = window.newest;
    Read(op.qkv);
    Write(op.keys, slot * key_row, key_row);
    Write(op.values, slot * value_row, value_row);
    // The ring fills from slot 0 on; slots older than the stream count only as zeros, or as the
    // start row.
    const bool zeros = op.start == StreamStart::kZeros && !op.start_row;
    const uint64_t visible = zeros ? op.window : window.filled;
    Read(op.keys, 0, visible * key_row);
    Read(op.values, 0, visible * value_row);
    if (op.masked) {
      Write(op.masked->tokens, slot, 1);
      Read(op.masked->tokens, 0, visible);
    }
    const uint64_t weighed =
        WeighsWholeWindow(op) ? op.window : op.window - FirstVisible(op, path_.position);
    Write(op.weights, 0, op.heads * weighed);
    Write(op.out);
  }
  void operator()(const LogSumExp& op) const { op.Operands(*this); }
  void operator()(const CacheWeights& op) const {
    const uint64_t stored = CachePairs(path_.position, op.capacity, op.first_position);
    Read(op.hidden);
    Read(op.keys, 0, stored * buffers_.Size(op.hidden));
    Write(op.weights, 0, stored);
    Write(op.total);
  }
  void operator()(const LstmGates& op) const { op.Operands(*this); }
  void operator()(const GruGates& op) const { op.Operands(*this); }
  void operator()(const RnnGates& op) const { op.Operands(*this); }
  void operator()(const QrnnGates& op) const { op.Operands(*this); }
  void operator()(const BagAppend& op) const { op.Operands(*this); }
  void operator()(const BagFeatures& op) const { op.Operands(*this); }
  void operator()(const ScaleShiftRelu& op) const { op.Operands(*this); }
  void operator()(const StoreRow& op) const {
    Read(op.x);
    Write(op.rows, path_.position * buffers_.Size(op.x), buffers_.Size(op.x));
  }
  void operator()(const LoadRow& op) const {
    Read(op.rows, path_.position * buffers_.Size(op.x), buffers_.Size(op.x));
    Write(op.x);
  }
  void operator()(const Join& op) const {
    for (const JoinPart& part : op.parts) Read(part.x, part.first, part.count);
    Write(op.y);
  }
  void operator()(const SourceAttention& op) const {
    Read(op.query);
    Read(op.memory, 0, path_.source_length * (buffers_.Size(op.memory) / op.window));
    Write(op.weights);
    Write(op.out);
  }

 private:
  void Read(BufferId id, uint64_t first, uint64_t count) const {
    if (id != dropped_) traffic_.read.push_back(buffers_.Range(id, first, count));
  }
  void Read(BufferId id) const { Read(id, 0, buffers_.Size(id)); }
  void Write(BufferId id, uint64_t first, uint64_t count) const {
    if (id != dropped_) traffic_.written.push_back(buffers_.Range(id, first, count));
  }
  void Write(BufferId id) const { Write(id, 0, buffers_.Size(id)); }

  const Plan& plan_;
  const BufferFinder& buffers_;
  const TokenPath& path_;
  std::optional<BufferId> dropped_;
  NodeTraffic& traffic_;
};

// The buffer whose logits a query makes in its answer. Returns nullopt if no cluster's logits are
// made there.
std::optional<BufferId> LogitsInAnswer(const Plan& plan, std::span<const Kernel> kernels,
                                       QueryTokens tokens) {
  if (tokens != QueryTokens::kAnswer) return std::nullopt;
  const std::optional<size_t> cluster = ClusterMadeInAnswer(plan, kernels);
  if (!cluster) return std::nullopt;
  return plan.clusters[*cluster].logits;
}

bool LooksAtAll(QueryTokens tokens) {
  return tokens == QueryTokens::kEvery || tokens == QueryTokens::kAnswer;
}

}  // namespace

std::vector<NodeTraffic> TrafficOf(const Plan& plan, const BufferLayout& layout, size_t real_bytes,
                                   std::span<const Kernel> kernels, const TokenPath& path,
                                   QueryTokens tokens) {
  const EmbedRow& embedding = path.encodes ? SourceEmbeddingOf(plan) : EmbeddingOf(plan);
  const uint32_t token = embedding.bins[path.bin].first;
  const BufferFinder buffers(plan, layout, real_bytes);
  std::vector<NodeTraffic> traffic(plan.nodes.size());
  const std::optional<BufferId> in_answer = LogitsInAnswer(plan, kernels, tokens);
  std::optional<BufferId> dropped;  // the normaliser's node follows the product's
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (!RunsOn(plan, path, i)) continue;
    if (kernels[i].logits) {
      const BufferId logits = std::get<MatVec>(plan.nodes[i].op).y;
      if (!LooksAtAll(tokens) || logits == in_answer) dropped = logits;
    }
    NodeTraffic& node = traffic[i];
    const bool embeds = std::holds_alternative<EmbedRow>(plan.nodes[i].op);
    const bool makes_row = !(path.row_is_cached && embeds);
    if (makes_row) node.weights = kernels[i].weights;
    if (makes_row && kernels[i].token_weights) {
      for (const MemoryRange& range : kernels[i].token_weights(token)) {
        node.weights.push_back(range);
      }
    }
    if (kernels[i].position_weights) {
      for (const MemoryRange& range : kernels[i].position_weights(path.position)) {
        node.weights.push_back(range);
      }
    }
    std::visit(NodeTracer(plan, buffers, path, dropped, node), plan.nodes[i].op);
  }
  return traffic;
}

uint64_t OwnBytes(const Plan& plan, const BufferLayout& layout, size_t real_bytes, size_t node,
                  const TokenPath& path) {
  NodeTraffic traffic;
  std::visit(NodeTracer(plan, BufferFinder(plan, layout, real_bytes), path, std::nullopt, traffic),
             plan.nodes[node].op);
  uint64_t bytes = 0;
  for (const FrameRange& range : traffic.read) bytes += range.bytes;
  for (const FrameRange& range : traffic.written) bytes += range.bytes;
  return bytes;
}

NodeTraffic QueryTraffic(const Plan& plan, const BufferLayout& layout, size_t real_bytes,
                         std::span<const Kernel> kernels, const TokenPath& path,
                         QueryTokens tokens) {
  const BufferFinder buffers(plan, layout, real_bytes);
  const std::optional<BufferId> in_answer = LogitsInAnswer(plan, kernels, tokens);
  NodeTraffic traffic;
  for (const ClusterPlan& cluster : plan.clusters) {
    if (!RunsOn(plan, path, cluster.nodes.begin)) continue;
    traffic.read.push_back(buffers.Range(cluster.normaliser));
    if (tokens == QueryTokens::kLikely)
      traffic.read.push_back(buffers.Range(cluster.tiles.largest));
    if (LooksAtAll(tokens) && cluster.logits != in_answer) {
      traffic.read.push_back(buffers.Range(cluster.logits));
    }
  }
  if (plan.cache) {
    const uint64_t stored =
        CachePairs(path.position, plan.cache->capacity, plan.cache->first_position);
    traffic.read.push_back(buffers.Range(plan.cache->tokens, 0, stored));
    traffic.read.push_back(buffers.Range(plan.cache->weights, 0, stored));
    traffic.read.push_back(buffers.Range(plan.cache->total));
  }
  return traffic;
}

std::vector<MemoryRange> Merged(std::vector<MemoryRange> ranges) {
  std::erase_if(ranges, [](const MemoryRange& range) { return range.empty(); });
  // std::less orders pointers into different objects too.
  const std::less<const std::byte*> before;
  std::sort(ranges.begin(), ranges.end(), [before](const MemoryRange& a, const MemoryRange& b) {
    return before(a.data(), b.data());
  });
  std::vector<MemoryRange> merged;
  for (const MemoryRange& range : ranges) {
    const std::byte* end = range.data() + range.size();
    if (merged.empty() || before(merged.back().data() + merged.back().size(), range.data())) {
      merged.push_back(range);
    } else if (before(merged.back().data() + merged.back().size(), end)) {
      merged.back() = {merged.back().data(), end};
    }
  }
  return merged;
}

std::vector<MemoryRange> DistinctMemory(std::span<const NodeTraffic> nodes,
                                        std::span<const StreamMemory> streams) {
  std::vector<MemoryRange> ranges;
  for (const NodeTraffic& node : nodes) {
    ranges.insert(ranges.end(), node.weights.begin(), node.weights.end());
    for (const std::vector<FrameRange>* used : {&node.read, &node.written}) {
      for (const FrameRange& range : *used) {
        for (const StreamMemory& stream : streams) {
          const std::byte* const scratch = range.of_queries ? stream.query_scratch : stream.scratch;
          ranges.emplace_back((range.state ? stream.state : scratch) + range.offset, range.bytes);
        }
      }
    }
  }
  return Merged(std::move(ranges));
}

uint64_t TotalBytes(std::span<const MemoryRange> ranges) {
  uint64_t bytes = 0;
  for (const MemoryRange& range : ranges) bytes += range.size();
  return bytes;
}

}  // namespace kinglet
