// Checks blocks, golden vector and vocabulary size.
#include "format/validate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "format/block_checks.h"
#include "format/limits.h"
#include "format/message_text.h"
#include "format/overloaded.h"
#include "format/small_build.h"
#include "format/validate_decoders.h"
#include "format/validate_define.h"
#include "format/validate_dense.h"
#include "format/validate_encoder.h"
#include "format/validate_masked.h"
#include "format/validate_recurrent.h"

namespace kinglet {
namespace {

class DescriptionValidator : private BlockChecks {
 public:
  DescriptionValidator(const std::string& origin, const ModelDescription& description,
                       std::span<const TensorView> tensors)
      : BlockChecks(origin, tensors), description_(description) {}

  Status Validate() {
    KINGLET_RETURN_IF_ERROR(
        ValidateRange("vocabulary size", description_.vocabulary_size, 1, kMaxDimension));
    for (size_t i = 0; i < description_.blocks.size(); ++i) {
      KINGLET_RETURN_IF_ERROR(
          ValidateName(origin_, Numbered("block", i) + ", name", NameOf(description_.blocks[i])));
    }
    KINGLET_RETURN_IF_ERROR(ValidateKinds());
    for (const Block& block : description_.blocks) {
      KINGLET_RETURN_IF_ERROR(std::visit(
          [this](const auto& value) {
            EnterBlock(value.name);
            if constexpr (kLeftOut<std::decay_t<decltype(value)>, BagClassifier, TransformerEncoder,
                                   RecurrentEncoder, MaskedModel>) {
              return LeftOut(origin_, "block " + value.name, "a block of a language model",
                             std::string(kBlockKinds[Block(value).index()]));
            } else {
              return ValidateBlock(value);
            }
          },
          block));
    }
    KINGLET_RETURN_IF_ERROR(ValidateStartAndEnd());
    if (description_.golden) KINGLET_RETURN_IF_ERROR(ValidateGolden(*description_.golden));
    return {};
  }

 private:
  // Which blocks a model may have: those of ModelDescription::blocks.
  Status ValidateKinds() const {
    uint64_t embeddings = 0, decoders = 0, softmaxes = 0, caches = 0, classifiers = 0, encoders = 0;
    uint64_t inputs = 0, outputs = 0;  // dense layers
    uint64_t masked = 0;
    for (const Block& block : description_.blocks) {
      std::visit(Overloaded{[&](const AdaptiveEmbedding&) { ++embeddings; },
                            [&](const TransformerDecoder&) { ++decoders; },
                            [&](const RecurrentDecoder&) { ++decoders; },
                            [&](const AdaptiveSoftmax&) { ++softmaxes; },
                            [&](const NeuralCache&) { ++caches; },
                            [&](const BagClassifier&) { ++classifiers; },
                            [&](const TransformerEncoder&) { ++encoders; },
                            [&](const RecurrentEncoder&) { ++encoders; },
                            [&](const MaskedModel&) { ++masked; },
                            [&](const DenseLayers& dense) {
                              ++(dense.place == DensePlace::kInput ? inputs : outputs);
                            }},
                 block);
    }
    const auto check = [this](const char* kind, uint64_t found, bool optional) -> Status {
      if (found == 1 || (optional && found == 0)) return {};
      return Invalid("blocks", std::string(optional ? "at most" : "exactly") + " one " + kind,
                     std::to_string(found));
    };
    KINGLET_RETURN_IF_ERROR(check("adaptive embedding", embeddings, false));
    if (masked > 0) {
      KINGLET_RETURN_IF_ERROR(check("masked model", masked, false));
      if (decoders + encoders + caches + classifiers + inputs > 0) {
        return Invalid("blocks", "no decoder, encoder, cache or input layers in a masked model",
                       "some");
      }
      KINGLET_RETURN_IF_ERROR(check("block of dense output layers", outputs, true));
      KINGLET_RETURN_IF_ERROR(check("adaptive softmax", softmaxes, outputs == 0));
      return softmaxes + outputs == 1
                 ? Invalid("blocks", "dense output layers before a masked model's softmax", "none")
                 : Status();
    }
    if (!IsLanguageModel(description_)) return check("bag classifier", classifiers, true);
    if (classifiers > 0) {
      return Invalid("blocks", "no classifier with a decoder, a softmax or a cache",
                     std::to_string(classifiers));
    }
    KINGLET_RETURN_IF_ERROR(check("decoder", decoders, false));
    KINGLET_RETURN_IF_ERROR(check("encoder", encoders, true));
    KINGLET_RETURN_IF_ERROR(check("block of dense input layers", inputs, true));
    KINGLET_RETURN_IF_ERROR(check("block of dense output layers", outputs, true));
    if (encoders > 0) KINGLET_RETURN_IF_ERROR(ValidateWithEncoder());
    KINGLET_RETURN_IF_ERROR(check("adaptive softmax", softmaxes, false));
    return check("neural cache", caches, true);
  }

