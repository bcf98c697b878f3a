#include <array>
#include <optional>
#include <string>
#include <vector>

#include "runtime/lower/blocks.h"

namespace kinglet {
namespace {

// With one direction a single sweep runs all layers. With two directions a layer has two sweeps:
// the forward one stores its input and output of each token, and the backward one joins both
// directions' outputs, which are the next layer's input. The states of the layers are scratch, so a
// sweep for one token clears them first, and another such sweep passes the last states to the
// decoder.
class RecurrentEncoderLowering {
 public:
  RecurrentEncoderLowering(const RecurrentEncoder& block, const RecurrentDecoder& decoder,
                           const SourceMemory* memory, PlanBuilder& builder)
      : block_(block), decoder_(decoder), memory_(memory), builder_(builder) {
    embedded_ = Make("encoder.embedded", block.embedding.width, At(block.input));
    for (size_t i = 0; i < block.forward.size(); ++i) {
      forward_.push_back(MakeState(block.forward[i], DirectionName(i, true)));
      if (!both()) continue;
      backward_.push_back(MakeState(block.backward[i], DirectionName(i, false)));
      outputs_.push_back(Make(LayerName(i) + ".output",
                              uint64_t{block.forward[i].units} + block.backward[i].units,
                              At(block.forward[i].output)));
      outputs_.back().quantiser = nullptr;  // noted where each direction ends
    }
  }

  EncoderPlan Lower(std::span<const RecurrentState> states) {
    plan_.vocabulary_size = block_.vocabulary_size;
    plan_.window = block_.window;
    AddSweep(SourceOrder::kOnce, [&] { ClearStates(); });
    if (both()) {
      for (size_t i = 0; i < block_.forward.size(); ++i) LowerBothDirections(i);
    } else {
      AddSweep(SourceOrder::kForward, [&] { LowerForward(); });
    }
    AddSweep(SourceOrder::kOnce, [&] { LowerStates(states); });
    return std::move(plan_);
  }

 private:
  bool both() const { return !block_.backward.empty(); }
  static std::string LayerName(size_t index) { return "encoder.layers." + std::to_string(index); }
  static std::string DirectionName(size_t index, bool forward) {
    return LayerName(index) + (forward ? ".forward" : ".backward");
  }
  QuantisedVector Make(const std::string& name, uint64_t count,
                       const ActivationQuantiser* quantiser) {
    const BufferId floats = builder_.Floats(name, count);
    const auto applied = builder_.Applied(quantiser);
    return {floats, applied ? builder_.Codes(name + ".codes", count, *applied) : floats, quantiser};
  }
  RecurrentState MakeState(const RecurrentLayer& layer, const std::string& name) {
    RecurrentState state{Make(name + ".hidden", layer.units, At(layer.output)), std::nullopt};
    if (layer.cell == RecurrentCell::kLstm) {
      state.cell = builder_.Floats(name + ".cell", layer.units);
    }
    return state;
  }
  BufferId Rows(const std::string& name, BufferId of) {
    BufferSpec spec = builder_.plan().buffer(of);
    return builder_.Vector(name, spec.count * block_.window, spec.quantiser);
  }

  template <class Nodes>
  void AddSweep(SourceOrder order, const Nodes& lower) {
    const size_t begin = builder_.node_count();
    lower();
    plan_.sweeps.push_back({{begin, builder_.node_count()}, order});
  }

  void ClearStates() {
    const auto clear = [&](const RecurrentState& state, const std::string& name) {
      builder_.AddNode(name + ".hidden.clear", Join{{}, state.hidden.floats});
      LowerQuantised(name + ".hidden.clear.quantise", {state.hidden.floats, state.hidden.codes},
                     builder_);
      if (state.cell) builder_.AddNode(name + ".cell.clear", Join{{}, *state.cell});
    };
    for (size_t i = 0; i < forward_.size(); ++i) clear(forward_[i], DirectionName(i, true));
    for (size_t i = 0; i < backward_.size(); ++i) clear(backward_[i], DirectionName(i, false));
  }

  void LowerEmbedded() {
    AdaptiveEmbedding embedding = block_.embedding;
    embedding.name = "encoder.embedding";  // in the file it is a part of the encoder
    LowerEmbedding(embedding, embedded_.floats, builder_);
    LowerQuantised("encoder.embedded.quantise", embedded_, builder_);
  }

