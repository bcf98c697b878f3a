#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "format/encoding.h"
#include "tests/tools/run_command.h"
#include "tools/npz_file.h"

namespace kinglet::soft_labels_test {
namespace {

struct Array {
  std::string header, bytes;

  // The numbers of an unsigned or signed type, or of float16.
  std::vector<double> Numbers() const {
    const std::string type = header.substr(header.find("'<") + 2, 2);
    const size_t size = type[1] - '0';
    std::vector<double> numbers;
    for (size_t at = 0; at < bytes.size(); at += size) {
      uint64_t value = 0;
      std::memcpy(&value, &bytes[at], size);
      numbers.push_back(type == "f2" ? HalfToFloat(static_cast<uint16_t>(value))
                                     : static_cast<double>(value));
    }
    return numbers;
  }
};

// Reads the entries of a zip archive without compression, by the format's description.
std::map<std::string, Array> ReadNpz(const std::string& file) {
  const auto number = [&](size_t at, size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, &file[at], size);
    return value;
  };
  std::map<std::string, Array> arrays;
  const size_t end = file.size() - 22;
  EXPECT_EQ(number(end, 4), 0x06054b50u);
  size_t at = number(end + 16, 4);
  for (uint64_t i = 0; i < number(end + 10, 2); ++i) {
    EXPECT_EQ(number(at, 4), 0x02014b50u);
    const size_t size = number(at + 24, 4), name_size = number(at + 28, 2);
    const size_t local = number(at + 42, 4);
    const std::string name = file.substr(at + 46, name_size);
    EXPECT_EQ(file.substr(local + 4, 26), file.substr(at + 6, 26));
    const std::string npy = file.substr(local + 30 + name_size, size);
    EXPECT_EQ(crc32(0, reinterpret_cast<const Bytef*>(npy.data()), static_cast<uInt>(size)),
              number(at + 16, 4));
    EXPECT_EQ(npy.substr(0, 8), std::string("\x93NUMPY\x01\0", 8));
    uint16_t header = 0;
    std::memcpy(&header, &npy[8], 2);
    EXPECT_EQ((10 + header) % 64, 0);
    arrays[name.substr(0, name.rfind(".npy"))] = {npy.substr(10, header), npy.substr(10 + header)};
    at += 46 + name_size;
  }
  return arrays;
}

class SoftLabelsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("m.kgl", TinyMicronet({.cache_capacity = 8}));
    std::vector<uint32_t> ids;
    for (uint32_t i = 0; i < 101; ++i) ids.push_back(i * i % 23);
    folder_.Write("ids.txt", IdText(ids));
  }
  // The files' bytes by name.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.Path("."))) {
      const std::string name = entry.path().filename().string();
      if (name.find("s.") != std::string::npos && name.find(".npz") != std::string::npos) {
        files[name] = folder_.Read(name);
      }
    }
    return files;
  }
  void RemoveFiles() const {
    for (const auto& [name, bytes] : Files()) std::filesystem::remove(folder_.Path(name));
  }
  CommandFolder folder_;
};

TEST_F(SoftLabelsTest, OneStreamIsWhatPredictPrints) {
  const auto lines = folder_.Run("predict m.kgl --ids ids.txt --top 5 --json").Json();
  const Outcome outcome =
      folder_.Run("predict m.kgl --ids ids.txt --top 5 --out s.npz --shard-tokens 40 --json");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
  EXPECT_EQ(outcome.Json().at(0)["shards"], 3);
  EXPECT_EQ(Files().size(), 3u);
  size_t row = 0;
  for (const char* const name : {"s.npz", "s.00001.npz", "s.00002.npz"}) {
    auto arrays = ReadNpz(folder_.Read(name));
    const auto positions = arrays["position"].Numbers(), id = arrays["id"].Numbers(),
               logs = arrays["logprob"].Numbers(), rests = arrays["rest"].Numbers();
    EXPECT_NE(arrays["id"].header.find("(" + std::to_string(positions.size()) + ", 5)"),
              std::string::npos);
    ASSERT_EQ(id.size(), 5 * positions.size());
    for (size_t i = 0; i < positions.size(); ++i, ++row) {
      EXPECT_EQ(positions[i], lines[row]["pos"]);
      double sum = 0;
      for (size_t k = 0; k < 5; ++k) {
        const auto& expected = lines[row]["top"][k];
        const auto value = expected["logprob"].get<double>();
        EXPECT_EQ(id[5 * i + k], expected["id"]);
        EXPECT_NEAR(logs[5 * i + k], value, std::ldexp(std::fabs(value), -11));
        sum += std::exp(value);
      }
      EXPECT_NEAR(rests[i], std::log(1 - sum), 1e-3 * std::fabs(std::log(1 - sum)) + 1e-4);
    }
  }
  EXPECT_EQ(row, lines.size());
}

// Ids have two bytes as long as two bytes can number all words.
TEST_F(SoftLabelsTest, IdsOfLargeVocabularies) {
  for (const auto& [words, type] : {std::pair(65536u, "<u2"), std::pair(65537u, "<u4")}) {
    folder_.WriteModel("large.kgl", TinyMicronet({.vocabulary = false, .vocabulary_size = words}));
    folder_.Write("large.txt", std::to_string(words - 1) + " 0 7 " + std::to_string(words - 1));
    const auto lines = folder_.Run("predict large.kgl --ids large.txt --top 9 --json").Json();
    const Outcome outcome = folder_.Run("predict large.kgl --ids large.txt --top 9 --out s.npz");
    ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
    auto arrays = ReadNpz(folder_.Read("s.npz"));
    for (const char* const name : {"token", "id"}) {
      EXPECT_NE(arrays[name].header.find(type), std::string::npos) << words << " " << name;
    }
    EXPECT_EQ(arrays["token"].Numbers(), (std::vector<double>{words - 1.0, 0, 7, words - 1.0}));
    const auto id = arrays["id"].Numbers();
    for (size_t i = 0; i < id.size(); ++i) EXPECT_EQ(id[i], lines[i / 9]["top"][i % 9]["id"]);
    RemoveFiles();
  }
}