  Status ValidateWithEncoder() const {
    const auto* decoder = FindBlock<TransformerDecoder>(description_);
    const bool recurrent = FindBlock<RecurrentEncoder>(description_) != nullptr;
    if ((decoder == nullptr) != recurrent) {
      return Invalid("blocks",
                     recurrent ? "a recurrent decoder with a recurrent encoder"
                               : "a Transformer decoder with an encoder",
                     "another decoder");
    }
    if (decoder != nullptr && decoder->norm_order == NormOrder::kEnd) {
      return Invalid("blocks", "a decoder with a norm for each part, as the model has an encoder",
                     "another");
    }
    if (FindBlock<DenseLayers>(description_) != nullptr) {
      return Invalid("blocks", "no dense layers with an encoder", "some");
    }
    if (FindBlock<NeuralCache>(description_) != nullptr) {
      return Invalid("blocks", "no cache with an encoder", "one");
    }
    if (description_.start_token) return {};
    return Invalid("start token", "one, as the model has an encoder", "none");
  }

  // A table of `size` words and the projection between its columns and the width. `inward`: the
  // projection is [columns, width], otherwise [width, columns].
  Status ValidateTable(const std::string& part, TensorId table, uint64_t size,
                       const std::optional<TensorId>& projection, uint64_t width,
                       bool inward) const {
    if (table >= tensors_.size()) return ValidateTensorShape(part + ", table", table, {});
    if (!projection) return ValidateTensorShape(part + ", table", table, {size, width});
    const uint64_t columns = Cols(tensors_[table].shape);
    KINGLET_RETURN_IF_ERROR(ValidateTensorShape(part + ", table", table, {size, columns}));
    return ValidateTensorShape(part + ", projection", *projection,
                               inward ? Shape{columns, width} : Shape{width, columns});
  }

  // Words [first, first + size) of a vocabulary of `words` must follow the `covered` words before.
  Status ValidateWords(const std::string& part, uint64_t first, uint64_t size, uint64_t words,
                       uint64_t& covered) const {
    if (first != covered) {
      return InvalidPart(part + ", first word", std::to_string(covered), std::to_string(first));
    }
    KINGLET_RETURN_IF_ERROR(ValidateRange(part + ", size", size, 1, words - covered));
    covered += size;
    return {};
  }

  Status ValidateCoverage(uint64_t words, uint64_t covered) const {
    if (covered == words) return {};
    return InvalidPart("words", std::to_string(words) + " words covered", std::to_string(covered));
  }

  // Widths of the decoder's input, which is the embedding's, and of its output, the softmax's.
  struct DecoderWidths {
    uint64_t input = 0, output = 0;
  };
  DecoderWidths Widths() const {
    DecoderWidths widths;
    for (const Block& block : description_.blocks) {
      std::visit(Overloaded{[&](const TransformerDecoder& decoder) {
                              widths = {decoder.width, decoder.width};
                            },
                            [&](const RecurrentDecoder& decoder) {
                              widths.input = decoder.inputs;
                              // A decoder without layers is refused when it is validated.
                              if (!decoder.layers.empty()) {
                                widths.output = decoder.layers.back().Outputs();
                              }
                            },
                            [](const AdaptiveEmbedding&) {}, [](const AdaptiveSoftmax&) {},
                            [](const NeuralCache&) {}, [](const BagClassifier&) {},
                            [](const TransformerEncoder&) {}, [](const DenseLayers&) {},
                            [](const RecurrentEncoder&) {},
                            [&](const MaskedModel& model) {
                              widths = {model.stack.width, model.stack.width};
                            }},
                 block);
    }
    return widths;
  }
  // `other`: the width of the neighbouring block, which is the decoder unless dense layers are
  // between.
  Status ValidateWidth(uint64_t width, uint64_t other, DensePlace place) const {
    KINGLET_RETURN_IF_ERROR(ValidateExtent("width", width));
    if (width == other || FindDenseLayers(description_, place) != nullptr) return {};
    return InvalidPart("width", "the decoder's " + std::to_string(other), std::to_string(width));
  }

