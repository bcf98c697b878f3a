#include "tests/format/hostile_edits.h"

#include <gtest/gtest.h>

#include "tests/support/classifier_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet {

EditableFile GoodFile() {
  ModelDraft draft =
      TinyMicronet({.quantised = true, .bits = 5, .pruned = true, .cache_capacity = 4});
  draft.description.golden = GoldenVector{{0, 1, 2}, {-1.0, -2.0}, 1.0};
  return EditableFile::FromDraft(draft);
}

EditableFile GoodRecurrentFile() {
  using Cell = RecurrentCell;
  return EditableFile::FromDraft(TinyRecurrent({.cells = {Cell::kQrnn, Cell::kGru, Cell::kLstm},
                                                .projected = 5,
                                                .quantised = true,
                                                .bits = 5,
                                                .cache_capacity = 4}));
}

EditableFile GoodTransformerFile() {
  return EditableFile::FromDraft(TinyTransformer({.norm_order = NormOrder::kPre,
                                                  .start = StreamStart::kZeros,
                                                  .clamp = 3,
                                                  .start_rows = true,
                                                  .biases = true,
                                                  .final_norm = true}));
}

EditableFile GoodTranslationFile() {
  ModelDraft draft = TinyTranslation();
  draft.description.golden = GoldenVector{{4, 3}, {-1.0, -2.0}, 0.5, {1, 12, 0}};
  return EditableFile::FromDraft(draft);
}

EditableFile GoodClassifierFile() {
  return EditableFile::FromDraft(
      TinyClassifier({.positions = 2, .hidden = 5, .max_pool = true, .padding = 0}));
}

void ExpectRefused(std::span<const HostileEdit> edits, EditableFile good) {
  const std::vector<std::byte> bytes = good.Build();
  // A file that is parsed and built again without an edit is accepted.
  ASSERT_TRUE(OpenStatus(bytes).ok()) << OpenStatus(bytes).message();
  for (const HostileEdit& hostile : edits) {
    EditableFile file = EditableFile::FromBytes(bytes);
    hostile.edit(file);
    const Status status = OpenStatus(file.Build());
    EXPECT_EQ(status.code(), hostile.code) << hostile.where;
    EXPECT_TRUE(IsRefusalOf(status.message(), hostile.where))
        << "expected: " << hostile.where << "\n   found: " << status.message();
  }
}

}  // namespace kinglet
