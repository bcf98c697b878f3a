// Edits that each break one rule of a model file, and the check that each is refused.
#ifndef KINGLET_TESTS_FORMAT_HOSTILE_EDITS_H_
#define KINGLET_TESTS_FORMAT_HOSTILE_EDITS_H_

#include <functional>
#include <span>
#include <string>

#include "tests/format/editable_file.h"

namespace kinglet {

struct HostileEdit {
  const char* where;  // what the message's WHERE must contain
  std::function<void(EditableFile&)> edit;
  StatusCode code = KINGLET_INVALID_MODEL;
};

// A valid file with every kind of segment and the blocks of a MicroNet: three bins of a quantised,
// pruned model with 5 bits, a neural cache, a vocabulary and a golden vector.
EditableFile GoodFile();
// A valid file of a calibrated recurrent model: QRNN, GRU and LSTM, two tails, a neural cache.
EditableFile GoodRecurrentFile();
// A valid file of a pre-norm Transformer with relative positions and a start, biases and a final
// norm.
EditableFile GoodTransformerFile();
// A valid file of an encoder and a decoder, both vocabularies and a golden vector with its source.
EditableFile GoodTranslationFile();
// A valid file of an embedding with a classifier: padding, maximum and hidden layer.
EditableFile GoodClassifierFile();

// Applies each edit to a copy of the file, repairs all digests and expects the refusal.
void ExpectRefused(std::span<const HostileEdit> edits, EditableFile good = GoodFile());

}  // namespace kinglet

#endif  // KINGLET_TESTS_FORMAT_HOSTILE_EDITS_H_