  // Input layers map the embedding's width to the decoder's, output layers the decoder's to the
  // softmax's.
  Status ValidateBlock(const DenseLayers& dense) const {
    if (dense.place == DensePlace::kInput) {
      return ValidateDense(*this, dense, FindBlock<AdaptiveEmbedding>(description_)->width,
                           Widths().input);
    }
    return ValidateDense(*this, dense, Widths().output,
                         FindBlock<AdaptiveSoftmax>(description_)->width);
  }

  Status ValidateBlock(const AdaptiveEmbedding& embedding) const {
    const bool has_layers = IsLanguageModel(description_) || IsMaskedModel(description_);
    KINGLET_RETURN_IF_ERROR(has_layers
                                ? ValidateWidth(embedding.width, Widths().input, DensePlace::kInput)
                                : ValidateExtent("width", embedding.width));
    return ValidateEmbedding(embedding, description_.vocabulary_size,
                             !IsMaskedModel(description_) && !HasEncoder(description_));
  }

  Status ValidateBlock(const TransformerEncoder& encoder) const {
    const uint64_t words = encoder.vocabulary_size;
    KINGLET_RETURN_IF_ERROR(ValidateRange("vocabulary size", words, 1, kMaxDimension));
    KINGLET_RETURN_IF_ERROR(ValidateEncoder(*this, encoder));
    if (encoder.embedding.width != encoder.stack.width) {
      return InvalidPart("width", "the stack's " + std::to_string(encoder.stack.width),
                         std::to_string(encoder.embedding.width));
    }
    return ValidateEmbedding(encoder.embedding, words);
  }

  Status ValidateBlock(const RecurrentEncoder& encoder) const {
    const uint64_t words = encoder.vocabulary_size;
    KINGLET_RETURN_IF_ERROR(ValidateRange("vocabulary size", words, 1, kMaxDimension));
    KINGLET_RETURN_IF_ERROR(ValidateExtent("width", encoder.embedding.width));
    KINGLET_RETURN_IF_ERROR(
        ValidateEncoder(*this, encoder, *FindBlock<RecurrentDecoder>(description_)));
    return ValidateEmbedding(encoder.embedding, words);
  }

  Status ValidateBlock(const MaskedModel& model) const {
    KINGLET_RETURN_IF_ERROR(ValidateMasked(*this, model));
    if (model.segments.width != model.stack.width) {
      return InvalidPart("segments, width", "the stack's " + std::to_string(model.stack.width),
                         std::to_string(model.segments.width));
    }
    return ValidateEmbedding(model.segments, SegmentsOf(model));
  }

  // Checks all but the width. `words`: size of the vocabulary that the bins must cover. `spells`:
  // whether a bin may have a spelling; texts that an encoder reads are not spelt.
  Status ValidateEmbedding(const AdaptiveEmbedding& embedding, uint64_t words,
                           bool spells = false) const {
    KINGLET_RETURN_IF_ERROR(ValidatePositive("scale", embedding.scale));
    KINGLET_RETURN_IF_ERROR(ValidateRange("bins", embedding.bins.size(), 1, kMaxBins));
    KINGLET_RETURN_IF_ERROR(ValidateUnits(*this, embedding));
    uint64_t covered = 0;
    for (size_t i = 0; i < embedding.bins.size(); ++i) {
      const KeptDefineUnit* const unit = UnitOf(embedding.units, i);
      const uint64_t width = unit == nullptr ? embedding.width : unit->unit.map_width;
      const EmbeddingBin& bin = embedding.bins[i];
      const std::string part = Numbered("bin", i);
      KINGLET_RETURN_IF_ERROR(ValidateWords(part, bin.first, bin.size, words, covered));
      KINGLET_RETURN_IF_ERROR(ValidatePositive(part + ", scale", bin.scale));
      if (bin.spelling) {
        if constexpr (kSmallBuild) {
          return LeftOut(origin_, part, "a table of words", "a character CNN");
        }
        if (!spells) {
          return InvalidPart(part + ", spelling", "none with an encoder", "one");
        }
        KINGLET_RETURN_IF_ERROR(ValidateSpelling(*this, embedding, i, part));
        continue;
      }
      KINGLET_RETURN_IF_ERROR(
          ValidateTable(part, bin.table, bin.size, bin.projection, width, false));
      if (bin.projection) {
        KINGLET_RETURN_IF_ERROR(ValidateNotCoded(part + ", projection", *bin.projection));
      }
    }
    return ValidateCoverage(words, covered);
  }

