#include "format/file_layout.h"

#include <gtest/gtest.h>

#include "format/writer.h"
#include "tests/support/model_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::file_layout_test {
namespace {

// Under its own description a file is laid out as before; under another, as a draft with that
// description.
TEST(LayOutAgain, GivesTheFileOfTheOtherDescription) {
  for (ModelDraft draft :
       {TinyMicronet(), TinyMicronet({.quantised = true, .bits = 9, .pruned = true}),
        TinyMicronet({.bits = 16, .vocabulary = false}), TinyMicronet({.pruned = true}),
        TinyTranslation(), TinyTranslation({.bits = 5, .vocabulary = false})}) {
    const auto bytes = SerialiseModel(draft);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const auto file = ModelFile::FromBytes(*bytes);
    ASSERT_TRUE(file.ok()) << file.status().message();
    const auto same = LayOutAgain(**file, (*file)->description());
    ASSERT_TRUE(same.ok()) << same.status().message();
    EXPECT_TRUE(same->Bytes() == *bytes);

    draft.description.provenance.options = "a longer text, so that every segment moves by it";
    const auto other = LayOutAgain(**file, draft.description);
    ASSERT_TRUE(other.ok()) << other.status().message();
    EXPECT_TRUE(other->Bytes() == *SerialiseModel(draft));
  }
}

TEST(LayOutAgain, ADescriptionThatDoesNotFitIsRefused) {
  const auto file = ModelFile::FromBytes(*SerialiseModel(TinyMicronet()));
  ModelDescription description = (*file)->description();
  ++description.vocabulary_size;
  const Status status = LayOutAgain(**file, description).status();
  EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(status.message().find("model file " + (*file)->digest()), 0u) << status.message();
}

// A mask without set bits leaves an empty segment for the values.
TEST(LayOutAgain, EmptySegments) {
  ModelDraft draft = TinyMicronet({.pruned = true});
  for (EncodedTensor& tensor : draft.tensors) {
    if (!tensor.pruned) continue;
    auto& values = std::get<DenseF32>(tensor.values).values;
    std::fill(values.begin(), values.end(), 0.0F);
  }
  const auto bytes = SerialiseModel(draft);
  const auto file = ModelFile::FromBytes(*bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(LayOutAgain(**file, (*file)->description())->Bytes() == *bytes);
}

}  // namespace
}  // namespace kinglet::file_layout_test