  void LowerCell(const RecurrentLayer& layer, const std::string& name, BufferId input,
                 const RecurrentState& state) {
    const uint64_t rows = uint64_t{GatesOf(layer.cell)} * layer.units;
    const BufferId of_input = builder_.Floats(name + ".input", rows);
    const BufferId of_hidden = builder_.Floats(name + ".recurrent", rows);
    builder_.AddProduct(name + ".input",
                        MatVec{layer.input_weight, layer.input_bias, input, of_input});
    builder_.AddProduct(name + ".recurrent", MatVec{*layer.recurrent_weight, layer.recurrent_bias,
                                                    state.hidden.codes, of_hidden});
    LowerGates(layer, name, of_input, of_hidden, state, builder_);
    LowerQuantised(name + ".quantise", state.hidden, builder_);
  }

  void LowerForward() {
    LowerEmbedded();
    BufferId input = embedded_.codes;
    for (size_t i = 0; i < forward_.size(); ++i) {
      LowerCell(block_.forward[i], DirectionName(i, true), input, forward_[i]);
      input = forward_[i].hidden.codes;
    }
    LowerMemory(forward_.back().hidden);
  }

  void LowerBothDirections(size_t index) {
    const bool first = index == 0, last = index + 1 == forward_.size();
    const QuantisedVector& input = first ? embedded_ : outputs_[index - 1];
    const std::string name = LayerName(index);
    if (first) inputs_ = Rows(name + ".input.rows", input.codes);
    const QuantisedVector& ahead = forward_[index].hidden;
    const QuantisedVector& back = backward_[index].hidden;
    const BufferId ahead_rows = Rows(name + ".forward.rows", ahead.floats);
    AddSweep(SourceOrder::kForward, [&] {
      if (first) {
        LowerEmbedded();
        builder_.AddNode(name + ".input.store", StoreRow{input.codes, inputs_});
      } else {
        builder_.AddNode(name + ".input.load", LoadRow{inputs_, input.codes});
      }
      LowerCell(block_.forward[index], DirectionName(index, true), input.codes, forward_[index]);
      builder_.AddNode(name + ".forward.store", StoreRow{ahead.floats, ahead_rows});
    });
    AddSweep(SourceOrder::kBackward, [&] {
      builder_.AddNode(name + ".backward.input.load", LoadRow{inputs_, input.codes});
      LowerCell(block_.backward[index], DirectionName(index, false), input.codes, backward_[index]);
      // A separate buffer, because the forward direction's own buffer contains its last state.
      const QuantisedVector& output = outputs_[index];
      const uint64_t units = block_.forward[index].units;
      const BufferId of_token = builder_.Floats(name + ".forward.row", units);
      builder_.AddNode(name + ".forward.load", LoadRow{ahead_rows, of_token});
      builder_.AddNode(name + ".join",
                       Join{{{of_token, 0, units}, {back.floats, 0, block_.backward[index].units}},
                            output.floats});
      LowerQuantised(name + ".output.quantise", output, builder_);
      if (last) {
        LowerMemory(output);
      } else {
        inputs_ = Rows(name + ".output.rows", output.codes);
        builder_.AddNode(name + ".output.store", StoreRow{output.codes, inputs_});
      }
    });
  }

  // Stores the rows to which the decoder attends. A score of kMlp also needs a product with them.
  void LowerMemory(const QuantisedVector& output) {
    if (memory_ == nullptr) return;
    const GlobalAttention& attention = *decoder_.attention;
    if (!attention.memory_weight) {
      builder_.AddNode("encoder.memory.store", StoreRow{output.codes, memory_->rows});
      return;
    }
    const uint64_t width = builder_.plan().buffer(output.floats).count;
    const BufferId key = builder_.Floats("encoder.memory.key", width);
    const BufferId row = builder_.Floats("encoder.memory", 2 * width);
    builder_.AddProduct("encoder.memory.key",
                        MatVec{*attention.memory_weight, std::nullopt, output.codes, key});
    builder_.AddNode("encoder.memory.join",
                     Join{{{key, 0, width}, {output.floats, 0, width}}, row});
    builder_.AddNode("encoder.memory.store", StoreRow{row, memory_->rows});
  }

