#include "converters/passes/calibrate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>

#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/passes/quantise.h"
#include "converters/texts/text_reader.h"
#include "converters/texts/token_file.h"
#include "format/block_fields.h"
#include "format/message_text.h"
#include "runtime/lower/lower.h"
#include "runtime/model.h"
#include "runtime/scored_stream.h"
#include "runtime/session.h"

namespace kinglet {
namespace {

// Tails and dense layers then multiply integers: the hidden state's codes, not its floats.
void UseFixedPointInputs(ModelDescription& description) {
  for (Block& block : description.blocks) {
    if (auto* softmax = std::get_if<AdaptiveSoftmax>(&block)) {
      softmax->tail_input = TailInput::kFixedPoint15;
    } else if (auto* dense = std::get_if<DenseLayers>(&block)) {
      dense->input = TailInput::kFixedPoint15;
    }
  }
}

void CountBins(std::span<const uint32_t> tokens, AdaptiveEmbedding& embedding) {
  for (EmbeddingBin& bin : embedding.bins) {
    bin.tokens =
        static_cast<uint64_t>(std::count_if(tokens.begin(), tokens.end(), [&](uint32_t token) {
          return token >= bin.first && token - bin.first < bin.size;
        }));
  }
}

// Records how many of the tokens that the model reads lie in each bin of the embeddings. A decoder
// with an encoder reads the start token and the target without its last token.
void CountBins(const CalibrationInput& input, ModelDescription& description) {
  std::vector<uint32_t> tokens = input.tokens, sources;
  for (const MaskedText& text : input.texts) {
    tokens.insert(tokens.end(), text.ids.begin(), text.ids.end());
  }
  for (const SentencePair& pair : input.pairs) {
    sources.insert(sources.end(), pair.source.begin(), pair.source.end());
    tokens.push_back(*description.start_token);
    tokens.insert(tokens.end(), pair.target.begin(), pair.target.end() - 1);
  }
  if (auto* words = FindBlock<AdaptiveEmbedding>(description)) CountBins(tokens, *words);
  if (auto* encoder = FindBlock<TransformerEncoder>(description)) {
    CountBins(sources, encoder->embedding);
  } else if (auto* recurrent = FindBlock<RecurrentEncoder>(description)) {
    CountBins(sources, recurrent->embedding);
  }
}

}  // namespace

Result<std::vector<uint32_t>> ReadCalibrationText(const std::string& path,
                                                  std::span<const std::string> vocabulary,
                                                  const std::optional<TextTables>& tokenizer) {
  KINGLET_ASSIGN_OR_RETURN(const VocabularySegments segments, Vocabulary::Pack(vocabulary));
  KINGLET_ASSIGN_OR_RETURN(const Vocabulary words,
                           Vocabulary::FromSegments(static_cast<uint32_t>(vocabulary.size()),
                                                    segments.words, segments.ranks));
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const ModelText> text,
                           ModelText::Of(tokenizer ? &*tokenizer : nullptr, words));
  KINGLET_ASSIGN_OR_RETURN(TokenSequence sequence, ReadTextFile(path, *text));
  if (!sequence.ids.empty()) return std::move(sequence.ids);
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "calibration text", path, "at least one word",
                         "an empty file");
}

ActivationQuantiser QuantiserFor(float range, int bits) {
  constexpr float kNothing = 1e-30F;  // smaller ranges would have scales that are no normal float32
  constexpr float kSmallest = 1e-6F;
  const float max_abs = range > kNothing ? range : kSmallest;
  return {max_abs, ClearLowMantissaBits(max_abs / static_cast<float>(SymmetricLevels(bits)), bits)};
}

int AttentionWeightBits(uint32_t window, int bits) {
  constexpr uint64_t kTrained = 257;
  int extra_bits = 0;
  while (window > kTrained << extra_bits && bits + extra_bits < kMaxBits) ++extra_bits;
  // A sum of such products is at most 2^slots * 2^(bits - 1 + extra_bits) * 2^(bits - 1).
  const int slots = static_cast<int>(std::bit_width(window - 1U));
  return bits + std::max(0, std::min(extra_bits, 30 - slots - 2 * (bits - 1)));
}

