#include "converters/checkpoints/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <unordered_set>

#include "tests/converters/files.h"
#include "tests/support/change_stride.h"

namespace kinglet::checkpoint_test {
namespace {

// All tensors that an object refers to.
std::vector<const PickleTensor*> TensorsOf(const PickleNode& root) {
  std::vector<const PickleTensor*> tensors;
  std::unordered_set<const PickleNode*> seen;
  std::vector<const PickleNode*> open = {&root};
  while (!open.empty()) {
    const PickleNode* node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    if (const auto* tensor = node->As<PickleTensor>()) tensors.push_back(tensor);
    if (const auto* list = node->As<PickleList>()) {
      open.insert(open.end(), list->items.begin(), list->items.end());
    }
    const auto* object = node->As<PickleObject>();
    if (object != nullptr) open.insert(open.end(), {object->arguments, object->state});
    const auto* dict = node->As<PickleDict>();
    if (dict == nullptr && object == nullptr) continue;
    for (const auto& [key, value] : dict != nullptr ? dict->items : object->items) {
      open.insert(open.end(), {key, value});
    }
  }
  return tensors;
}

struct Expected {
  const char* name;
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

// What make_fixtures.py's state_dict describes: storage 10 is i * 0.5 - 3, storage 20 is 10 + i.
std::vector<Expected> ExpectedTensors(bool slices) {
  const auto ramp = [](uint64_t i) { return static_cast<float>(i) * 0.5F - 3.0F; };
  Expected plain{"plain", {4, 6}, {}}, transposed{"transposed", {6, 4}, {}};
  for (uint64_t i = 0; i < 24; ++i) plain.values.push_back(ramp(i));
  for (uint64_t i = 0; i < 6; ++i) {
    for (uint64_t j = 0; j < 4; ++j) transposed.values.push_back(ramp(i + 6 * j));
  }
  std::vector<Expected> all = {plain, transposed};
  all.push_back({"offset", {5}, {ramp(13), ramp(14), ramp(15), ramp(16), ramp(17)}});
  all.push_back({"every_other", {2, 3}, {ramp(1), ramp(3), ramp(5), ramp(13), ramp(15), ramp(17)}});
  all.push_back({"scalar", {}, {0.5F}});
  all.push_back({"one", {1}, {0.5F}});
  all.push_back({"empty", {0, 5}, {}});
  all.push_back({"parameter", {10}, {10, 11, 12, 13, 14, 15, 16, 17, 18, 19}});
  if (slices) all.push_back({"slice", {2, 2}, {15, 16, 17, 18}});
  all.push_back({"DoubleStorage", {3}, {0.33333334F, -2.5F, 0.0F}});
  all.push_back({"HalfStorage", {3}, {0.5F, -65504.0F, 5.9604645e-8F}});
  all.push_back({"BFloat16Storage", {3}, {1.0F, -3.0F, std::numeric_limits<float>::infinity()}});
  all.push_back({"LongStorage", {3}, {-1.0F, 1099511627776.0F, 16777216.0F}});
  all.push_back({"IntStorage", {3}, {-5.0F, 7.0F, 2147483648.0F}});
  all.push_back({"ShortStorage", {3}, {-32768.0F, 0.0F, 99.0F}});
  all.push_back({"CharStorage", {3}, {-128.0F, 0.0F, 127.0F}});
  all.push_back({"ByteStorage", {3}, {0.0F, 128.0F, 255.0F}});
  all.push_back({"BoolStorage", {3}, {0.0F, 1.0F, 1.0F}});
  return all;
}

class Containers : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Checkpoint, Containers,
                         testing::Values("legacy_protocol2.pth", "legacy_protocol4.pth", "zip.pt"));

TEST_P(Containers, ReadsEveryTypeAndStride) {
  const auto checkpoint = Checkpoint::Open(FixturePath(GetParam()));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ((*checkpoint)->file().path(), FixturePath(GetParam()));
  const Result<StateDict> state = AsStateDict((*checkpoint)->root());
  ASSERT_TRUE(state.ok()) << state.status().message();
  const std::vector<Expected> expected = ExpectedTensors(std::string(GetParam()) != "zip.pt");
  ASSERT_EQ(state->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ((*state)[i].name, expected[i].name);
    EXPECT_EQ((*state)[i].tensor->shape, expected[i].shape) << expected[i].name;
    const Result<std::vector<float>> values = (*checkpoint)->ReadFloats(*(*state)[i].tensor);
    ASSERT_TRUE(values.ok()) << values.status().message();
    EXPECT_EQ(*values, expected[i].values) << expected[i].name;
  }
}

TEST_P(Containers, RefusesOrReadsEveryPrefix) {
  const std::string content = Fixture(GetParam());
  TemporaryFile file("");
  for (size_t length = 0; length < content.size(); length += kChangeStride) {
    file.Replace(std::string_view(content).substr(0, length));
    // The last bytes are needed: the last storage, or the zip archive's directory.
    const auto checkpoint = Checkpoint::Open(file.path());
    EXPECT_EQ(checkpoint.status().code(), KINGLET_INVALID_CHECKPOINT) << length;
  }
}

TEST_P(Containers, SurvivesEveryChangedByte) {
  const std::string content = Fixture(GetParam());
  TemporaryFile file("");
  size_t refused = 0;
  for (size_t at = 0; at < content.size(); at += kChangeStride) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string changed = content;
      changed[at] = static_cast<char>(changed[at] ^ change);
      file.Replace(changed);
      const auto checkpoint = Checkpoint::Open(file.path());
      if (!checkpoint.ok()) {
        ++refused;
        EXPECT_NE(checkpoint.status().message().find(": expected "), std::string::npos);
        continue;
      }
      for (const PickleTensor* tensor : TensorsOf((*checkpoint)->root())) {
        const Result<std::vector<float>> values = (*checkpoint)->ReadFloats(*tensor);
        EXPECT_TRUE(!values.ok() || values->size() <= content.size());
      }
    }
  }
  EXPECT_GT(refused, content.size() / (4 * kChangeStride));
}

