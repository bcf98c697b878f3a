// Integers at the edges of 31, 32, 63 and 64 bits at every offset of small files: nothing crashes,
// and nothing allocates what a file only claims. Time grows in proportion to the file.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/checkpoints/pickle.h"
#include "converters/recipe/recipe_node.h"
#include "format/vocabulary.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace kinglet::fuzz {
namespace {

#ifdef KINGLET_SANITIZED
constexpr size_t kSizesStride = 16;
#else
constexpr size_t kSizesStride = 2;
#endif

constexpr uint64_t kEdges[] = {
    0x7FFFFFFF,        0x80000000, 0xFFFFFFFF, uint64_t{1} << 32, (uint64_t{1} << 63) - 1,
    uint64_t{1} << 63, UINT64_MAX, 0};

std::vector<std::vector<std::byte>> SeedsOf(const Target& target) {
  std::vector<std::vector<std::byte>> seeds;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::string(KINGLET_TEST_DATA "/fuzz/") + std::string(target.name))) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(text));
    seeds.emplace_back(bytes.begin(), bytes.end());
  }
  return seeds;
}

long PeakKilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Feeds each seed with `width` bytes at every multiple of `step` replaced by an edge.
void ChangeEverySize(const char* name, size_t width, size_t step) {
  const Target& target = *FindTarget(name);
  size_t turn = 0;
  for (const std::vector<std::byte>& seed : SeedsOf(target)) {
    const size_t stride = step * kSizesStride * (1 + seed.size() / 4096);
    for (size_t at = 0; at + width <= seed.size(); at += stride) {
      std::vector<std::byte> changed = seed;
      std::memcpy(&changed[at], &kEdges[turn++ % std::size(kEdges)], width);
      if (target.repair != nullptr) target.repair(changed);
      EXPECT_NO_THROW(target.run(changed)) << name << " byte " << at << ", width " << width;
    }
  }
}

TEST(HostileSizes, EveryFieldOfEveryContainerAtEveryEdge) {
  const long before = PeakKilobytes();
  for (const size_t width : {size_t{2}, size_t{4}, size_t{8}}) {
    ChangeEverySize("model_file", width, width);
    for (const char* name : {"state", "pickle", "torch_zip", "safetensors", "numpy", "archive"}) {
      ChangeEverySize(name, width, 1);
    }
  }
#ifndef KINGLET_SANITIZED
  EXPECT_LT(PeakKilobytes() - before, 128 * 1024) << "kB more than before";
#else
  (void)before;
#endif
}

// An offset of 0 in a table's list of fields means that the field is absent.
TEST(HostileSizes, EveryFieldOfAModelFileMissing) {
  const Target& target = *FindTarget("model_file");
  for (const std::vector<std::byte>& seed : SeedsOf(target)) {
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, &seed[24], sizeof header_bytes);
    for (size_t at = 64; at + 2 <= 64 + header_bytes; at += kSizesStride) {
      std::vector<std::byte> changed = seed;
      changed[at] = changed[at + 1] = std::byte{0};
      target.repair(changed);
      EXPECT_NO_THROW(target.run(changed)) << at;
    }
  }
}

TEST(HostileSizes, NumbersOfTextAtEveryEdge) {
  const Target& target = *FindTarget("safetensors");
  for (const char* number : {"2147483648", "4294967296", "9223372036854775807",
                             "9223372036854775808", "18446744073709551615", "-1", "1e999", "1.5"}) {
    for (int place = 0; place < 4; ++place) {
      std::string fields[] = {"2", "2", "0", "16"};
      fields[place] = number;
      const std::string header = R"({"a":{"dtype":"F32","shape":[)" + fields[0] + "," + fields[1] +
                                 R"(],"data_offsets":[)" + fields[2] + "," + fields[3] + "]}}";
      EXPECT_NO_THROW(target.run(std::as_bytes(std::span(header.data(), header.size()))));
    }
    const std::string npy =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::string(number) + ", 2), }\n";
    const std::string file =
        std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(npy.size()) + '\0' + npy;
    EXPECT_NO_THROW(FindTarget("numpy")->run(std::as_bytes(std::span(file.data(), file.size()))));
  }
}

// The best of several runs, in seconds of processor time, to which other programs do not add.
double SecondsOf(const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const std::clock_t begin = std::clock();
    work();
    best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return best;
}

// Eight times the input takes nowhere near 64 times as long.
void ExpectNoSquare(const char* what, const std::function<void(int)>& read) {
  const double small = SecondsOf([&] { read(2000); });
  const double large = SecondsOf([&] { read(16000); });
  EXPECT_LT(large, 32 * small + 1e-3) << what << ": " << small << " s, then " << large << " s";
}

TEST(HostileSizes, TimeGrowsAsTheInputDoes) {
  ExpectNoSquare("repeated names in safetensors", [](int count) {
    std::string header = "{";
    for (int i = 0; i < count; ++i) {
      header +=
          "\"n" + std::to_string(i) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)";
    }
    header.back() = '}';
    const uint64_t size = header.size();
    std::string file(sizeof size, '\0');
    std::memcpy(file.data(), &size, sizeof size);
    file += header;
    const MemoryFile place(std::as_bytes(std::span(file.data(), file.size())));
    (void)OpenCheckpointFile(place.path());
  });
  ExpectNoSquare("keys of a JSON object", [](int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += "\"k" + std::to_string(i) + "\":1,";
    text.back() = '}';
    (void)RecipeNode::Parse("recipe.json", text);
  });
  ExpectNoSquare("a dict of a pickle", [](int count) {
    std::string pickle = "}(";
    for (int i = 0; i < count; ++i) pickle += "I" + std::to_string(i) + "\nN";
    pickle += "u.";
    (void)ReadPickle(std::as_bytes(std::span(pickle.data(), pickle.size())), 0);
  });
  ExpectNoSquare("words", [](int count) {
    std::vector<std::string> words;
    for (int i = 0; i < count; ++i) words.push_back("word" + std::to_string(i));
    (void)Vocabulary::Pack(words);
  });
}

}  // namespace
}  // namespace kinglet::fuzz