namespace {

Result<std::vector<uint32_t>> ReadCalibrationIds(const std::string& path, uint32_t words) {
  constexpr const char* kIdsOnly =
      "the model has ids only: calibrate with ids, or give it words by --vocab";
  KINGLET_ASSIGN_OR_RETURN(std::vector<uint32_t> ids, WithNextStep(ReadIds(path), kIdsOnly));
  const auto outside = std::ranges::find_if(ids, [words](uint32_t id) { return id >= words; });
  if (!ids.empty() && outside == ids.end()) return ids;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "calibration", path,
                         "ids below " + std::to_string(words),
                         ids.empty() ? "an empty file" : std::to_string(*outside));
}

// The texts unchanged, and with masks.
Result<CalibrationInput> ReadMaskedCalibration(const std::string& path, const MaskedModel& masked,
                                               std::span<const std::string> vocabulary,
                                               const std::optional<TextTables>& tokenizer) {
  if (!tokenizer) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "calibration", "tokenizer",
                           "a tokenizer for the text (--tokenizer vocab.txt)", "none");
  }
  const uint32_t window = masked.stack.window;
  KINGLET_ASSIGN_OR_RETURN(MaskedLines lines,
                           ReadMaskedLines(path, *tokenizer, vocabulary, window));
  CalibrationInput input;
  if (lines.shortened > 0) {
    input.notes.push_back(std::to_string(lines.shortened) + " of " +
                          std::to_string(lines.texts.size()) + " lines of " + path +
                          " are longer than the model's " + std::to_string(window) +
                          " positions: their ends are omitted");
  }
  input.texts = std::move(lines.texts);
  return input;
}

}  // namespace

Result<CalibrationInput> ReadCalibration(const std::string& path,
                                         const ModelDescription& description,
                                         std::span<const std::string> vocabulary,
                                         const std::optional<TextTables>& tokenizer) {
  CalibrationInput input;
  if (HasEncoder(description)) {
    KINGLET_ASSIGN_OR_RETURN(input.pairs, ReadPairs(path, *description.start_token));
    return input;
  }
  if (const auto* masked = FindBlock<MaskedModel>(description)) {
    return ReadMaskedCalibration(path, *masked, vocabulary, tokenizer);
  }
  if (vocabulary.empty()) {
    KINGLET_ASSIGN_OR_RETURN(input.tokens, ReadCalibrationIds(path, description.vocabulary_size));
    return input;
  }
  KINGLET_ASSIGN_OR_RETURN(input.tokens, ReadCalibrationText(path, vocabulary, tokenizer));
  return input;
}

Result<SharedModel> OpenInFloats(const std::string& path) {
  ModelOptions options;
  options.backend = "cpu";
  Result<SharedModel> model = Model::Open(path, options);
  if (model.ok() || model.status().code() != KINGLET_UNSUPPORTED) return model;
  options.backend = "ref";
  return Model::Open(path, options);
}

namespace {

// Gives the description every quantiser that it could have.
struct QuantiserMaker : PartsVisitor<QuantiserMaker> {
  template <class T>
  void Quantiser(const char* /*name*/, std::optional<T>& quantiser) {
    quantiser.emplace();
  }
  template <class T>
  void Quantisers(const char* /*name*/, std::optional<T>& quantisers) {
    quantisers.emplace();
  }
};

// What a quantiser will quantise.
struct SeenValues {
  Magnitudes magnitudes;
  int bits = 0;
};
using Seen = std::unordered_map<const ActivationQuantiser*, SeenValues>;

// Sets each quantiser by what was seen, and resets those without a point. Notes the first quantiser
// whose range is not finite.
class QuantiserSetter : public PartsVisitor<QuantiserSetter> {
 public:
  QuantiserSetter(const Seen& seen, const RangeRule& rule, std::string where)
      : seen_(seen), rule_(rule), where_(std::move(where)) {}

  const std::string& overflow() const { return overflow_; }