TEST(Checkpoint, RefusesFilesOfOtherKinds) {
  for (const std::string& content :
       {std::string(), std::string("hello"), std::string("(dp0\n."), Fixture("f4.npy")}) {
    const TemporaryFile file(content);
    EXPECT_FALSE(Checkpoint::Recognises(*InputFile::Open(file.path())));
    EXPECT_EQ(Checkpoint::Open(file.path()).status().code(), KINGLET_INVALID_CHECKPOINT);
  }
  EXPECT_EQ(Checkpoint::Open("/nowhere/model.pt").status().code(), KINGLET_NOT_FOUND);
  EXPECT_EQ(Checkpoint::Open(testing::TempDir()).status().code(), KINGLET_IO_ERROR);
}

TEST(Checkpoint, RefusesStoragesThatAreMissingOrShort) {
  for (const auto& [name, found] :
       {std::pair{"zip_missing_storage.pt",
                  ": zip archive: directory: expected an entry 'tiny model/data/10', found none"},
        std::pair{"zip_short_storage.pt",
                  ": storage '10': expected 24 elements of 4 bytes as in the pickle, found 92 "
                  "bytes"}}) {
    const auto checkpoint = Checkpoint::Open(FixturePath(name));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    const Result<StateDict> state = AsStateDict((*checkpoint)->root());
    ASSERT_TRUE(state.ok());
    EXPECT_EQ((*checkpoint)->ReadFloats(*state->at(0).tensor).status().message(),
              FixturePath(name) + found);
  }
}

