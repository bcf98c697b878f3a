// The stack that a call of the C interface takes, on every kind of model and instruction set: no
// more than docs/RELIABILITY.md promises to threads with small stacks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "runtime/compress/archive_reader.h"
#include "runtime/compress/archive_writer.h"
#include "tests/fuzz/archive_model.h"
#include "tests/fuzz/mutants.h"
#include "tests/support/model_builder.h"
#include "tests/support/painted_stack.h"
#include "tests/support/softmax_builder.h"

namespace kinglet::fuzz {
namespace {

constexpr size_t kMostBytes = 64 << 10;
constexpr uint64_t kModels = 40;  // every family several times

// Models whose products do not store the logits of their largest cluster.
std::vector<std::vector<std::byte>> ModelsOfLargeClusters() {
  std::vector<std::vector<std::byte>> files;
  for (const bool quantised : {false, true}) {
    for (const int bits : {0, 9}) {
      TinySoftmax softmax;
      softmax.tails = {7, 65700, 9};
      softmax.bits = bits;
      softmax.tail_input = quantised ? TailInput::kFixedPoint15 : TailInput::kAsIs;
      TinyOptions options;
      options.quantised = quantised;
      options.bits = bits;
      options.vocabulary = false;
      options.cache_capacity = 9;
      const auto file = SerialiseModel(TinyMicronetWith(softmax, options));
      EXPECT_TRUE(file.ok()) << file.status().message();
      files.push_back(*file);
    }
  }
  return files;
}

TEST(CallStack, HasABoundForEveryModelAndInstructionSet) {
  std::vector<std::vector<std::byte>> files = ModelsOfLargeClusters();
  for (uint64_t number = 1; number <= kModels; ++number) files.push_back(MakeOriginal(number));
  size_t most = 0;
  for (const cpu::Target target : cpu::SupportedTargets()) {
    if (target == cpu::Target::kScalar) continue;  // kernels of ref, which each model is run on
    const std::string name(cpu::TargetName(target));
    setenv("KINGLET_CPU", name.c_str(), 1);
    for (size_t i = 0; i < files.size(); ++i) {
      bool opened = false;
      const size_t bytes = StackOf([&] { opened = UseMutant(files[i]).opened; });
      EXPECT_TRUE(opened) << "model " << i << " on " << name;
      EXPECT_LE(bytes, kMostBytes) << "model " << i << " on " << name;
      most = std::max(most, bytes);
    }
  }
  unsetenv("KINGLET_CPU");
  std::printf("most stack: %zu bytes\n", most);
}

TEST(CallStack, HasABoundForArchives) {
  std::vector<std::byte> text;
  for (size_t i = 0; i < 20000; ++i) text.push_back(static_cast<std::byte>("the w3 w4 \n"[i % 11]));
  std::vector<std::byte> archive, restored;
  EXPECT_LE(StackOf([&] {
              auto writer = compress::ArchiveWriter::Create(ArchiveModel(), {});
              (void)writer->Add(text, archive);
              (void)writer->Finish(archive);
            }),
            kMostBytes);
  EXPECT_LE(StackOf([&] {
              auto reader = compress::ArchiveReader::Create(ArchiveModel(), {});
              (void)reader->Add(archive, restored);
              (void)reader->Finish(restored);
            }),
            kMostBytes);
  EXPECT_EQ(restored, text);
}

}  // namespace
}  // namespace kinglet::fuzz
