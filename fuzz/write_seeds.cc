// Writes the seeds that only kinglet can write: model files and states.
//
//   write_seeds FOLDER           FOLDER/model_file/NAME, FOLDER/state/NAME, FOLDER/archive/NAME
//   write_seeds FOLDER COUNT     the first mutants (tests/fuzz/mutants.h): FOLDER/NUMBER.kgl
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/compress/archive_writer.h"
#include "runtime/session.h"
#include "tests/fuzz/archive_model.h"
#include "tests/fuzz/mutants.h"
#include "tests/fuzz/repair.h"
#include "tests/fuzz/state_models.h"
#include "tests/support/classifier_builder.h"
#include "tests/support/define_builder.h"
#include "tests/support/masked_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"

namespace {

void WriteSeed(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

kinglet::ModelDraft MaskedWithGolden() {
  kinglet::ModelDraft draft = kinglet::TinyMasked({.bits = 5, .quantised = true, .scores = 3});
  kinglet::GoldenVector golden = {{2, 9, 7, 3}, {-1.5, -2.5}, 9};
  golden.segments = {0, 0, 1, 1};
  golden.positions = {1, 2};
  golden.mask = 4;
  draft.description.golden = golden;
  return draft;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kinglet;  // NOLINT: a program's own names
  if (argc != 2 && argc != 3) return std::fprintf(stderr, "usage: write_seeds FOLDER [COUNT]\n"), 2;
  const std::filesystem::path folder = argv[1];
  if (argc == 3) {
    for (uint64_t number = std::strtoull(argv[2], nullptr, 10); number > 0; --number) {
      WriteSeed(folder / (std::to_string(number) + ".kgl"), fuzz::MakeMutant(number));
    }
    return 0;
  }
  const std::pair<const char*, ModelDraft> drafts[] = {
      {"micronet",
       TinyMicronet({.quantised = true, .bits = 5, .pruned = true, .cache_capacity = 4})},
      {"recurrent", TinyRecurrent({.cells = {RecurrentCell::kQrnn, RecurrentCell::kGru},
                                   .bits = 4,
                                   .input_coding = TinyCoding{2, {3}}})},
      {"transformer", TinyTransformer({.positions = TinyPositions::kTable, .layers = 1})},
      {"translation", TinyTranslation({.encoder_layers = 1, .decoder_layers = 1})},
      {"classifier", TinyClassifier({.positions = 2, .hidden = 5, .max_pool = true})},
      {"define", TinyDefine()},
      {"masked", MaskedWithGolden()},
  };
  for (const auto& [name, draft] : drafts) {
    const auto bytes = SerialiseModel(draft);
    if (!bytes.ok()) return std::fprintf(stderr, "%s\n", bytes.status().message().c_str()), 1;
    WriteSeed(folder / "model_file" / name, *bytes);
  }
  for (uint8_t choice = 0; choice < fuzz::kStateModels; ++choice) {
    const auto session = Session::Create(fuzz::StateModel(choice));
    if (!session.ok()) return 1;
    const uint32_t source[] = {1, 2};  // or a text
    (void)(*session)->Encode(source);
    (void)(*session)->LookAt(1);
    for (uint32_t id = 1; id < 4; ++id) (void)(*session)->StepToken(id);
    const auto state = (*session)->Save();
    std::vector<std::byte> bytes(1 + state->BlobBytes(), std::byte{choice});
    state->WriteBlob(std::span(bytes).subspan(1));
    WriteSeed(folder / "state" / std::to_string(choice), bytes);
  }
  const std::pair<const char*, std::string> texts[] = {
      {"empty", ""},
      {"raw", "\x8f\x01\xfe"},
      {"words", "the w3 w4\nthe w3 unheard w5, w3\n"},
      {"blocks", std::string(1500, 'w') + std::string(1000, ' ')}};
  for (const auto& [name, text] : texts) {
    auto writer = compress::ArchiveWriter::Create(fuzz::ArchiveModel(), {.block_size = 1024});
    std::vector<std::byte> bytes;
    if (!writer.ok()) return 1;
    writer->Add(std::as_bytes(std::span(text)));
    writer->EndOfInput();
    for (size_t before = SIZE_MAX; bytes.size() != before;) {
      before = bytes.size();
      if (!writer->Next(bytes).ok()) return 1;
    }
    WriteSeed(folder / "archive" / name, bytes);
  }
  return 0;
}
