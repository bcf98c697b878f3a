#include "tools/inspect_report.h"

#include <algorithm>
#include <variant>

#include "format/message_text.h"
#include "format/overloaded.h"
#include "tools/block_json.h"
#include "tools/console.h"
#include "tools/json_lines.h"

namespace kinglet {
namespace {

struct BlockText {
  std::string operator()(const AdaptiveEmbedding& block) const {
    return "adaptive embedding  width " + std::to_string(block.width) + ", scale " +
           ShortNumber(block.scale) + ", words by bin " +
           Sizes(block.bins, [](const EmbeddingBin& bin) { return bin.size; }) + Units(block);
  }
  static std::string Units(const AdaptiveEmbedding& block) {
    std::string text;
    for (const KeptDefineUnit& unit : block.units) {
      const std::optional<SpellingRows>& spelling =
          block.bins[unit.first_bin + unit.bin_count - 1].spelling;
      text += spelling ? ", character CNN of " + std::to_string(spelling->filters.size()) +
                             " filters and "
                       : ", DeFINE unit of ";
      text += std::to_string(unit.unit.layers.size()) + " layers, " +
              std::to_string(unit.cache_rows) + " rows cached";
      if (unit.bin_count == block.bins.size()) continue;
      text += ", for bin" + std::string(unit.bin_count == 1 ? " " : "s ") +
              std::to_string(unit.first_bin);
      if (unit.bin_count > 1) text += " to " + std::to_string(unit.first_bin + unit.bin_count - 1);
    }
    return text;
  }
  std::string operator()(const TransformerDecoder& block) const {
    const bool cross = !block.layers.empty() && block.layers[0].cross_attention;
    return "transformer decoder " + Stack(block) + (cross ? ", attention to a source" : "");
  }
  std::string operator()(const TransformerEncoder& block) const {
    return "transformer encoder " + std::to_string(block.vocabulary_size) + " words, " +
           Stack(block.stack) + Units(block.embedding);
  }
  static std::string PositionsText(const Positions& positions) {
    return std::visit(
        Overloaded{
            [](const SlotPositions&) -> std::string { return "trained columns of window slots"; },
            [](const RelativeSinusoids& relative) {
              return "relative sinusoids" +
                     (relative.clamp ? " up to " + std::to_string(*relative.clamp) : "");
            },
            [](const AbsoluteSinusoids&) -> std::string { return "absolute sinusoids"; },
            [](const PositionTable&) -> std::string { return "a table of positions"; },
            [](const NoPositions&) -> std::string { return "no positions"; }},
        positions);
  }
  static std::string Stack(const TransformerDecoder& block) {
    std::string text = std::to_string(block.layers.size()) + " layers, width " +
                       std::to_string(block.width) + ", " + std::to_string(block.heads) +
                       " heads (key " + std::to_string(block.key_size) + ", value " +
                       std::to_string(block.value_size) + "), window " +
                       std::to_string(block.window) + ", " + PositionsText(block.positions);
    static constexpr const char* kOrders[] = {", pre-norm", ", post-norm", ", norm at the end"};
    text += kOrders[static_cast<size_t>(block.norm_order)];
    if (block.masked_token) text += ", token " + std::to_string(*block.masked_token) + " masked";
    if (block.final_norm_gain) text += ", a final norm";
    text += block.start == StreamStart::kZeros ? ", zeros before the stream"
                                               : ", masked before the stream";
    return text + (block.output ? ", activations quantised" : ", float activations");
  }
  std::string operator()(const AdaptiveSoftmax& block) const {
    std::string text = "adaptive softmax    head " + std::to_string(block.head_size) + " words";
    if (block.head_projection) text += ", projected";
    if (!block.tails.empty()) {
      text += ", tails " + Sizes(block.tails, [](const SoftmaxTail& tail) { return tail.size; });
    }
    return text + (block.normalisation == Normalisation::kWhole ? ", one normaliser" : "");
  }
  std::string operator()(const NeuralCache& block) const {
    return "neural cache        " + std::to_string(block.capacity) + " pairs, theta " +
           NumberText(block.theta) + ", lambda " + NumberText(block.lambda) +
           (block.start == CacheStart::kPastCapacity ? ", past its capacity" : "");
  }
  std::string operator()(const RecurrentDecoder& block) const {
    std::string text = "recurrent decoder   inputs " + std::to_string(block.inputs);
    if (block.input_feed) text += " with input feeding";
    text += ", layers " + Cells(block.layers);
    if (block.attention) {
      text += ", attention " + std::string(NameOf(block.attention->score));
    }
    return text + (block.input ? ", activations quantised" : ", float activations");
  }
  static std::string Cells(const std::vector<RecurrentLayer>& layers) {
    static constexpr const char* kCells[] = {"LSTM", "GRU", "tanh", "ReLU", "QRNN"};
    std::string text;
    for (size_t i = 0; i < layers.size(); ++i) {
      text += (i == 0 ? "" : " + ") + std::string(kCells[static_cast<size_t>(layers[i].cell)]) +
              " " + std::to_string(layers[i].units);
      if (layers[i].projection) text += " to " + std::to_string(layers[i].Outputs());
    }
    return text;
  }
  std::string operator()(const RecurrentEncoder& block) const {
    return "recurrent encoder   " + std::to_string(block.vocabulary_size) + " words, width " +
           std::to_string(block.embedding.width) + ", layers " + Cells(block.forward) +
           (block.backward.empty() ? "" : ", both directions") + (block.bridge ? ", bridge" : "") +
           ", up to " + std::to_string(block.window) + " tokens" + Units(block.embedding) +
           (block.input ? ", activations quantised" : ", float activations");
  }

