// Adds buffers and nodes to a plan while its blocks are lowered.
#ifndef KINGLET_RUNTIME_LOWER_BUILDER_H_
#define KINGLET_RUNTIME_LOWER_BUILDER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/nine_bit_row.h"
#include "kernels/plan.h"

namespace kinglet {

// What a quantiser of a block is for: the values of a buffer when a node has run.
struct QuantiserPoint {
  const ActivationQuantiser* quantiser;
  size_t node;
  BufferId buffer;
  uint32_t slots;  // of the window, for attention weights; else 0
};

class PlanBuilder {
 public:
  // `points`: see Lower; may be null.
  explicit PlanBuilder(Plan& plan, std::vector<QuantiserPoint>* points = nullptr)
      : plan_(plan), points_(points) {}

  // What the plan quantises with: nothing where it computes in floats and notes the points.
  std::optional<ActivationQuantiser> Applied(const ActivationQuantiser* quantiser) const {
    if (quantiser == nullptr || points_ != nullptr) return std::nullopt;
    return *quantiser;
  }
  // Notes that the quantiser is for `floats` as the last node left them. `slots`: of a window, for
  // attention weights; else 0.
  void Note(const ActivationQuantiser* quantiser, BufferId floats, uint32_t slots = 0) {
    if (quantiser == nullptr || points_ == nullptr) return;
    points_->push_back({quantiser, node_count() - 1, floats, slots});
  }

  std::span<const TensorView> weights() const { return plan_.weights; }

  // Scratch buffers that are added between these two calls belong to queries
  // (BufferSpec::of_queries).
  void BeginQueries() { of_queries_ = true; }
  void EndQueries() { of_queries_ = false; }
  // Scratch buffers that are added between these two calls belong to the encoder's nodes on one
  // token (SourceUse).
  void BeginSource() { source_ = SourceUse::kEachToken; }
  void EndSource() { source_ = SourceUse::kNone; }

  BufferId Floats(std::string name, uint64_t count, bool state = false) {
    return AddBuffer({std::move(name), Element::kReal, count, state, std::nullopt});
  }
  // A state buffer with one 32-bit integer in each slot.
  BufferId Uint32s(std::string name, const Ring& ring) {
    return AddBuffer({std::move(name), Element::kUint32, ring.slots, true, std::nullopt, ring});
  }
  BufferId ScratchUint32s(std::string name, uint64_t count) {
    return AddBuffer({std::move(name), Element::kUint32, count});
  }
  BufferId Codes(std::string name, uint64_t count, const ActivationQuantiser& quantiser,
                 bool state = false) {
    const Element element =
        LargestCode(quantiser) <= INT16_MAX ? Element::kCode16 : Element::kCode32;
    return AddBuffer({std::move(name), element, count, state, quantiser});
  }
  // A buffer of floats, or of codes if there is a quantiser.
  BufferId Vector(std::string name, uint64_t count,
                  const std::optional<ActivationQuantiser>& quantiser) {
    return quantiser ? Codes(std::move(name), count, *quantiser) : Floats(std::move(name), count);
  }
  // A state buffer with a row of `size` floats, or codes, for each of `window` source tokens.
  BufferId SourceRows(std::string name, uint64_t size, uint64_t window,
                      const std::optional<ActivationQuantiser>& quantiser) {
    const BufferId id = Vector(std::move(name), size * window, quantiser);
    BufferSpec& spec = plan_.buffers[static_cast<size_t>(id)];
    spec.state = true;
    spec.ring = {.slots = window, .of_source = true};
    return id;
  }
  // Marks a state buffer as one that the encoder fills too; ignores any other buffer.
  void MarkByEncoder(BufferId id) {
    BufferSpec& spec = plan_.buffers[static_cast<size_t>(id)];
    spec.ring.by_encoder = spec.state;
  }
  // A state buffer with the elements and the quantiser of another, `slot` of them in each slot.
  BufferId RingLike(std::string name, uint64_t slot, const Ring& ring, BufferId like) {
    BufferSpec spec = plan_.buffer(like);
    spec.name = std::move(name);
    spec.count = slot * ring.slots;
    spec.state = true;
    spec.ring = ring;
    return AddBuffer(std::move(spec));
  }
  // Like RingLike, for slots of one row that tokens read in order, completely or by multiples of 8
  // codes. Codes that fit in 9 bits are stored in 9 bits where that is smaller, padding included.
  BufferId RowRingLike(std::string name, uint64_t row, const Ring& ring, BufferId like) {
    const BufferId id = RingLike(std::move(name), row, ring, like);
    BufferSpec& spec = plan_.buffers[static_cast<size_t>(id)];
    if (spec.element == Element::kCode16 && LargestCode(*spec.quantiser) <= NineBitRow::kLargest &&
        row <= NineBitRow::kMostCodes && NineBitRow{row}.Bytes() < row * sizeof(int16_t)) {
      spec.element = Element::kCode9;
      spec.row = row;
    }
    return id;
  }
  // The buffer itself, or, with a quantiser, a new buffer of codes and the node that fills it.
  BufferId Quantised(const std::string& node_name, BufferId floats,
                     const ActivationQuantiser* applied, bool state = false) {
    Note(applied, floats);
    const std::optional<ActivationQuantiser> quantiser = Applied(applied);
    if (!quantiser) return floats;
    const BufferSpec source = plan_.buffer(floats);
    const BufferId codes = Codes(source.name + ".codes", source.count, *quantiser, state);
    AddNode(node_name, Quantise{floats, codes});
    return codes;
  }

