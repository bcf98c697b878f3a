// Calibration: activation quantisers for a model trained in floats. The range of each quantiser
// comes from the absolute values that the model computes at its point on a text, or, for a
// translation model, on pairs of sentences (RangeRule). The text also gives the frequencies of the
// embedding's bins.
#ifndef KINGLET_CONVERTERS_PASSES_CALIBRATE_H_
#define KINGLET_CONVERTERS_PASSES_CALIBRATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converters/passes/magnitudes.h"
#include "converters/texts/masked_file.h"
#include "converters/texts/pair_file.h"
#include "format/blocks.h"
#include "format/text_tables.h"
#include "kinglet/status.h"

namespace kinglet {

class Model;
using SharedModel = std::shared_ptr<const Model>;

// The ids of a text, tokenized by `tokenizer` or split at white space. Errors: those of
// ReadTextFile (converters/texts/text_reader.h); KINGLET_INVALID_ARGUMENT for a text without
// tokens.
Result<std::vector<uint32_t>> ReadCalibrationText(const std::string& path,
                                                  std::span<const std::string> vocabulary,
                                                  const std::optional<TextTables>& tokenizer);

// Bits of the quantiser of attention weights. In a window of n slots a weight is 1 / n on average.
// Up to 257 slots, the widest window that was trained with quantised weights, `bits` resolve such
// weights. Wider windows get one more bit for each doubling, as long as sums of weights times
// values of `bits` stay below 2^31. REQUIRES: window >= 1.
int AttentionWeightBits(uint32_t window, int bits);

// A quantiser as the framework makes it: max_abs is the range, the scale is range / (2^(bits-1)
// - 1) with its low `bits` mantissa bits cleared. A range below 1e-30 counts as 1e-6.
ActivationQuantiser QuantiserFor(float range, int bits);

// Running text, pairs for a model with an encoder, or texts for a masked model. Each text is read
// unchanged, and again with masks if the model predicts words (WithMasks,
// converters/texts/masked_file.h).
struct CalibrationInput {
  std::vector<uint32_t> tokens = {};
  std::vector<SentencePair> pairs = {};
  std::vector<MaskedText> texts = {};
  // Instead of all these, the range of each quantiser, by its path of fields in `kinglet inspect
  // --json` without "quantisers": "recurrent.layers.0.output". Nothing runs then.
  std::map<std::string, float> ranges = {};
  std::vector<std::string> notes = {};  // for the user
};
// Reads a text, without a vocabulary ids (converters/texts/token_file.h), or, for a model with an
// encoder, pairs of ids (converters/texts/pair_file.h). Errors: KINGLET_INVALID_ARGUMENT for ids
// that the model has no words for, and for a masked model without a tokenizer; those of reading.
Result<CalibrationInput> ReadCalibration(const std::string& path,
                                         const ModelDescription& description,
                                         std::span<const std::string> vocabulary,
                                         const std::optional<TextTables>& tokenizer);

// A model file on the fastest backend of this build that computes it in float. Errors: those of
// opening it.
Result<SharedModel> OpenInFloats(const std::string& path);

// The description of a model, with quantisers and bin frequencies from the input. A quantiser's
// range comes from the magnitudes that the model computes at its point (QuantiserPoint,
// runtime/lower/builder.h), by the rule; both directions of an encoder's layer share one. Tails and
// dense layers then read fixed point. The model runs over the input as `kinglet score` runs it.
// REQUIRES: the model has no quantisers, and its backend computes in float.
// Errors: KINGLET_UNSUPPORTED for a model without a decoder or an encoder; KINGLET_NOT_FINITE if an
// activation overflows, which names the quantiser; KINGLET_INVALID_ARGUMENT for a quantiser
// without a range or a range without a quantiser; those of running the model, which name the pair.
Result<ModelDescription> Calibrated(const SharedModel& model, const CalibrationInput& input,
                                    const RangeRule& rule);
// Of a model file, as OpenInFloats opens it. Errors: those of opening it, too.
Result<ModelDescription> Calibrated(const std::string& path, const CalibrationInput& input,
                                    const RangeRule& rule);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_CALIBRATE_H_