TEST(Checkpoint, RefusesTensorsThatDoNotFitTheirStorage) {
  const auto checkpoint = Checkpoint::Open(FixturePath("zip.pt"));
  ASSERT_TRUE(checkpoint.ok());
  const auto refusal = [&](const PickleTensor& tensor) {
    const Status status = (*checkpoint)->ReadFloats(tensor).status();
    EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
    return status.message().substr(FixturePath("zip.pt").size());
  };
  constexpr uint64_t kHuge = uint64_t{1} << 63;
  const ElementType f32 = ElementType::kF32;
  EXPECT_EQ(refusal({f32, "10", 24, 20, {5}, {1}}),
            ": storage '10': expected a tensor inside 24 elements, found 5 from 20");
  EXPECT_EQ(refusal({f32, "10", 24, kHuge, {1}, {1}}),
            ": storage '10': expected a tensor inside 24 elements, found 1 from " +
                std::to_string(kHuge));
  EXPECT_EQ(refusal({f32, "10", 24, 0, {2, 2}, {kHuge, kHuge}}),
            ": storage '10': expected a tensor of fewer than 2^64 entries, found more");
  EXPECT_EQ(refusal({f32, "10", 24, 0, {kHuge, 4}, {0, 0}}),
            ": storage '10': expected a tensor of fewer than 2^64 entries, found more");
  EXPECT_EQ(refusal({f32, "10", 24, 0, {kMaxRepeated + 1}, {0}}),
            ": storage '10': expected a tensor of at most 16777216 entries, found 16777217 of 24 "
            "elements (in PyTorch, save tensor.contiguous())");
  EXPECT_EQ(refusal({f32, "10", 24, 0, {2}, {1, 1}}),
            ": storage '10': expected a tensor of fewer than 2^64 entries, found more");
  EXPECT_EQ(refusal({ElementType::kF64, "10", 24, 0, {1}, {1}}),
            ": storage '10': expected 24 elements of 8 bytes as in the pickle, found 96 bytes");
  // A tensor may have overlapping strides inside its storage.
  EXPECT_EQ(*(*checkpoint)->ReadFloats({f32, "10", 24, 1, {3}, {0}}),
            (std::vector<float>{-2.5F, -2.5F, -2.5F}));
}

TEST(AsStateDict, NamesWhatIsNoTensor) {
  const auto checkpoint = Checkpoint::Open(FixturePath("legacy_not_tensors.pth"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(AsStateDict((*checkpoint)->root()).status().message(),
            "state dict: 'weight': expected a tensor, found object of class 'model.Cyclic'");
  const PickleNode number{int64_t{1}};
  EXPECT_EQ(AsStateDict(number).status().message(),
            "state dict: object: expected a dict of names to tensors, found int");
  PickleNode key{int64_t{1}}, value{PickleTensor{}};
  EXPECT_EQ(AsStateDict(PickleNode{PickleDict{{{&key, &value}}}}).status().message(),
            "state dict: entry 0: expected a name as str, found int");
  EXPECT_TRUE(AsStateDict(PickleNode{PickleDict{}})->empty());
}

TEST(AsStateDict, TakesTheLastOfEqualNames) {
  PickleNode a{std::string("a")}, b{std::string("b")};
  PickleNode first{PickleTensor{}}, second{PickleTensor{}};
  const Result<StateDict> state =
      AsStateDict(PickleNode{PickleDict{{{&a, &first}, {&b, &first}, {&a, &second}}}});
  ASSERT_TRUE(state.ok());
  ASSERT_EQ(state->size(), 2U);
  EXPECT_EQ(state->at(0).name, "a");
  EXPECT_EQ(state->at(0).tensor, second.As<PickleTensor>());
}

// Checkpoints of the original frameworks are too large to keep here; with
// KINGLET_CHECKPOINTS=FOLDER every one below it must open and all of its values must be numbers.
TEST(Checkpoint, ReadsEveryFileOfAFolder) {
  const char* folder = std::getenv("KINGLET_CHECKPOINTS");
  if (folder == nullptr) GTEST_SKIP() << "KINGLET_CHECKPOINTS names no folder of checkpoints";
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (!entry.is_regular_file() || (extension != ".pt" && extension != ".pth")) continue;
    ++files;
    const auto checkpoint = Checkpoint::Open(entry.path().string());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    const std::vector<const PickleTensor*> tensors = TensorsOf((*checkpoint)->root());
    EXPECT_GT(tensors.size(), 5U) << entry.path();
    for (const PickleTensor* tensor : tensors) {
      const Result<std::vector<float>> values = (*checkpoint)->ReadFloats(*tensor);
      ASSERT_TRUE(values.ok()) << values.status().message();
      uint64_t count = 1;
      for (const uint64_t size : tensor->shape) count *= size;
      EXPECT_EQ(values->size(), count);
      for (const float value : *values) ASSERT_TRUE(std::isfinite(value)) << entry.path();
    }
  }
  EXPECT_GT(files, 0U) << folder;
}

}  // namespace
}  // namespace kinglet::checkpoint_test