  // Like Quantised, for a buffer of floats that several vectors use one after the other: the buffer
  // of codes and the node are named after `name`.
  BufferId QuantisedAs(const std::string& name, BufferId floats,
                       const ActivationQuantiser* applied) {
    Note(applied, floats);
    const std::optional<ActivationQuantiser> quantiser = Applied(applied);
    if (!quantiser) return floats;
    const BufferId codes = Codes(name + ".codes", plan_.buffer(floats).count, *quantiser);
    AddNode(name + ".quantise", Quantise{floats, codes});
    return codes;
  }

  // Adds the product as the node NAME or, if the weight is coded and its rows share products, as
  // the nodes NAME.partial and NAME.
  void AddProduct(const std::string& name, const MatVec& product) {
    const CodedView* coded = plan_.weights[product.weight].coded();
    if (coded == nullptr) {
      AddNode(name, product);
      return;
    }
    if (NeedsFewProducts(plan_.weights[product.weight])) {
      AddNode(name, CodedProduct{product.weight, product.bias, product.x, product.y,
                                 product.y_offset, product.relu, product.input});
      return;
    }
    const BufferId partial = Floats(name + ".partial", PartialCount(coded->scheme));
    AddNode(name + ".partial", PartialProducts{product.weight, product.x, partial, product.input});
    AddNode(name, CodedSums{product.weight, product.bias, partial, product.y, product.y_offset,
                            product.relu});
  }

  // Adds the node `name`, which computes the normaliser of a softmax over `logits`. Returns new
  // buffers, whose names begin with `tiles`.
  LogitTiles AddNormaliser(const std::string& name, const std::string& tiles, BufferId logits,
                           BufferId normaliser) {
    const uint64_t count = SumTiles(plan_.buffer(logits).count);
    const LogitTiles made = {Floats(tiles + ".largest", count), Floats(tiles + ".sums", count)};
    AddNode(name, LogSumExp{logits, normaliser, made});
    return made;
  }

  // The buffers of a layer are added between these two calls. Layers run one after the other, so
  // the i-th buffer of an earlier layer is used again as the i-th buffer of this layer if both have
  // the same size and the same quantiser.
  void BeginLayer() { place_ = 0; }
  void EndLayer() { place_.reset(); }

  // Marks the buffer as one with rows for all tokens of a source.
  BufferId OfSource(BufferId id) {
    plan_.buffers[static_cast<size_t>(id)].source = SourceUse::kAllTokens;
    return id;
  }

  void AddNode(std::string name, Op op) { plan_.nodes.push_back({std::move(name), std::move(op)}); }
  size_t node_count() const { return plan_.nodes.size(); }
  Plan& plan() { return plan_; }

 private:
  BufferId AddBuffer(BufferSpec spec) {
    spec.of_queries = of_queries_ && !spec.state;
    if (!spec.state) spec.source = source_;
    if (place_ && *place_ < of_layers_.size()) {
      const BufferSpec& earlier = plan_.buffer(of_layers_[*place_]);
      if (earlier.element == spec.element && earlier.count == spec.count &&
          earlier.quantiser == spec.quantiser) {
        return of_layers_[(*place_)++];
      }
    }
    plan_.buffers.push_back(std::move(spec));
    const auto id = static_cast<BufferId>(plan_.buffers.size() - 1);
    if (place_) {
      of_layers_.resize(std::max(of_layers_.size(), *place_ + 1));
      of_layers_[(*place_)++] = id;
    }
    return id;
  }
  Plan& plan_;
  std::vector<QuantiserPoint>* points_;
  std::vector<BufferId> of_layers_;  // the last layer's buffers, by place
  std::optional<size_t> place_;      // of a layer's next buffer
  bool of_queries_ = false;
  SourceUse source_ = SourceUse::kNone;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_LOWER_BUILDER_H_