  // The last states of a kind, of all layers and directions in the order of EncoderBridge.
  std::vector<JoinPart> LastStates(bool cells) const {
    std::vector<JoinPart> parts;
    const auto add = [&](const RecurrentState& state, uint32_t units) {
      parts.push_back({cells ? *state.cell : state.hidden.floats, 0, units});
    };
    for (size_t i = 0; i < forward_.size(); ++i) {
      add(forward_[i], block_.forward[i].units);
      if (both()) add(backward_[i], block_.backward[i].units);
    }
    return parts;
  }

  void LowerStates(std::span<const RecurrentState> states) {
    const bool cells = states[0].cell.has_value();
    LowerStates(states, false);
    if (cells) LowerStates(states, true);
  }

  void LowerStates(std::span<const RecurrentState> states, bool cells) {
    std::vector<JoinPart> parts = LastStates(cells);
    if (block_.bridge) parts = Bridged(parts, cells);
    const size_t directions = both() ? 2 : 1;
    for (size_t i = 0; i < states.size(); ++i) {
      const std::string name = "layers." + std::to_string(i) + (cells ? ".cell" : ".hidden");
      const BufferId to = cells ? *states[i].cell : states[i].hidden.floats;
      const auto from = parts.begin() + static_cast<ptrdiff_t>(i * directions);
      builder_.AddNode(name + ".start",
                       Join{{from, from + static_cast<ptrdiff_t>(directions)}, to});
      builder_.MarkByEncoder(to);
      if (cells) continue;
      LowerQuantised(name + ".start.quantise", states[i].hidden, builder_);
      builder_.MarkByEncoder(states[i].hidden.codes);
    }
  }

  // The parts of the vectors to which the bridge maps the given parts.
  std::vector<JoinPart> Bridged(const std::vector<JoinPart>& parts, bool cells) {
    const EncoderBridge& bridge = *block_.bridge;
    const std::string name = cells ? "encoder.bridge.cell" : "encoder.bridge.hidden";
    const TensorId weight = cells ? *bridge.cell_weight : bridge.hidden_weight;
    const auto& bias = cells ? bridge.cell_bias : bridge.hidden_bias;
    const size_t layers = block_.forward.size();
    const uint64_t units = block_.forward[0].units, width = units * layers;
    const TailInput input =
        builder_.Applied(At(block_.input)) ? TailInput::kFixedPoint15 : TailInput::kAsIs;
    std::vector<JoinPart> mapped;
    for (size_t first = 0; first < parts.size(); first += layers) {
      const std::string row = name + "." + std::to_string(first / layers);
      const BufferId x = builder_.Floats(row + ".input", width);
      const BufferId y = builder_.Floats(row, width);
      const auto from = parts.begin() + static_cast<ptrdiff_t>(first);
      builder_.AddNode(row + ".join", Join{{from, from + static_cast<ptrdiff_t>(layers)}, x});
      builder_.AddProduct(row, MatVec{weight, bias, x, y, 0, true, input});
      for (size_t i = 0; i < layers; ++i) mapped.push_back({y, i * units, units});
    }
    return mapped;
  }

  const RecurrentEncoder& block_;
  const RecurrentDecoder& decoder_;
  const SourceMemory* memory_;
  PlanBuilder& builder_;
  QuantisedVector embedded_{};
  std::vector<RecurrentState> forward_, backward_;  // by layer
  std::vector<QuantisedVector> outputs_;            // by layer, of both directions
  BufferId inputs_{};                               // rows of the next layer's input
  EncoderPlan plan_;
};

}  // namespace

SourceMemory MakeSourceMemory(const RecurrentDecoder& decoder, const RecurrentEncoder& encoder,
                              PlanBuilder& builder) {
  const bool additive = decoder.attention->score == AttentionScore::kMlp;
  const uint64_t width = decoder.layers.back().Outputs();
  const auto quantiser = builder.Applied(additive ? nullptr : At(encoder.forward.back().output));
  return {builder.SourceRows("source", additive ? 2 * width : width, encoder.window, quantiser),
          encoder.window};
}

void LowerEncoder(const RecurrentEncoder& block, const RecurrentDecoder& decoder,
                  const SourceMemory* memory, std::span<const RecurrentState> states,
                  PlanBuilder& builder) {
  builder.plan().encoder = RecurrentEncoderLowering(block, decoder, memory, builder).Lower(states);
}

}  // namespace kinglet