  Status ValidateBlock(const TransformerDecoder& decoder) const {
    KINGLET_RETURN_IF_ERROR(ValidateDecoder(*this, decoder));
    if (decoder.masked_token && *decoder.masked_token >= description_.vocabulary_size) {
      return InvalidPart("masked token",
                         "an id below " + std::to_string(description_.vocabulary_size),
                         std::to_string(*decoder.masked_token));
    }
    return ValidateCrossAttention(*this, decoder, FindBlock<TransformerEncoder>(description_));
  }
  Status ValidateBlock(const RecurrentDecoder& decoder) const {
    KINGLET_RETURN_IF_ERROR(ValidateDecoder(*this, decoder));
    return ValidateGlobalAttention(*this, decoder, FindBlock<RecurrentEncoder>(description_));
  }

  Status ValidateBlock(const AdaptiveSoftmax& softmax) const {
    KINGLET_RETURN_IF_ERROR(ValidateWidth(softmax.width, Widths().output, DensePlace::kOutput));
    const uint64_t tails = softmax.tails.size();
    KINGLET_RETURN_IF_ERROR(ValidateRange("tails", tails, 0, kMaxBins - 1));
    KINGLET_RETURN_IF_ERROR(
        ValidateEnumerator("tail input", softmax.tail_input, TailInput::kFixedPoint15));
    KINGLET_RETURN_IF_ERROR(
        ValidateEnumerator("normalisation", softmax.normalisation, Normalisation::kWhole));
    uint64_t covered = 0;
    KINGLET_RETURN_IF_ERROR(ValidateHead(softmax, covered));
    std::vector<bool> taken(tails);  // cluster rows
    for (size_t i = 0; i < tails; ++i) {
      KINGLET_RETURN_IF_ERROR(
          ValidateTail(softmax, Numbered("tail", i), softmax.tails[i], covered));
      const uint32_t row = softmax.tails[i].cluster_row;
      if (row >= tails || taken[row]) {
        return InvalidPart(Numbered("tail", i) + ", cluster row",
                           "a row below " + std::to_string(tails) + " of its own",
                           std::to_string(row));
      }
      taken[row] = true;
    }
    return ValidateCoverage(description_.vocabulary_size, covered);
  }

  // The head cluster: its words and the rows of the tail clusters.
  Status ValidateHead(const AdaptiveSoftmax& softmax, uint64_t& covered) const {
    const uint64_t tails = softmax.tails.size();
    const bool words = softmax.head_size > 0;
    const char* const words_reason = words ? "the head has words" : "the head has no words";
    const char* const tails_reason = tails > 0 ? "there are tails" : "there are no tails";
    KINGLET_RETURN_IF_ERROR(
        ValidatePresence("head, table", softmax.head_table.has_value(), words, words_reason));
    KINGLET_RETURN_IF_ERROR(ValidatePresence("cluster weight", softmax.cluster_weight.has_value(),
                                             tails > 0, tails_reason));
    uint64_t columns = softmax.width;
    if (words) {
      KINGLET_RETURN_IF_ERROR(
          ValidateWords("head", 0, softmax.head_size, description_.vocabulary_size, covered));
      KINGLET_RETURN_IF_ERROR(ValidateTable("head", *softmax.head_table, softmax.head_size,
                                            softmax.head_projection, softmax.width, true));
      columns = Cols(tensors_[*softmax.head_table].shape);
    } else if (tails == 0) {
      return InvalidPart("head, size", "1 or more words, as there are no tails", "0");
    } else if (softmax.head_projection) {
      const TensorId clusters = *softmax.cluster_weight;
      if (clusters >= tensors_.size()) return ValidateTensorShape("cluster weight", clusters, {});
      columns = Cols(tensors_[clusters].shape);
      KINGLET_RETURN_IF_ERROR(ValidateTensorShape("head, projection", *softmax.head_projection,
                                                  {columns, softmax.width}));
    }
    if (softmax.head_bias) {
      KINGLET_RETURN_IF_ERROR(ValidatePresence("head, bias", true, words, words_reason));
    }
    KINGLET_RETURN_IF_ERROR(ValidateOptional("head, bias", softmax.head_bias, {softmax.head_size}));
    KINGLET_RETURN_IF_ERROR(
        ValidateOptional("cluster weight", softmax.cluster_weight, {tails, columns}));
    if (softmax.cluster_bias) {
      KINGLET_RETURN_IF_ERROR(ValidatePresence("cluster bias", true, tails > 0, tails_reason));
    }
    return ValidateOptional("cluster bias", softmax.cluster_bias, {tails});
  }