  void Quantiser(const char* name, ActivationQuantiser& quantiser) {
    const SeenValues& seen = seen_.at(&quantiser);
    const float range = seen.magnitudes.Range(rule_, seen.bits);
    if (!std::isfinite(range) && overflow_.empty()) overflow_ = where_ + ", " + name;
    quantiser = QuantiserFor(range, seen.bits);
  }
  void Quantiser(const char* name, std::optional<ActivationQuantiser>& quantiser) {
    if (seen_.contains(&*quantiser)) {
      Quantiser(name, *quantiser);
    } else {
      quantiser.reset();
    }
  }
  template <class T>
  void Quantisers(const char* /*name*/, std::optional<T>& quantisers) {
    Fields(*quantisers, *this);
  }
  void Part(const char* name, auto& part) {
    const std::string outer = std::exchange(where_, where_ + ", " + name);
    PartsVisitor::Part(name, part);
    where_ = outer;
  }
  void List(const char* name, auto& parts, size_t /*most*/) {
    for (size_t i = 0; i < parts.size(); ++i) Part(ItemName(name, i).c_str(), parts[i]);
  }

 private:
  const Seen& seen_;
  const RangeRule& rule_;
  std::string where_, overflow_;
};

// Both directions of a layer have one quantiser, that of the forward one.
void ShareQuantisers(const ModelDescription& description, std::vector<QuantiserPoint>& points) {
  const auto* encoder = FindBlock<RecurrentEncoder>(description);
  for (size_t i = 0; encoder != nullptr && i < encoder->backward.size(); ++i) {
    for (QuantiserPoint& point : points) {
      if (point.quantiser == &*encoder->backward[i].output) {
        point.quantiser = &*encoder->forward[i].output;
      }
    }
  }
}
void CopyShared(ModelDescription& description) {
  auto* encoder = FindBlock<RecurrentEncoder>(description);
  for (size_t i = 0; encoder != nullptr && i < encoder->backward.size(); ++i) {
    encoder->backward[i].output = encoder->forward[i].output;
  }
}

bool IsEncoder(const Block& block) {
  return std::holds_alternative<TransformerEncoder>(block) ||
         std::holds_alternative<RecurrentEncoder>(block);
}

// Feeds the input as `kinglet score` does.
Status Feed(const CalibrationInput& input, const ModelDescription& description, Session& session) {
  if (HasEncoder(description)) {
    for (size_t i = 0; i < input.pairs.size(); ++i) {
      const Status status = FeedPair(input.pairs[i], session, [](uint32_t) { return Status(); });
      if (!status.ok()) return InSentence(i, status);
    }
    return {};
  }
  if (IsMaskedModel(description)) {
    return ReadMasked(input.texts, session, [](const MaskedText&) { return Status(); });
  }
  for (const uint32_t token : ScoredStream(description, input.tokens)) {
    KINGLET_RETURN_IF_ERROR(session.StepToken(token));
  }
  return {};
}

int BitsAt(const QuantiserPoint& point, int bits) {
  return point.slots > 0 ? AttentionWeightBits(point.slots, bits) : bits;
}

// The name of each quantiser of a description (CalibrationInput::ranges).
struct QuantiserNames : PartsVisitor<QuantiserNames> {
  std::string path;
  std::unordered_map<const ActivationQuantiser*, std::string> names;

