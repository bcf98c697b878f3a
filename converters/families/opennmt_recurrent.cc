#include "converters/families/opennmt_recurrent.h"

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "converters/network/layers.h"
#include "converters/network/network.h"
#include "format/limits.h"

namespace kinglet {
namespace {

constexpr const char* kWordTable = ".embeddings.make_embedding.emb_luts.0";
constexpr const char* kOutputTable = "generator.0.weight";
constexpr const char* kOutputBias = "generator.0.bias";
constexpr const char* kAttention = "decoder.attn.";

class OpenNmtRecurrentLoader {
 public:
  OpenNmtRecurrentLoader(OpenNmtSettings settings, const FamilyInput& input)
      : settings_(std::move(settings)),
        options_(*settings_.recurrent),
        window_(input.memory_length ? *input.memory_length + 1 : kRecurrentSourceWindow),
        network_(input.weights, input.report) {}

  Result<LoadedModel> Load() {
    ShareOpenNmtTables(settings_, network_);
    const uint64_t words = settings_.target_words.size();
    width_ = Columns(kOutputTable);
    units_ = options_.both_directions ? width_ / 2 : width_;
    const uint64_t fed = options_.input_feed ? width_ : 0;
    const uint64_t first = Columns(DecoderLayer(0) + "weight_ih" + DecoderSuffix(0));
    const uint64_t inputs = width_ > 0 && first > fed ? first - fed : 0;
    const CheckpointTensor* source =
        ClaimWords("encoder", settings_.source_words.size(), Columns("encoder.rnn.weight_ih_l0"));
    const CheckpointTensor* target = ClaimWords("decoder", words, inputs);
    const CheckpointTensor* generator = network_.Claim(kOutputTable, {words, width_});
    if (source != nullptr && target != nullptr && generator != nullptr) {
      KINGLET_RETURN_IF_ERROR(network_.Tie(*source, *target).status());
      KINGLET_RETURN_IF_ERROR(network_.Tie(*target, *generator).status());
    }

    RecurrentEncoder encoder;
    encoder.name = "encoder";
    encoder.vocabulary_size = static_cast<uint32_t>(settings_.source_words.size());
    encoder.embedding = Embedding(source);
    encoder.window = window_;
    DescribeEncoder(encoder);

    AdaptiveEmbedding embedding = Embedding(target);
    embedding.name = "embedding";
    RecurrentDecoder decoder = Decoder(inputs, encoder.forward.size());
    AdaptiveSoftmax softmax{};
    softmax.name = "generator";
    softmax.width = static_cast<uint32_t>(width_);
    softmax.head_size = static_cast<uint32_t>(words);
    softmax.head_table = network_.Add(kOutputTable, {words, width_}, Role::kPrunedAlso, generator);
    softmax.head_bias = network_.Add(kOutputBias, {words}, Role::kQuantised);
    KINGLET_RETURN_IF_ERROR(network_.CheckNames(
        std::string("a recurrent OpenNMT-py model (") +
        (options_.both_directions ? "brnn" : "rnn") +
        (options_.cell == RecurrentCell::kGru ? ", GRU" : ", LSTM") +
        (options_.input_feed ? ", input feeding" : "") + ") with these vocabularies"));
    if (units_ == 0 || width_ > kMaxExtent || first > kMaxExtent ||
        width_ % (options_.both_directions ? 2 : 1) != 0) {
      return Status::Refusal(
          KINGLET_INVALID_CHECKPOINT, "checkpoint", kOutputTable,
          "1 to " + std::to_string(kMaxExtent) + " columns, as many of each direction",
          std::to_string(width_));
    }

    ModelDraft& draft = network_.model.draft;
    draft.description.vocabulary_size = static_cast<uint32_t>(words);
    draft.description.start_token = settings_.start_token;
    draft.description.blocks = {std::move(encoder), std::move(embedding), std::move(decoder),
                                std::move(softmax)};
    draft.vocabulary = std::move(settings_.target_words);
    draft.source_vocabulary = std::move(settings_.source_words);
    return network_.Finish();
  }

 private:
  // The columns of a matrix; 0 if the tensor is missing or not a matrix.
  uint64_t Columns(const std::string& name) const {
    const CheckpointTensor* found = network_.Find(name);
    return found != nullptr && found->shape.size() == 2 ? found->shape[1] : 0;
  }
  // With input feeding the decoder's layers are cells of its own, otherwise nn.LSTM or nn.GRU.
  std::string DecoderLayer(size_t i) const {
    return options_.input_feed ? "decoder.rnn.layers." + std::to_string(i) + "." : "decoder.rnn.";
  }
  std::string DecoderSuffix(size_t i) const {
    return options_.input_feed ? "" : "_l" + std::to_string(i);
  }

  // The words' table of one side, or what a recipe makes of it. `columns`: the rows' width; 0:
  // unknown.
  const CheckpointTensor* ClaimWords(const std::string& side, uint64_t words, uint64_t columns) {
    const std::string whole = side + kWordTable, table = whole + ".weight";
    if (!network_.IsMade(whole)) return network_.Claim(table, {words, columns});
    network_.MarkUnused({table});
    return network_.Claim(whole, {words, columns});
  }