// Each stream is a text of its own, and threads change nothing.
TEST_F(SoftLabelsTest, LanesDivideTheText) {
  const std::string run = "predict m.kgl --ids ids.txt --top 3 --out s.npz --lanes 4";
  ASSERT_EQ(folder_.Run(run).exit_status, 0);
  const auto files = Files();
  auto arrays = ReadNpz(folder_.Read("s.npz"));
  const auto positions = arrays["position"].Numbers(), id = arrays["id"].Numbers(),
             token = arrays["token"].Numbers();
  for (size_t lane = 0; lane < 4; ++lane) {
    const size_t first = 101 * lane / 4, end = 101 * (lane + 1) / 4;
    std::string part;
    for (size_t i = first; i < end; ++i) part += std::to_string(i * i % 23) + " ";
    folder_.Write("part.txt", part);
    const auto lines = folder_.Run("predict m.kgl --ids part.txt --top 3 --json").Json();
    for (size_t i = first; i < end; ++i) {
      EXPECT_EQ(positions[i], i + 1);
      EXPECT_EQ(token[i], i * i % 23);
      EXPECT_EQ(id[3 * i], lines[i - first]["top"][0]["id"]);
    }
  }
  RemoveFiles();
  ASSERT_EQ(folder_.Run(run + " --threads 3").exit_status, 0);
  EXPECT_EQ(Files(), files);
}

TEST_F(SoftLabelsTest, AKilledRunContinuesToTheSameBytes) {
  const std::string run =
      "predict m.kgl --ids ids.txt --top 9 --lanes 3 --shard-tokens 9 --out s.npz";
  ASSERT_EQ(folder_.Run(run).exit_status, 0);
  const auto files = Files();
  EXPECT_EQ(files.size(), 12u);
  const Outcome again = folder_.Run(run + " --json");  // nothing is left to do
  EXPECT_EQ(again.Json().at(0)["computed"], 0);
  EXPECT_EQ(Files(), files);
  RemoveFiles();
  for (const char* const seconds : {"0.004", "0.006", "0.008", "0.01", "0.012", "0.015", "0.02"}) {
    folder_.RunShell(std::string("(timeout -s KILL ") + seconds + " kinglet " + run +
                     ") > killed 2>&1");
    for (const auto& [name, bytes] : Files()) {
      if (!files.contains(name)) continue;
      EXPECT_EQ(bytes, files.at(name));
    }
  }
  ASSERT_EQ(folder_.Run(run).exit_status, 0);
  for (const auto& [name, bytes] : files) EXPECT_EQ(folder_.Read(name), bytes) << name;
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("s.npz.unfinished")));
}

TEST_F(SoftLabelsTest, OtherRunsAndHardInputs) {
  const std::string run = "predict m.kgl --ids ids.txt --out s.npz";
  ASSERT_EQ(folder_.Run(run).exit_status, 0);
  const auto files = Files();
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome = folder_.Run(arguments);
    EXPECT_NE(outcome.exit_status, 0) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << outcome.error;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
  };
  refused(run + " --top 4", "found another run's (remove it, or name another --out)");
  refused("predict m.kgl --ids ids.txt --out m.kgl", "m.kgl");
  refused("predict m.kgl --ids ids.txt --out x.npz --top-p 0.5", "--top-p");
  refused("predict m.kgl --ids ids.txt --shard-tokens 5", "--out");
  refused("predict m.kgl --ids ids.txt --out x.npz --shard-tokens 4294967295", "shard-tokens");
  refused("predict m.kgl --ids ids.txt --out absent/x.npz", "absent");
  EXPECT_EQ(Files(), files);
  RemoveFiles();
  folder_.Write("s.npz.unfinished", "{\"model\":\"other\"}\n");
  refused(run, "s.npz.unfinished");
  RemoveFiles();
  // No token, fewer tokens than streams, more words asked than there are.
  folder_.Write("none.txt", "");
  ASSERT_EQ(folder_.Run("predict m.kgl --top 2 --out s.npz", "").exit_status, 0);
  EXPECT_NE(ReadNpz(folder_.Read("s.npz"))["id"].header.find("(0, 2)"), std::string::npos);
  RemoveFiles();
  folder_.Write("two.txt", "4 5");
  ASSERT_EQ(folder_.Run("predict m.kgl --ids two.txt --lanes 9 --top 99 --out s.npz").exit_status,
            0);
  EXPECT_EQ(ReadNpz(folder_.Read("s.npz"))["rest"].Numbers(), std::vector<double>(2, -INFINITY));
}

TEST(NpzFile, WhatNumpyWrites) {
  // numpy.lib.format.header_data_from_array_1_0 of arrays of these shapes.
  const std::vector<uint16_t> values = {1, 2, 3, 4, 5, 6};
  const auto header = [&](std::vector<uint64_t> shape) {
    const std::string text =
        NpzBeginning({"x", "<u2", std::move(shape), std::as_bytes(std::span(values))});
    return text.substr(35 + 10, 118);
  };
  const auto padded = [](std::string text) { return text.append(117 - text.size(), ' ') + "\n"; };
  EXPECT_EQ(header({6}), padded("{'descr': '<u2', 'fortran_order': False, 'shape': (6,), }"));
  EXPECT_EQ(header({2, 3}), padded("{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }"));
}

}  // namespace
}  // namespace kinglet::soft_labels_test
