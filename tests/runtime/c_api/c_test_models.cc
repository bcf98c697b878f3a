// The models of the tests in C.
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "format/write_file.h"
#include "format/writer.h"
#include "runtime/ngrams/ngram_table.h"
#include "tests/format/editable_file.h"
#include "tests/runtime/c_api/c_tests.h"
#include "tests/support/classifier_builder.h"
#include "tests/support/masked_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet {
namespace {

// Every number becomes as large as a float can be.
void Overflow(ModelDraft& draft) {
  for (EncodedTensor& tensor : draft.tensors) {
    if (auto* dense = std::get_if<DenseF32>(&tensor.values)) {
      for (float& value : dense->values) value = value < 0 ? -3e38F : 3e38F;
    }
  }
}

ModelDraft MaskedDraftOf(test_model which) {
  if (which == TEST_MODEL_MASKED_WORDS) return TinyMasked({.pooler = false});
  if (which == TEST_MODEL_MASKED_ANSWERS) {
    return TinyMasked({.words = false, .pooler = false, .scores = 2, .scored = ScoredPart::kSpans});
  }
  ModelDraft draft = TinyMasked({.scores = 3});
  WordPieceTables pieces;
  pieces.pieces = draft.vocabulary;
  draft.tokenizer = TextTables{false, pieces};
  if (which == TEST_MODEL_MASKED_OVERFLOWS) Overflow(draft);
  return draft;
}

ModelDraft DraftOf(test_model which) {
  if (which >= TEST_MODEL_MASKED) return MaskedDraftOf(which);
  if (which == TEST_MODEL_CLASSIFIER) {
    return TinyClassifier({.vocabulary_size = TEST_WORDS, .hidden = 5});
  }
  if (which == TEST_MODEL_TRANSLATION) {
    return TinyTranslation({.source_words = TEST_SOURCE_WORDS, .target_words = TEST_WORDS});
  }
  if (which == TEST_MODEL_POSITIONS) {
    ModelDraft draft = TinyTransformer({.positions = TinyPositions::kAbsolute, .window = 5});
    draft.description.start_token = 2;
    return draft;
  }
  TinyOptions options;
  options.vocabulary_size = TEST_WORDS;
  options.vocabulary = which != TEST_MODEL_IDS_ONLY;
  const bool has_cache =
      which == TEST_MODEL_CACHE || which == TEST_MODEL_OTHER || which == TEST_MODEL_SENSELESS;
  options.cache_capacity = has_cache ? 4 : 0;
  options.seed = which == TEST_MODEL_OTHER ? 2 : 1;
  ModelDraft draft = TinyMicronet(options);
  if (which == TEST_MODEL_TEXT) draft.tokenizer = TextTables{false, WordRule{}};
  if (which == TEST_MODEL_OVERFLOWS) Overflow(draft);
  return draft;
}

std::vector<std::byte> MakeModel(test_model which) {
  auto bytes = SerialiseModel(DraftOf(which));
  if (!bytes.ok()) return {};
  if (which == TEST_MODEL_DAMAGED) (*bytes)[bytes->size() / 2] ^= std::byte{1};
  if (which == TEST_MODEL_OF_ANOTHER_VERSION) {
    (*bytes)[8] = std::byte{2};  // docs/FORMAT.md, the frame
    RepairFrame(*bytes);
  }
  if (which == TEST_MODEL_SENSELESS) {
    EditableFile file = EditableFile::FromBytes(*bytes);
    file.Cache().capacity = 0;
    return file.Build();
  }
  return *bytes;
}

}  // namespace
}  // namespace kinglet

test_bytes TestModel(test_model which) {
  static const auto models = [] {
    std::vector<std::vector<std::byte>> all;
    for (int i = TEST_MODEL_PLAIN; i < TEST_MODELS; ++i) {
      all.push_back(kinglet::MakeModel(static_cast<test_model>(i)));
    }
    return all;
  }();
  const std::vector<std::byte>& bytes = models[which];
  return {bytes.data(), bytes.size()};
}

const char* TestFile(test_bytes bytes) {
  static std::string path;
  std::error_code error;
  path = (std::filesystem::temp_directory_path(error) / "kinglet_c_test_XXXXXX").string();
  const int descriptor = mkstemp(path.data());
  if (descriptor < 0) return "";
  close(descriptor);
  const auto* data = static_cast<const std::byte*>(bytes.data);
  if (!kinglet::WriteFileAtomically({data, static_cast<size_t>(bytes.size)}, path).ok()) return "";
  return path.c_str();
}

const char* TestNgramFile() {
  kinglet::NgramTable table;
  table.words = {"</s>", "<s>", "<unk>", "w3", "w4"};
  table.lengths.push_back(
      {{0, 1, 2, 3, 4}, {-1.5F, -99, -2, -1, -0.5F}, {0, 0, 0, 0.5F, 0}, {0, 0, 1, 1, 1, 1}});
  table.lengths.push_back({{3}, {-0.25F}, {}, {}});
  const auto bytes = kinglet::EncodeNgrams(table, 0);
  return bytes.ok() ? TestFile({bytes->data(), bytes->size()}) : "";
}