  Status ValidateTail(const AdaptiveSoftmax& softmax, const std::string& part,
                      const SoftmaxTail& tail, uint64_t& covered) const {
    KINGLET_RETURN_IF_ERROR(
        ValidateWords(part, tail.first, tail.size, description_.vocabulary_size, covered));
    KINGLET_RETURN_IF_ERROR(
        ValidateTable(part, tail.table, tail.size, tail.projection, softmax.width, true));
    return ValidateOptional(part + ", bias", tail.bias, {tail.size});
  }

  Status ValidateBlock(const NeuralCache& cache) const {
    KINGLET_RETURN_IF_ERROR(ValidateRange("capacity", cache.capacity, 1, kMaxCacheCapacity));
    KINGLET_RETURN_IF_ERROR(ValidatePositive("theta", cache.theta));
    // Written so that NaN is refused.
    if (!(cache.lambda > 0 && cache.lambda < 1)) {
      return InvalidPart("lambda", "a number between 0 and 1", NumberText(cache.lambda));
    }
    return ValidateEnumerator("start", cache.start, CacheStart::kPastCapacity);
  }

  Status ValidateBlock(const BagClassifier& classifier) const {
    const uint64_t width = FindBlock<AdaptiveEmbedding>(description_)->width;
    KINGLET_RETURN_IF_ERROR(ValidateExtent("classes", classifier.classes));
    if (classifier.padding && *classifier.padding >= description_.vocabulary_size) {
      return InvalidPart("padding", "a word below " + std::to_string(description_.vocabulary_size),
                         std::to_string(*classifier.padding));
    }
    uint64_t inputs = classifier.max_pool ? 2 * width : width;
    if (const auto& hidden = classifier.hidden) {
      const uint64_t units =
          hidden->weight < tensors_.size() ? Rows(tensors_[hidden->weight].shape) : 0;
      KINGLET_RETURN_IF_ERROR(
          ValidateTensorShape("hidden weight", hidden->weight, {units, inputs}));
      KINGLET_RETURN_IF_ERROR(ValidateExtent("rows of the hidden weight", units));
      KINGLET_RETURN_IF_ERROR(ValidateOptional("input scale", hidden->input_scale, {inputs}));
      KINGLET_RETURN_IF_ERROR(ValidateOptional("input shift", hidden->input_shift, {inputs}));
      KINGLET_RETURN_IF_ERROR(ValidateOptional("hidden bias", hidden->bias, {units}));
      KINGLET_RETURN_IF_ERROR(ValidateOptional("output scale", hidden->output_scale, {units}));
      KINGLET_RETURN_IF_ERROR(ValidateOptional("output shift", hidden->output_shift, {units}));
      inputs = units;
    }
    KINGLET_RETURN_IF_ERROR(
        ValidateTensorShape("weight", classifier.weight, {classifier.classes, inputs}));
    return ValidateOptional("bias", classifier.bias, {classifier.classes});
  }

  Status ValidateStartAndEnd() const {
    const auto validate = [this](const std::string& name,
                                 const std::optional<uint32_t>& token) -> Status {
      if (!token) return {};
      if (!IsLanguageModel(description_)) {
        return Invalid(name, "none, as the model predicts no words", "one");
      }
      if (*token < description_.vocabulary_size) return {};
      return Invalid(name, "an id below " + std::to_string(description_.vocabulary_size),
                     std::to_string(*token));
    };
    KINGLET_RETURN_IF_ERROR(validate("start token", description_.start_token));
    return validate("end token", description_.end_token);
  }

