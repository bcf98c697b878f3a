#include <array>
#include <vector>

#include "runtime/session.h"
#include "runtime/state.h"
#include "tests/fuzz/state_models.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/use_model.h"
#include "tests/support/masked_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::fuzz {
namespace {

std::shared_ptr<const Model> OpenDraft(const ModelDraft& draft) {
  const auto bytes = SerialiseModel(draft);
  Expect(bytes.ok(), "expected a model, found " + bytes.status().message());
  auto model = Model::FromBytes(*bytes, {});
  Expect(model.ok(), "expected a model, found " + model.status().message());
  return *model;
}

std::array<std::shared_ptr<const Model>, kStateModels> MakeStateModels() {
  return {OpenDraft(TinyMicronet({.quantised = true, .bits = 5, .cache_capacity = 4})),
          OpenDraft(TinyMicronet()),
          OpenDraft(TinyRecurrent(
              {.cells = {RecurrentCell::kQrnn, RecurrentCell::kGru}, .cache_capacity = 3})),
          OpenDraft(TinyTransformer({.positions = TinyPositions::kAbsolute})),
          OpenDraft(TinyTranslation()),
          OpenDraft(TinyMasked({.bits = 4, .quantised = true, .scores = 3})),
          // A model whose cache and window's keys have rows of 9 bits (kernels/nine_bit_row.h).
          OpenDraft(TinyMicronet(
              {.quantised = true, .cache_capacity = 4, .width = 40, .heads = 5, .key_size = 8}))};
}

}  // namespace

const std::shared_ptr<const Model>& StateModel(uint8_t choice) {
  static const auto kModels = MakeStateModels();
  return kModels[choice % kStateModels];
}

void RunState(Input input) {
  if (input.empty()) return;
  const auto& model = StateModel(static_cast<uint8_t>(input[0]));
  const Input blob = input.subspan(1);
  const auto state = State::ReadBlob(model, blob);
  ExpectOneLine(state.status());
  if (!state.ok()) return;
  std::vector<std::byte> written(state->BlobBytes());
  state->WriteBlob(written);
  Expect(std::equal(blob.begin(), blob.end(), written.begin(), written.end()),
         "expected a state that writes the bytes it was read from");
  const auto session = Session::Create(model, {.lanes = 2});
  Expect(session.ok(), "expected a session");
  const Status restored = (*session)->Restore(*state, 1);
  Expect(restored.ok(), "expected to restore a state that was read, found " + restored.message());
  (void)(*session)->Fork(1, 0);
  (void)(*session)->StepToken(1);
  UseSession(**session);
}

}  // namespace kinglet::fuzz