  void Quantiser(const char* name, const ActivationQuantiser& quantiser) {
    names.emplace(&quantiser, path + "." + name);
  }
  void Quantiser(const char* name, const std::optional<ActivationQuantiser>& quantiser) {
    if (quantiser) Quantiser(name, *quantiser);
  }
  template <class T>
  void Quantisers(const char* /*name*/, const std::optional<T>& quantisers) {
    if (quantisers) Fields(*quantisers, *this);
  }
  void Part(const std::string& name, const auto& part) {
    const std::string outer = std::exchange(path, path + "." + name);
    PartsVisitor::Part(name.c_str(), part);
    path = outer;
  }
  void List(const char* name, const auto& parts, size_t /*most*/) {
    for (size_t i = 0; i < parts.size(); ++i) Part(name + ("." + std::to_string(i)), parts[i]);
  }
};

// The given ranges as what was seen.
Result<Seen> Given(const ModelDescription& description, const std::vector<QuantiserPoint>& points,
                   const std::map<std::string, float>& ranges, int bits) {
  QuantiserNames named;
  for (const Block& block : description.blocks) {
    named.path = NameOf(block);
    std::visit([&named](const auto& value) { Fields(value, named); }, block);
  }
  Seen seen;
  std::set<std::string> used;
  for (const QuantiserPoint& point : points) {
    const std::string& name = named.names.at(point.quantiser);
    const auto range = ranges.find(name);
    if (range == ranges.end()) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "calibration", name, "its range", "none");
    }
    used.insert(name);
    SeenValues& values = seen[point.quantiser];
    values.bits = BitsAt(point, bits);
    values.magnitudes.Add({&range->second, 1});
  }
  for (const auto& [name, range] : ranges) {
    if (used.contains(name)) continue;
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "calibration", name,
                           "the name of a quantiser, such as " + *used.begin(), "another name");
  }
  return seen;
}

Result<Seen> Measure(const SharedModel& model, const std::vector<QuantiserPoint>& points,
                     const CalibrationInput& input, int bits) {
  Seen seen;
  std::unordered_map<const Node*, std::vector<std::pair<Slot, Magnitudes*>>> of_nodes;
  for (const QuantiserPoint& point : points) {
    SeenValues& values = seen[point.quantiser];
    values.bits = BitsAt(point, bits);
    of_nodes[&model->plan().nodes[point.node]].emplace_back(
        model->layout().slots[static_cast<size_t>(point.buffer)], &values.magnitudes);
  }
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model));
  session->set_observer([&of_nodes](const Node& node, std::span<const StreamFrame> frames) {
    const auto found = of_nodes.find(&node);
    if (found == of_nodes.end()) return;
    for (const auto& [slot, magnitudes] : found->second) {
      for (const StreamFrame& frame : frames) {
        magnitudes->Add({slot.At<float>(frame), slot.count});
      }
    }
  });
  KINGLET_RETURN_IF_ERROR(Feed(input, model->file().description(), *session));
  return seen;
}

}  // namespace

Result<ModelDescription> Calibrated(const SharedModel& model, const CalibrationInput& input,
                                    const RangeRule& rule) {
  ModelDescription description = model->file().description();
  for (Block& block : description.blocks) {
    std::visit(
        [](auto& value) {
          QuantiserMaker maker;
          Fields(value, maker);
        },
        block);
  }
  std::vector<QuantiserPoint> points;
  KINGLET_RETURN_IF_ERROR(Lower(description, model->file().tensors(), &points).status());
  if (points.empty()) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "calibration", "model", "a decoder or an encoder",
                           "none");
  }
  ShareQuantisers(description, points);
  KINGLET_ASSIGN_OR_RETURN(
      const Seen seen, input.ranges.empty() ? Measure(model, points, input, rule.bits)
                                            : Given(description, points, input.ranges, rule.bits));
  std::string overflow;
  for (Block& block : description.blocks) {
    QuantiserSetter setter(seen, rule, "block " + NameOf(block));
    std::visit([&](auto& value) { Fields(value, setter); }, block);
    // An overflow in an encoder reaches the decoder.
    if (overflow.empty() || (IsEncoder(block) && !setter.overflow().empty())) {
      overflow = setter.overflow();
    }
  }
  if (!overflow.empty()) {
    return Status::Refusal(KINGLET_NOT_FINITE, "calibration", overflow, "finite activations",
                           "infinity or NaN");
  }
  CopyShared(description);
  UseFixedPointInputs(description);
  CountBins(input, description);
  return description;
}

Result<ModelDescription> Calibrated(const std::string& path, const CalibrationInput& input,
                                    const RangeRule& rule) {
  KINGLET_ASSIGN_OR_RETURN(const SharedModel model, OpenInFloats(path));
  return Calibrated(model, input, rule);
}

}  // namespace kinglet