  std::string operator()(const MaskedModel& block) const {
    static constexpr const char* kScored[] = {"classes", "the next sentence", "spans"};
    const std::string text = "masked model        " + std::to_string(SegmentsOf(block)) +
                             " segments, " + Stack(block.stack) + (block.pooler ? ", pooler" : "");
    return block.scores ? text + ", scores of " + kScored[static_cast<size_t>(block.scored)] : text;
  }

  std::string operator()(const DenseLayers& block) const {
    return "dense layers        " + std::to_string(block.layers.size()) +
           (block.place == DensePlace::kInput ? " before the decoder" : " after the decoder");
  }

  std::string operator()(const BagClassifier& block) const {
    std::string text = "bag classifier      " + std::to_string(block.classes) + " classes, mean";
    text += block.max_pool ? " and maximum of vectors" : " of vectors";
    return text + (block.hidden ? ", a hidden layer" : ", no hidden layer");
  }

  template <class Parts, class SizeOf>
  static std::string Sizes(const Parts& parts, const SizeOf& size_of) {
    constexpr size_t kMostListed = 8;
    if (parts.size() > kMostListed) {
      const auto smaller = [&](const auto& a, const auto& b) { return size_of(a) < size_of(b); };
      const auto [least, most] = std::minmax_element(parts.begin(), parts.end(), smaller);
      return std::to_string(parts.size()) + " of " + std::to_string(size_of(*least)) + " to " +
             std::to_string(size_of(*most));
    }
    std::string text;
    for (const auto& part : parts) {
      text += (text.empty() ? "" : " + ") + std::to_string(size_of(part));
    }
    return text;
  }
};

}  // namespace

std::string InspectJson(const ModelFile& file) {
  const ModelFacts facts = DescribeModel(file);
  const ModelDescription& description = file.description();
  JsonLine line;
  line.Key("file_size").Integer(file.file_size());
  line.Key("ledger_total").Integer(file.ledger().Total());
  line.Key("parameters").Integer(facts.parameters).Key("digest").Text(file.digest());
  line.Key("tensors").BeginArray();
  for (const TensorFacts& tensor : facts.tensors) {
    line.BeginObject().Key("name").Text(tensor.name).Key("shape").BeginArray();
    for (const uint64_t size : tensor.shape) line.Integer(size);
    line.EndArray().Key("encoding").Text(tensor.encoding);
    line.Key("codes").Integer(tensor.codes).Key("mask").Integer(tensor.mask);
    line.Key("scales").Integer(tensor.scales).Key("values").Integer(tensor.values);
    line.Key("stored").Integer(tensor.stored);
    if (tensor.derived) line.Key("derived").Boolean(true);
    line.EndObject();
  }
  line.EndArray().Key("blocks").BeginArray();
  const auto name = [&file](TensorId id, std::string_view /*field*/, JsonLine& at) {
    at.Text(file.tensors()[id].name);
  };
  for (const Block& block : description.blocks) AppendBlock(block, name, line);
  line.EndArray().Key("stored").Integer(facts.stored);
  line.Key("vocabulary").BeginObject().Key("size").Integer(description.vocabulary_size);
  line.Key("words").Boolean(file.vocabulary() != nullptr).EndObject();
  if (const TextTables* tables = file.text_tables()) {
    line.Key("tokenizer").BeginObject().Key("kind").Text(TextTablesName(*tables));
    line.Key("lower_case").Boolean(tables->lower_case);
    line.Key("reads_backward").Boolean(tables->reads_backward).EndObject();
  }
  if (description.start_token) line.Key("start_token").Integer(*description.start_token);
  if (description.end_token) line.Key("end_token").Integer(*description.end_token);
  line.Key("bytes").BeginObject();
  for (const auto& [part, bytes] : facts.bytes_by_part) line.Key(part).Integer(bytes);
  line.EndObject();
  const Provenance& provenance = description.provenance;
  line.Key("provenance").BeginObject().Key("producer").Text(provenance.producer);
  line.Key("family").Text(provenance.family).Key("source").Text(provenance.source);
  line.Key("source_digest").Text(provenance.source_digest);
  line.Key("options").Text(provenance.options).EndObject();
  line.Key("golden_values")
      .Integer(description.golden ? description.golden->log_probabilities.size() : 0);
  return line.Finish();
}

std::vector<std::pair<const char*, std::string>> FileFacts(const ModelFile& file,
                                                           const ModelFacts& facts) {
  const ModelDescription& description = file.description();
  const Provenance& provenance = description.provenance;
  std::vector<std::pair<const char*, std::string>> rows = {
      {"digest", file.digest()},
      {"family", provenance.family},
      {"source", provenance.source + ", digest " + provenance.source_digest},
      {"written by", provenance.producer}};
  if (!provenance.options.empty()) rows.emplace_back("options", provenance.options);
  rows.emplace_back("vocabulary",
                    Grouped(description.vocabulary_size) +
                        (file.vocabulary() == nullptr ? " ids without words" : " words"));
  if (const TextTables* tables = file.text_tables()) {
    rows.emplace_back("tokenizer", std::string(TextTablesName(*tables)) +
                                       (tables->lower_case ? ", of lower-cased text" : "") +
                                       (tables->reads_backward ? ", read backward" : ""));
  }
  rows.emplace_back("parameters", Grouped(facts.parameters) + ", of which " +
                                      Grouped(facts.stored) + " are stored");
  if (const auto& golden = description.golden) {
    rows.emplace_back("golden values", Grouped(golden->log_probabilities.size()) + ", tolerance " +
                                           NumberText(golden->tolerance));
  }
  return rows;
}

std::string BlockLine(const Block& block) { return std::visit(BlockText{}, block); }

}  // namespace kinglet
