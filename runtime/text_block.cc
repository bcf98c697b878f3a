#include "runtime/text_block.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <new>
#include <utility>
#include <variant>

#include "runtime/queries/token_probabilities.h"

namespace kinglet {
namespace {

constexpr uint64_t kMostTokens = 32;
constexpr uint64_t kMostScratchBytes = uint64_t{16} << 20;

// How a node uses the state of a stream.
struct StateUse {
  const Plan& plan;
  bool writes_ring = false;             // writes a slot of a ring of several slots
  std::vector<BufferId> reads_whole{};  // buffers that every token writes completely
  std::vector<BufferId> writes_whole{};

  void Weight(WeightId) {}
  void Codes(WeightId) {}
  void Reads(BufferId id) {
    const BufferSpec& buffer = plan.buffer(id);
    if (buffer.state && buffer.ring.IsWhole()) reads_whole.push_back(id);
  }
  void Writes(BufferId id) {
    const BufferSpec& buffer = plan.buffer(id);
    if (!buffer.state) return;
    if (buffer.ring.IsWhole()) {
      writes_whole.push_back(id);
    } else {
      writes_ring = true;
    }
  }
};

StateUse StateUseOf(const Plan& plan, const Op& op) {
  StateUse use{plan};
  VisitOperands(plan, op, use);
  return use;
}

bool IsCacheAppend(const Op& op) { return std::holds_alternative<CacheAppend>(op); }

// Whether a context node reads results of the token before.
bool IsRecurrent(const Plan& plan) {
  std::vector<BufferId> written;
  for (size_t i = plan.context.begin; i < plan.context.end; ++i) {
    const Op& op = plan.nodes[i].op;
    if (IsCacheAppend(op)) continue;
    const StateUse use = StateUseOf(plan, op);
    for (const BufferId id : use.reads_whole) {
      if (std::find(written.begin(), written.end(), id) == written.end()) return true;
    }
    written.insert(written.end(), use.writes_whole.begin(), use.writes_whole.end());
  }
  return false;
}

bool CacheTakesTokens(const Model& model) {
  if (!model.plan().cache) return false;
  const NodeRange nodes = model.plan().cache->nodes;
  const auto kernels = model.kernels().subspan(nodes.begin, nodes.end - nodes.begin);
  return std::all_of(kernels.begin(), kernels.end(), std::mem_fn(&Kernel::TakesOneStream));
}

AlignedMemory AllocateOrThrow(uint64_t bytes) {
  AlignedMemory memory = AllocateZeroed(bytes);
  if (!memory) throw std::bad_alloc();
  return memory;
}

uint64_t BytesOfToken(const BufferLayout& layout) {
  return layout.token_scratch_bytes + layout.own_state_bytes;
}

}  // namespace

uint64_t TextBlock::TokensTogether(const Model& model) {
  if (model.device() != nullptr || KeepsRows(model.plan())) return 1;
  const uint64_t fit = kMostScratchBytes / std::max<uint64_t>(BytesOfToken(model.layout()), 1);
  return std::clamp<uint64_t>(fit, 1, kMostTokens);
}

uint64_t TextBlock::Bytes(const Model& model, uint64_t tokens) {
  const BufferLayout& layout = model.layout();
  return sizeof(TextBlock) + tokens * (BytesOfToken(layout) + sizeof(StreamFrame)) +
         kLanesTogether * sizeof(Distribution<double>) + kLanesTogether * layout.scratch_bytes +
         Stream::BytesTogether(model, tokens);
}

std::vector<TextBlock::Part> TextBlock::PartsOf(const Model& model) {
  const Plan& plan = model.plan();
  std::vector<Part> parts;
  for (size_t i = plan.context.begin; i < plan.context.end; ++i) {
    const Op& op = plan.nodes[i].op;
    if (IsCacheAppend(op)) continue;
    const bool in_turn = StateUseOf(plan, op).writes_ring && !model.kernels()[i].TakesOneStream();
    if (!parts.empty() && parts.back().in_turn == in_turn && parts.back().nodes.end == i) {
      parts.back().nodes.end = i + 1;
    } else {
      parts.push_back({{i, i + 1}, in_turn});
    }
  }
  return parts;
}

template <class T>
TextBlock::TextBlock(const Model& model, uint64_t tokens, EmptyCache empty_cache,
                     Execution& execution, QueryMemory<T>& memory, MemoryClaim claim)
    : model_(model),
      layout_(model.layout()),
      execution_(execution),
      claim_(std::move(claim)),
      tokens_(tokens),
      parts_(PartsOf(model)),
      is_recurrent_(IsRecurrent(model.plan())),
      cache_takes_tokens_(CacheTakesTokens(model)),
      scratch_(AllocateOrThrow(tokens * layout_.token_scratch_bytes)),
      own_states_(AllocateOrThrow(tokens * layout_.own_state_bytes)),
      undo_(AllocateOrThrow(Stream::BytesTogether(model, tokens))),
      query_scratch_(AllocateOrThrow(kLanesTogether * layout_.scratch_bytes)),
      distributions_(std::vector<Distribution<T>>(
          kLanesTogether, Distribution<T>(model, empty_cache, execution, memory))) {
  const Plan& plan = model.plan();
  for (size_t i = plan.context.begin; i < plan.context.end; ++i) {
    if (IsCacheAppend(plan.nodes[i].op)) append_ = i;
  }
  frames_.reserve(tokens);
}

// Masked tokens lie in a ring that all layers share. The first layer stores the masks of all tokens
// of the text block, so no token may take the slot of one that another token still sees.
uint64_t TextBlock::MostTokens(const Stream& stream) const {
  uint64_t most = tokens_;
  const Plan& plan = model_.plan();
  for (size_t i = plan.context.begin; i < plan.context.end; ++i) {
    const auto* const attention = std::get_if<WindowAttention>(&plan.nodes[i].op);
    if (attention == nullptr || !attention->masked) continue;
    const uint64_t position = stream.position(), window = attention->window;
    const bool is_filling = attention->restarts || position < window;
    most = std::min(most, is_filling ? window - position % window : 1);
  }
  return most;
}

Status TextBlock::RunContext(std::span<StreamFrame> frames) {
  if (is_recurrent_) {
    for (size_t i = 0; i < frames.size(); ++i) {
      if (i > 0) std::memcpy(OwnState(i), OwnState(i - 1), layout_.own_state_bytes);
      for (const Part& part : parts_) {
        KINGLET_RETURN_IF_ERROR(RunNodes(model_, part.nodes, frames.subspan(i, 1), execution_));
      }
    }
    return Status();
  }
  for (const Part& part : parts_) {
    const size_t together = part.in_turn ? 1 : frames.size();
    for (size_t i = 0; i < frames.size(); i += together) {
      KINGLET_RETURN_IF_ERROR(
          RunNodes(model_, part.nodes, frames.subspan(i, together), execution_));
    }
  }
  return Status();
}

// The frame of token `first` + i, the i-th of the tokens that are asked together.
StreamFrame TextBlock::QueryFrame(size_t first, size_t i) {
  StreamFrame frame = frames_[first + i];
  frame.scratch = query_scratch_.get() + i * layout_.scratch_bytes;
  return frame;
}

// A token's pair contains the hidden state of the token before.
Status TextBlock::AppendToCache(size_t token) {
  if (!append_) return Status();
  StreamFrame frame = frames_[token];
  frame.own_state = token == 0 ? nullptr : OwnState(token - 1);
  return RunNodes(model_, {*append_, *append_ + 1}, {&frame, 1}, execution_);
}

// Computes the weights of the cache after each of the tokens, in the memory of their queries.
Status TextBlock::ComputeCache(size_t token, size_t count) {
  KINGLET_RETURN_IF_ERROR(AppendToCache(token));
  std::array<StreamFrame, kLanesTogether> frames;
  for (size_t i = 0; i < count; ++i) frames[i] = QueryFrame(token, i);
  return RunNodes(model_, model_.plan().cache->nodes, std::span(frames).first(count), execution_);
}

template <class T>
Status TextBlock::Ask(std::span<const uint32_t> next, std::span<double> out, Computing computing,
                      std::span<Distribution<T>> distributions) {
  for (size_t first = 0; first < frames_.size(); first += kLanesTogether) {
    const size_t count = std::min(kLanesTogether, frames_.size() - first);
    const size_t asked = std::min(count, next.size() - std::min(first, next.size()));
    std::array<QueriedStream<T>, kLanesTogether> streams;
    for (size_t i = 0; i < asked; ++i) {
      streams[i] = {&distributions[i], QueryFrame(first, i)};
      distributions[i].Invalidate();
    }
    if (asked > 0 && computing == Computing::kAll) {
      KINGLET_RETURN_IF_ERROR(
          Distribution<T>::OpenClusters(std::span(streams).first(asked), kLogitsNowhere));
    }
    if (asked > 0) {
      KINGLET_RETURN_IF_ERROR(
          OpenClustersOfTokens(std::span(streams).first(asked), next.subspan(first, asked)));
    }
    const bool together = asked > 0 && cache_takes_tokens_;
    if (together) KINGLET_RETURN_IF_ERROR(ComputeCache(first, asked));
    for (size_t i = 0; i < count; ++i) {
      if (!together || i > 0) KINGLET_RETURN_IF_ERROR(AppendToCache(first + i));
      if (i >= asked) continue;
      KINGLET_RETURN_IF_ERROR(
          LogProbabilityInTurn(streams[i], together, next[first + i], out[first + i]));
    }
  }
  return Status();
}

Status TextBlock::Process(std::span<const uint32_t> tokens, std::span<const uint32_t> next,
                          std::span<double> out, Computing computing, Stream& stream) {
  frames_.clear();
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::byte* const scratch = scratch_.get() + i * layout_.token_scratch_bytes;
    frames_.push_back(stream.FrameTogether(i, model_.TokenOf(tokens[i]), scratch, OwnState(i)));
    model_.SetSpelling(tokens[i], frames_.back());
    stream.CopyOwnState(OwnState(i));
  }
  stream.BeginTogether(tokens.size(), undo_.get());
  const auto run = [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RunContext(frames_));
    return std::visit(
        [&]<class T>(std::vector<Distribution<T>>& each) {
          return Ask(next, out, computing, std::span(each));
        },
        distributions_);
  };
  try {
    Status status = run();
    if (status.ok()) {
      stream.CommitTogether(tokens.size(), frames_.back().token, OwnState(tokens.size() - 1));
    } else {
      stream.UndoTogether(tokens.size(), undo_.get());
    }
    return status;
  } catch (...) {  // reference kernels allocate
    stream.UndoTogether(tokens.size(), undo_.get());
    throw;
  }
}

template TextBlock::TextBlock(const Model&, uint64_t, EmptyCache, Execution&, QueryMemory<float>&,
                              MemoryClaim);
#if !defined(KINGLET_SMALL)
template TextBlock::TextBlock(const Model&, uint64_t, EmptyCache, Execution&, QueryMemory<double>&,
                              MemoryClaim);
#endif

}  // namespace kinglet
