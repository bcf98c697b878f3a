#include "converters/checkpoints/numpy_tensors.h"

#include <gtest/gtest.h>

#include "tests/converters/checkpoints/container_files.h"
#include "tests/support/change_stride.h"

namespace kinglet::numpy_tensors_test {
namespace {

class Archives : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Npz, Archives, testing::Values("tensors.npz", "tensors_deflated.npz"));

TEST_P(Archives, GiveEveryArray) {
  const auto file = OpenInput(FixturePath(GetParam()));
  EXPECT_TRUE(LooksLikeNpz(*file));
  EXPECT_FALSE(LooksLikeNpy(*file));
  const Result<CheckpointTensors> weights = NpzTensors(file);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  ExpectNamedArrays(*weights);
  std::vector<float> ramp;
  for (int i = 0; i < 24; ++i) ramp.push_back(static_cast<float>(i));
  EXPECT_EQ(Named(*weights, "fortran").shape, (std::vector<uint64_t>{2, 3, 4}));
  EXPECT_EQ(FloatsOf(*weights, "fortran"), ramp);
  // An archive may contain words; only reading them as numbers is refused.
  EXPECT_EQ(Named(*weights, "words").shape, (std::vector<uint64_t>{2}));
  const std::string refusal = FixturePath(GetParam()) +
                              ": array 'words': expected |i1, |u1, |b1, <i2, <u2, <i4, <u4, <i8, "
                              "<u8, <f2, <f4 or <f8 as type, found '<U3'";
  EXPECT_EQ(Named(*weights, "words").values().status().message(), refusal);
  EXPECT_EQ(Named(*weights, "words").integers().status().message(), refusal);
}

// A changed byte either fails a checksum or does not change the values.
TEST_P(Archives, EveryChangedBitIsRefusedOrChangesNothing) {
  const std::string content = Fixture(GetParam());
  const Result<CheckpointTensors> original = NpzTensors(OpenInput(FixturePath(GetParam())));
  ASSERT_TRUE(original.ok());
  std::vector<std::vector<float>> expected;
  for (const CheckpointTensor& tensor : *original) {
    expected.push_back(tensor.values().ok() ? *tensor.values() : std::vector<float>());
  }
  TemporaryFile file("");
  size_t refused = 0;
  for (size_t at = 0; at < content.size(); at += kChangeStride) {
    std::string changed = content;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    file.Replace(changed);
    const Result<CheckpointTensors> weights = NpzTensors(OpenInput(file.path()));
    if (!weights.ok()) {
      ++refused;
      EXPECT_NE(weights.status().message().find(": expected "), std::string::npos);
      continue;
    }
    ReadEverything(*weights, 2 * content.size());
    ASSERT_EQ(weights->size(), original->size()) << at;
    for (size_t i = 0; i < weights->size(); ++i) {
      const Result<std::vector<float>> values = (*weights)[i].values();
      if (!values.ok()) continue;
      EXPECT_EQ(*values, expected[i]) << at << " " << (*weights)[i].name;
    }
  }
  EXPECT_GT(refused, content.size() / (10 * kChangeStride));
}

TEST_P(Archives, EveryPrefixIsRefused) {
  const std::string content = Fixture(GetParam());
  TemporaryFile file("");
  for (size_t length = 0; length < content.size(); length += kChangeStride) {
    file.Replace(std::string_view(content).substr(0, length));
    EXPECT_FALSE(NpzTensors(OpenInput(file.path())).ok()) << length;
  }
}

// An array longer than one piece.
TEST(Npz, ReadsLargeArrays) {
  const CheckpointTensors weights = NpzTensors(OpenInput(FixturePath("large.npz"))).value();
  const std::vector<int64_t> ramp = IntegersOf(weights, "ramp");
  ASSERT_EQ(ramp.size(), 400'000U);
  ASSERT_GT(4 * ramp.size(), kPieceBytes);
  for (size_t i = 0; i < ramp.size(); ++i) ASSERT_EQ(ramp[i], static_cast<int64_t>(i % 1000));
}

TEST(Npz, RefusesEntriesThatAreNoArrays) {
  const std::string path = FixturePath("zip_no_pickle.pt");
  EXPECT_FALSE(LooksLikeNpz(*OpenInput(path)));
  EXPECT_EQ(
      NpzTensors(OpenInput(path)).status().message(),
      "npz archive: entry 'tiny model/version': expected a name NAME.npy, found another name");
}

// Two directory entries of one name, as a program that appends to an archive may write them.
TEST(Npz, RefusesNamesThatComeTwice) {
  std::string content = Fixture("tensors.npz");
  for (size_t at = content.find("I16.npy"); at != std::string::npos;
       at = content.find("I16.npy", at)) {
    content.replace(at, 3, "F16");
  }
  EXPECT_EQ(RefusalOf(NpzTensors, content),
            "npz archive: entry 'F16.npy': expected each name once, found the name again");
}

TEST(NumpyTensors, IsOneTensorCalledAsItsFile) {
  const auto file = OpenInput(FixturePath("fortran.npy"));
  EXPECT_TRUE(LooksLikeNpy(*file));
  EXPECT_FALSE(LooksLikeNpz(*file));
  const Result<CheckpointTensors> weights = NpyTensors(file);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  ASSERT_EQ(weights->size(), 1U);
  EXPECT_EQ(weights->front().name, "fortran");
  EXPECT_EQ(weights->front().shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(IntegersOf(*weights, "fortran"), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(FloatsOf(*NpyTensors(OpenInput(FixturePath("f8.npy"))), "f8"),
            std::vector<float>{0.33333334F});
}

TEST(NumpyTensors, RefusesEveryPrefixAndSurvivesEveryChangedByte) {
  for (const char* name : {"f4.npy", "fortran.npy", "version3.npy"}) {
    const std::string content = Fixture(name);
    TemporaryFile file("");
    for (size_t length = 0; length < content.size(); length += kChangeStride) {
      file.Replace(std::string_view(content).substr(0, length));
      EXPECT_FALSE(NpyTensors(OpenInput(file.path())).ok()) << length;
    }
    for (size_t at = 0; at < content.size(); at += kChangeStride) {
      for (const int change : {0x01, 0x10, 0x80}) {
        std::string changed = content;
        changed[at] = static_cast<char>(changed[at] ^ change);
        file.Replace(changed);
        const Result<CheckpointTensors> weights = NpyTensors(OpenInput(file.path()));
        if (weights.ok()) ReadEverything(*weights, content.size());
      }
    }
  }
}

TEST(NumpyTensors, RefusesHeadersThatClaimTooMuch) {
  const auto array = [](const std::string& shape, const std::string& data) {
    const std::string header = "{'descr': '<f8', 'fortran_order': True, 'shape': " + shape + "}";
    std::string content = "\x93NUMPY\x01";
    content += '\0';
    content += static_cast<char>(header.size());
    content += '\0';
    return RefusalOf(NpyTensors, content + header + data);
  };
  EXPECT_EQ(array("(1, 1)", "12345678"), "accepted");
  EXPECT_EQ(array("(0, 18446744073709551615)", ""), "accepted");
  for (const char* shape : {"(2, 1)", "(2305843009213693953, 1)", "(4294967296, 4294967296)",
                            "(18446744073709551615, 1)"}) {
    EXPECT_NE(array(shape, "12345678").find("the bytes of values that its shape takes, found 8"),
              std::string::npos)
        << shape;
  }
}

}  // namespace
}  // namespace kinglet::numpy_tensors_test