  Status ValidateGolden(const GoldenVector& golden) const {
    const bool masked = IsMaskedModel(description_);
    if (masked ? FindBlock<AdaptiveSoftmax>(description_) == nullptr
               : !IsLanguageModel(description_)) {
      return Invalid("golden vector", "none, as the model predicts no words", "one");
    }
    const size_t unscored = description_.start_token || masked ? 0 : 1;
    if (golden.ids.size() <= unscored) {
      return Invalid("golden vector, ids", "at least " + std::to_string(unscored + 1),
                     std::to_string(golden.ids.size()));
    }
    const size_t values = masked ? golden.positions.size() : golden.ids.size() - unscored;
    if (golden.log_probabilities.size() != values) {
      return Invalid("golden vector, log-probabilities", std::to_string(values),
                     std::to_string(golden.log_probabilities.size()));
    }
    KINGLET_RETURN_IF_ERROR(ValidateIds("id", golden.ids, description_.vocabulary_size));
    KINGLET_RETURN_IF_ERROR(masked ? ValidateGoldenText(golden) : ValidateGoldenSource(golden));
    for (size_t i = 0; i < golden.log_probabilities.size(); ++i) {
      const double value = golden.log_probabilities[i];
      if (!std::isfinite(value) || value > 0) {
        return Invalid(Numbered("golden vector, log-probability", i), "a finite number up to 0",
                       NumberText(value));
      }
    }
    if (!std::isfinite(golden.tolerance) || golden.tolerance < 0) {
      return Invalid("golden vector, tolerance", "a finite number from 0",
                     NumberText(golden.tolerance));
    }
    return {};
  }

  // Checks the ids, segments and positions that a masked model reads.
  Status ValidateGoldenText(const GoldenVector& golden) const {
    const auto& model = *FindBlock<MaskedModel>(description_);
    const size_t tokens = golden.ids.size();
    if (tokens > model.stack.window) {
      return Invalid("golden vector, ids", "at most " + std::to_string(model.stack.window),
                     std::to_string(tokens));
    }
    if (!golden.source_ids.empty()) {
      return Invalid("golden vector, source ids", "none", std::to_string(golden.source_ids.size()));
    }
    if (!golden.segments.empty() && golden.segments.size() != tokens) {
      return Invalid("golden vector, segments", std::to_string(tokens) + " or none",
                     std::to_string(golden.segments.size()));
    }
    KINGLET_RETURN_IF_ERROR(ValidateIds("segment", golden.segments, SegmentsOf(model)));
    if (golden.positions.empty())
      return Invalid("golden vector, positions", "at least one", "none");
    KINGLET_RETURN_IF_ERROR(
        ValidateIds("position", golden.positions, static_cast<uint32_t>(tokens)));
    if (std::adjacent_find(golden.positions.begin(), golden.positions.end(),
                           std::greater_equal<>()) != golden.positions.end()) {
      return Invalid("golden vector, positions", "ascending positions", "others");
    }
    if (!golden.mask || *golden.mask >= description_.vocabulary_size) {
      return Invalid("golden vector, mask",
                     "an id below " + std::to_string(description_.vocabulary_size),
                     golden.mask ? std::to_string(*golden.mask) : "none");
    }
    return {};
  }

  Status ValidateIds(const char* what, std::span<const uint32_t> ids, uint32_t words) const {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < words) continue;
      return Invalid("golden vector, " + Numbered(what, i),
                     "a number below " + std::to_string(words), std::to_string(ids[i]));
    }
    return {};
  }

  Status ValidateGoldenSource(const GoldenVector& golden) const {
    if (!golden.segments.empty() || !golden.positions.empty() || golden.mask) {
      return Invalid("golden vector", "no segments, positions and mask, which masked models have",
                     "some");
    }
    const auto source = FindSource(description_);
    const uint64_t longest = source ? source->window : 0;
    const uint64_t shortest = source ? 1 : 0;
    if (golden.source_ids.size() < shortest || golden.source_ids.size() > longest) {
      return Invalid("golden vector, source ids",
                     std::to_string(shortest) + " to " + std::to_string(longest),
                     std::to_string(golden.source_ids.size()));
    }
    return ValidateIds("source id", golden.source_ids, SourceVocabularySize(description_));
  }

  const ModelDescription& description_;
};

}  // namespace

Status ValidateDescription(const std::string& origin, const ModelDescription& description,
                           std::span<const TensorView> tensors) {
  return DescriptionValidator(origin, description, tensors).Validate();
}

}  // namespace kinglet
