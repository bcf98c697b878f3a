#include "converters/checkpoints/checkpoint_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "tests/converters/checkpoints/container_files.h"
#include "tests/converters/synthetic.h"

namespace kinglet::checkpoint_file_test {
namespace {

std::string Refusal(const std::string& path) {
  const Result<CheckpointFile> opened = OpenCheckpointFile(path);
  if (opened.ok()) return "accepted";
  EXPECT_TRUE(opened.status().message().starts_with(path)) << opened.status().message();
  return opened.status().message().substr(std::min(opened.status().message().size(), path.size()));
}

class SourceContainers : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(CheckpointFile, SourceContainers,
                         testing::Values("tensors.npz", "tensors_deflated.npz",
                                         "tensors.safetensors"));

TEST_P(SourceContainers, AreRecognisedByContent) {
  const TemporaryFile unnamed(Fixture(GetParam()));
  const Result<CheckpointFile> opened = OpenCheckpointFile(unnamed.path());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ(opened->path, unnamed.path());
  EXPECT_EQ(opened->bytes, Fixture(GetParam()).size());
  EXPECT_EQ(opened->modules.network, nullptr);
  EXPECT_EQ(opened->checkpoint, nullptr);
  EXPECT_EQ(opened->step, std::nullopt);
  ExpectNamedArrays(opened->tensors);
}

// Tensors are read from the opened file, even after it was renamed or removed.
TEST_P(SourceContainers, TensorsKeepTheirFile) {
  CheckpointTensors weights;
  {
    const TemporaryFile file(Fixture(GetParam()));
    weights = OpenCheckpointFile(file.path()).value().tensors;
  }
  ExpectNamedArrays(weights);
}

// `xxhsum -H2 zip.pt`.
TEST(CheckpointFile, HasTheDigestOfItsBytes) {
  EXPECT_EQ(OpenCheckpointFile(FixturePath("zip.pt"))->digest, "d1251b878e15ce09c789b5693f5d3e6b");
}

TEST(CheckpointFile, ReadsWhatTorchSaved) {
  for (const char* name : {"legacy_protocol2.pth", "zip.pt"}) {
    CheckpointTensors weights = OpenCheckpointFile(FixturePath(name)).value().tensors;
    using Integers = std::vector<int64_t>;
    EXPECT_EQ(IntegersOf(weights, "LongStorage"), (Integers{-1, 1099511627776, 16777217}));
    EXPECT_EQ(IntegersOf(weights, "IntStorage"), (Integers{-5, 7, 2147483647}));
    EXPECT_EQ(IntegersOf(weights, "ShortStorage"), (Integers{-32768, 0, 99}));
    EXPECT_EQ(IntegersOf(weights, "CharStorage"), (Integers{-128, 0, 127}));
    EXPECT_EQ(IntegersOf(weights, "ByteStorage"), (Integers{0, 128, 255}));
    EXPECT_EQ(IntegersOf(weights, "BoolStorage"), (Integers{0, 1, 1}));
    EXPECT_NE(Named(weights, "plain")
                  .integers()
                  .status()
                  .message()
                  .find("storage '10': expected integers, found elements of a float type"),
              std::string::npos);
    EXPECT_EQ(FloatsOf(weights, "every_other"),
              (std::vector<float>{-2.5, -1.5, -0.5, 3.5, 4.5, 5.5}));
  }
}

TEST(CheckpointFile, ReadsOneTensorAlone) {
  const TemporaryFile codes("1 2\n3 4\n", ".codes");
  const Result<CheckpointFile> opened = OpenCheckpointFile(codes.path());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ(ReadIntegers(opened->tensors.at(0)).value(), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(OpenCheckpointFile(FixturePath("i8.npy"))->tensors.at(0).name, "i8");
}

TEST(CheckpointFile, TellsTheStep) {
  const TemporaryFolder folder;
  EXPECT_EQ(OpenCheckpointFile(folder.Write("model-120.npz", Fixture("tensors.npz")))->step, 120);
  const SyntheticMicronet model;
  EXPECT_EQ(OpenCheckpointFile(folder.Write("m.pth", model.LegacyFile(true)))->tensors.size(),
            model.tensors.size());
}

// {"config": .., "model": state dict}, as many training scripts write.
TEST(CheckpointFile, FindsTheStateDictInsideADict) {
  const SyntheticMicronet model;
  const std::string content = model.LegacyFile();  // under "net", next to step 7
  const TemporaryFolder folder;
  for (const std::string key : {"net", "model", "state_dict", "other"}) {
    std::string changed = content;
    const size_t at = changed.find(std::string("X\3\0\0\0net", 8));
    ASSERT_NE(at, std::string::npos);
    changed.replace(
        at, 8, "X" + std::string(1, static_cast<char>(key.size())) + std::string(3, '\0') + key);
    const Result<CheckpointFile> opened = OpenCheckpointFile(folder.Write("m.pth", changed));
    EXPECT_EQ(opened.ok(), key != "other") << key;
    if (!opened.ok()) continue;
    EXPECT_EQ(opened->step, 7);
    EXPECT_EQ(opened->tensors.size(), model.tensors.size());
  }
}

// TensorFlow names a checkpoint by the prefix of its files.
TEST(CheckpointFile, OpensATensorFlowCheckpointByIndexAndByPrefix) {
  const std::string prefix =
      KINGLET_TEST_DATA "/recurrent-variants/zaremba-dpq-vq-bundle/model-1234";
  const auto by_index = OpenCheckpointFile(prefix + ".index"),
             by_prefix = OpenCheckpointFile(prefix);
  ASSERT_TRUE(by_index.ok()) << by_index.status().message();
  ASSERT_TRUE(by_prefix.ok()) << by_prefix.status().message();
  for (const CheckpointFile* opened : {&*by_index, &*by_prefix}) {
    EXPECT_EQ(opened->path, prefix + ".index");
    EXPECT_EQ(opened->step, 1234);
    EXPECT_EQ(opened->digest, by_index->digest);
    EXPECT_EQ(opened->digest.size(), 32u);
    EXPECT_EQ(FloatsOf(opened->tensors, "Model/Variable"), std::vector<float>{0.25F});
    EXPECT_EQ(Named(opened->tensors, "Model/kdq_emb/query_wemb").shape,
              (std::vector<uint64_t>{41, 12}));
  }
  EXPECT_EQ(by_index->bytes, by_prefix->bytes);
  EXPECT_GT(by_index->bytes, 4u * 41 * 12);
  // Without its .index, a prefix names no file.
  EXPECT_EQ(OpenCheckpointFile(prefix + "5").status().code(), KINGLET_NOT_FOUND);
  EXPECT_NE(Refusal(prefix + ".data-00000-of-00002").find("a TensorFlow checkpoint's .index"),
            std::string::npos);
}

TEST(CheckpointFile, RefusesFilesOfOtherKinds) {
  const std::string expected =
      ": byte 0: expected a file of torch.save, safetensors, numpy (.npz, .npy), a TensorFlow "
      "checkpoint's .index or a text of codes, found ";
  for (const auto& [content, found] :
       {std::pair<std::string, std::string>{"", "an empty file (copy or download it again)"},
        {"hello", "bytes 68 65 6c 6c 6f (name the file of weights that the framework saved)"},
        {"\x80\x02}.",
         "a pickle that torch.save did not write (save the weights "
         "with torch.save)"},
        {"0.5 0.25\n",
         "bytes 30 2e 35 20 30 2e 32 35 (name the file of weights that the framework saved)"}}) {
    const TemporaryFile file(content);
    EXPECT_EQ(Refusal(file.path()), expected + found);
  }
  EXPECT_EQ(OpenCheckpointFile("/nowhere/model.pt").status().code(), KINGLET_NOT_FOUND);
  EXPECT_EQ(OpenCheckpointFile(testing::TempDir()).status().code(), KINGLET_IO_ERROR);
}

// Names as in the network's own code, and the tensors that a recipe's state_dict and prefix select.
TEST(CheckpointFile, UnwrapsNames) {
  const std::string forms = KINGLET_TEST_DATA "/checkpoint-forms/";
  const auto names = [](const Result<CheckpointFile>& opened) {
    std::string text;
    if (!opened.ok()) return opened.status().message();
    for (const CheckpointTensor& tensor : opened->tensors) text += tensor.name + " ";
    return text;
  };
  const std::string plain = names(OpenCheckpointFile(forms + "state_dict.pt"));
  EXPECT_TRUE(plain.starts_with("encoder.weight rnn.weight_ih_l0 ")) << plain;
  for (const char* name : {"data_parallel.pt", "compiled_parts.pt", "compiled_parallel.pt",
                           "swa.pt", "parallel.safetensors", "data_parallel_whole.pt"}) {
    const auto opened = OpenCheckpointFile(forms + name);
    EXPECT_EQ(names(opened), plain) << name;
    EXPECT_EQ(opened->notes.size(), 1u) << name;
  }
  const auto whole = OpenCheckpointFile(forms + "data_parallel_whole.pt");
  EXPECT_EQ(TextAttribute(*whole->modules.network, "rnn_type"), "LSTM");
  EXPECT_EQ(names(OpenCheckpointFile(forms + "ema.pt", {{"ema"}, ""})), plain);
  EXPECT_EQ(names(OpenCheckpointFile(forms + "lightning.ckpt", {{}, "model."})), plain);
  EXPECT_EQ(names(OpenCheckpointFile(forms + "parallel.safetensors", {{"ema"}, ""})),
            "checkpoint: " + forms +
                "parallel.safetensors: expected a file of torch.save, as the recipe names a "
                "\"state_dict\", found another format (omit \"state_dict\" from the recipe)");
}

// torch stores the sign of a view apart from its values, so a view and its negation differ.
TEST(CheckpointFile, NegatedViews) {
  const std::string forms = KINGLET_TEST_DATA "/checkpoint-forms/";
  const auto plain = OpenCheckpointFile(forms + "state_dict.pt");
  for (const char* name : {"negated.pt", "conjugated.pt"}) {
    const auto opened = OpenCheckpointFile(forms + name);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    ASSERT_EQ(opened->tensors.size(), plain->tensors.size());
    for (size_t i = 0; i < opened->tensors.size(); ++i) {
      const CheckpointTensor& tensor = opened->tensors[i];
      EXPECT_EQ(*tensor.values(), *plain->tensors[i].values()) << tensor.name;
      EXPECT_EQ(*ReadFiniteRows(tensor, 1, 2), *ReadFiniteRows(plain->tensors[i], 1, 2));
      EXPECT_TRUE(tensor.place.ends_with(" negated")) << tensor.place;
    }
  }
}

// The types are those in the file.
TEST(CheckpointFile, TellsTypes) {
  const std::string forms = KINGLET_TEST_DATA "/checkpoint-forms/";
  const auto type = [&](const char* name) {
    return ElementName(*OpenCheckpointFile(forms + name)->tensors.front().type);
  };
  EXPECT_EQ(type("state_dict.pt"), "f32");
  EXPECT_EQ(type("float64.pt"), "f64");
  EXPECT_EQ(type("bfloat16.pt"), "bf16");
  EXPECT_EQ(type("half.pt"), "f16");
  EXPECT_EQ(type("parallel.safetensors"), "f32");
  const auto npz = OpenCheckpointFile(FixturePath("tensors.npz"));
  EXPECT_EQ(ElementName(*Named(npz->tensors, "U16").type), "u16");
  EXPECT_EQ(ElementName(*Named(npz->tensors, "BOOL").type), "bool");
}

// A shard must be in the index's folder; a link to another folder is refused.
TEST(CheckpointFile, ShardsStayInTheirFolder) {
  const TemporaryFolder folder;
  const std::string shard = KINGLET_TEST_DATA "/checkpoint-forms/parallel.safetensors";
  const std::string index = folder.Write("home/model.safetensors.index.json",
                                         R"({"weight_map": {"module.encoder.weight": "shard"}})");
  std::filesystem::copy_file(shard, folder.Path("shard"));
  std::filesystem::create_symlink("../shard", folder.Path("home/shard"));
  EXPECT_EQ(OpenCheckpointFile(index).status().message(),
            index +
                ": file 'shard': expected a file in the index's folder, found a link to another "
                "folder (copy the file)");
}

// Each refusal names the file once.
TEST(CheckpointFile, RefusalsNameTheFile) {
  const TemporaryFile npz(Fixture("tensors.npz").substr(0, 3000));
  EXPECT_EQ(Refusal(npz.path()).substr(0, 55),
            ": zip archive: directory: expected a zip archive, found");
  const TemporaryFile codes("1 2\n3\n");
  EXPECT_EQ(
      Refusal(codes.path()),
      ": codes: line 2, column 2: expected 2 integers as in line 1, found 1 (copy or download "
      "it again, or save it again with torch.save)");
  const TemporaryFile tensors(Fixture("tensors.safetensors") + "x");
  EXPECT_EQ(Refusal(tensors.path()).substr(0, 30), ": safetensors: data: expected ");
  EXPECT_EQ(Refusal(FixturePath("big_endian.npy")), "accepted");
  EXPECT_NE(OpenCheckpointFile(FixturePath("legacy_not_tensors.pth"))
                .status()
                .message()
                .find("expected a state dict, alone or as 'net', 'model' or 'state_dict' of a "
                      "dict, or a pickled module, alone "
                      "or first in a list, found dict with object"),
            std::string::npos);
}

// Views of one storage take few bytes in the file and much memory when read.
TEST(CheckpointFile, RefusesMoreEntriesThanTheFileCanMean) {
  SyntheticMicronet model;
  uint64_t others = 0;
  for (size_t i = 1; i < model.tensors.size(); ++i) others += model.tensors[i].values.size();
  const uint64_t limit = 2 * model.LegacyFile(true).size();
  const TemporaryFolder folder;
  const auto refusal = [&](uint64_t rows) {
    model.tensors[0].shape = {rows, 1};
    std::string content = model.LegacyFile(true);
    EXPECT_EQ(2 * content.size(), limit);
    // Its strides are (1, 1) in the pickle: the first becomes 0, and all rows the same element.
    const std::string one("J\1\0\0\0", 5), zero("J\0\0\0\0", 5);
    const size_t strides = content.find("t(" + one + one + "t");
    EXPECT_NE(strides, std::string::npos);
    content.replace(strides + 2, zero.size(), zero);
    return OpenCheckpointFile(folder.Write("m.pth", content)).status().message();
  };
  const uint64_t most = limit + kMaxRepeated - others;
  EXPECT_EQ(refusal(most), "");
  EXPECT_NE(refusal(most + 1).find(
                "entries in all tensors of a file of its size, found more, up to tensor"),
            std::string::npos);
  EXPECT_NE(refusal(INT32_MAX).find("up to tensor"), std::string::npos);
}

}  // namespace
}  // namespace kinglet::checkpoint_file_test