  // `words`: nullptr if missing or faulty.
  AdaptiveEmbedding Embedding(const CheckpointTensor* words) {
    AdaptiveEmbedding embedding;
    embedding.scale = 1;
    if (words == nullptr || words->shape.size() != 2) return embedding;
    embedding.width = static_cast<uint32_t>(words->shape[1]);
    embedding.bins.push_back({0, static_cast<uint32_t>(words->shape[0]),
                              network_.AddWhole(*words, Role::kPrunedAlso), std::nullopt});
    return embedding;
  }

  // The names begin with `prefix` and end with `suffix`.
  RecurrentLayer Layer(const std::string& prefix, const std::string& suffix, uint64_t inputs,
                       uint64_t units) {
    const uint64_t rows = GatesOf(options_.cell) * units;
    RecurrentLayer layer{};
    layer.cell = options_.cell;
    layer.units = static_cast<uint32_t>(units);
    layer.input_weight =
        network_.Add(prefix + "weight_ih" + suffix, {rows, inputs}, Role::kPrunedAlso);
    layer.input_bias = network_.Add(prefix + "bias_ih" + suffix, {rows}, Role::kQuantised);
    layer.recurrent_weight =
        network_.Add(prefix + "weight_hh" + suffix, {rows, units}, Role::kPrunedAlso);
    layer.recurrent_bias = network_.Add(prefix + "bias_hh" + suffix, {rows}, Role::kQuantised);
    return layer;
  }

  void DescribeEncoder(RecurrentEncoder& encoder) {
    uint64_t inputs = encoder.embedding.width;
    do {
      const std::string suffix = "_l" + std::to_string(encoder.forward.size());
      encoder.forward.push_back(Layer("encoder.rnn.", suffix, inputs, units_));
      if (options_.both_directions) {
        encoder.backward.push_back(Layer("encoder.rnn.", suffix + "_reverse", inputs, units_));
      }
      inputs = width_;
    } while (network_.Has("encoder.rnn.weight_ih_l" + std::to_string(encoder.forward.size())));
    if (!options_.bridge) return;
    const uint64_t stacked = units_ * encoder.forward.size();
    const auto [weight, bias] = AddLinear(network_, "encoder.bridge.0.", stacked, stacked);
    encoder.bridge = EncoderBridge{weight, bias, std::nullopt, std::nullopt};
    if (options_.cell != RecurrentCell::kLstm) return;
    std::tie(encoder.bridge->cell_weight, encoder.bridge->cell_bias) =
        AddLinear(network_, "encoder.bridge.1.", stacked, stacked);
  }

  RecurrentDecoder Decoder(uint64_t inputs, size_t layers) {
    RecurrentDecoder decoder;
    decoder.name = "decoder";
    decoder.inputs = static_cast<uint32_t>(inputs);
    decoder.input_feed = options_.input_feed;
    uint64_t columns = inputs == 0 ? 0 : inputs + (options_.input_feed ? width_ : 0);
    for (size_t i = 0; i < layers; ++i) {
      decoder.layers.push_back(Layer(DecoderLayer(i), DecoderSuffix(i), columns, width_));
      columns = width_;
    }
    if (options_.attention) decoder.attention = Attention(*options_.attention);
    return decoder;
  }

  GlobalAttention Attention(AttentionScore score) {
    const std::string prefix = kAttention;
    const uint64_t n = width_;
    GlobalAttention attention{};
    attention.score = score;
    const auto weight = [&](const char* name, const Shape& shape) {
      return network_.Add(prefix + name + ".weight", shape, Role::kPrunedAlso);
    };
    switch (score) {
      case AttentionScore::kDot:
        break;
      case AttentionScore::kGeneral:
        attention.query_weight = weight("linear_in", {n, n});
        break;
      case AttentionScore::kMlp:
        std::tie(attention.query_weight, attention.query_bias) =
            AddLinear(network_, prefix + "linear_query.", n, n);
        attention.memory_weight = weight("linear_context", {n, n});
        attention.score_weight = network_.Add(prefix + "v.weight", {1, n}, Role::kQuantised);
        break;
    }
    attention.out_weight = weight("linear_out", {n, 2 * n});
    if (score == AttentionScore::kMlp) {
      attention.out_bias = network_.Add(prefix + "linear_out.bias", {n}, Role::kQuantised);
    }
    return attention;
  }

  OpenNmtSettings settings_;
  const OpenNmtRecurrent options_;
  const uint32_t window_;
  Network network_;
  uint64_t width_ = 0, units_ = 0;  // of the decoder; of each direction of the encoder
};

}  // namespace

void ShareOpenNmtTables(const OpenNmtSettings& settings, Network& network) {
  const std::string table = std::string(kWordTable) + ".weight";
  const auto share_generator = [&] {
    if (settings.shares_generator) network.Share("decoder" + table, kOutputTable);
  };
  share_generator();
  if (settings.shares_embeddings) network.Share("encoder" + table, "decoder" + table);
  // OpenNMT-py 3 has no Sequential around the generator.
  for (const char* part : {"weight", "bias"}) {
    network.Share(std::string("generator.") + part, std::string("generator.0.") + part);
  }
  share_generator();  // now the decoder's table may be the encoder's
}

Result<LoadedModel> LoadOpenNmtRecurrent(OpenNmtSettings settings, const FamilyInput& input) {
  return OpenNmtRecurrentLoader(std::move(settings), input).Load();
}

}  // namespace kinglet
