// Bytes of every kind for tests of compression, and archives of them.
#ifndef KINGLET_TESTS_RUNTIME_COMPRESS_TEXTS_H_
#define KINGLET_TESTS_RUNTIME_COMPRESS_TEXTS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/compress/archive_reader.h"
#include "runtime/compress/archive_writer.h"
#include "tests/runtime/session_fixture.h"

namespace kinglet::compress {

using Bytes = std::vector<std::byte>;

inline Bytes BytesOfText(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

// Words of the tiny models, spaces, marks and unknown words.
inline std::string WordsText(size_t length, uint64_t seed) {
  TestRandom random(seed);
  std::string text;
  while (text.size() < length) {
    const auto kind = random.Below(12);
    text += kind == 0   ? "unheard"
            : kind == 1 ? "\n"
            : kind == 2 ? "the,"
            : kind == 3 ? "<unk>"
                        : "w" + std::to_string(3 + random.Below(20));
    text += random.Below(8) == 0 ? "\n" : " ";
  }
  text.resize(length);
  return text;
}

inline constexpr uint64_t kTextKinds = 7;
inline Bytes MakeText(uint64_t kind, size_t length, uint64_t seed) {
  TestRandom random(seed);
  Bytes bytes(length);
  const std::string words = WordsText(length, seed);
  for (size_t i = 0; i < length; ++i) {
    unsigned byte = 0;
    switch (kind % kTextKinds) {
      case 0:
        byte = random.Below(256);
        break;
      case 1:
        byte = static_cast<unsigned char>(words[i]);
        break;
      case 2:
        byte = static_cast<unsigned char>(words[i % std::min<size_t>(length, 37)]);
        break;
      case 3:
        byte = seed % 256;
        break;
      case 4:
        byte = i % 256;
        break;
      case 5:
        byte = random.Below(2) == 0 ? 0xC3 : 0x80 + random.Below(128);
        break;  // not UTF-8
      default:
        byte = random.Below(5) == 0 ? random.Below(256) : words[i] & 255;
        break;
    }
    bytes[i] = static_cast<std::byte>(byte);
  }
  return bytes;
}

inline std::shared_ptr<const Model> TinyWords(const std::string& backend = "cpu") {
  return Open(TinyMicronet({.quantised = true, .bits = 9, .cache_capacity = 8}), backend);
}

// Gives the input in pieces of `piece` bytes to a writer or reader, whose output `out` gets.
template <class Archive>
Status PassAll(Archive& archive, std::span<const std::byte> input, size_t piece, Bytes& out) {
  const auto take = [&]() -> Status {
    for (size_t before = SIZE_MAX; out.size() != before;) {
      before = out.size();
      KINGLET_RETURN_IF_ERROR(archive.Next(out));
    }
    return Status();
  };
  while (!input.empty()) {
    const auto part = input.first(std::min(piece, input.size()));
    archive.Add(part);
    KINGLET_RETURN_IF_ERROR(take());
    input = input.subspan(part.size());
  }
  archive.EndOfInput();
  return take();
}

// The archive, with the text given in pieces of `piece` bytes.
inline Bytes CompressAll(const std::shared_ptr<const Model>& model, const Bytes& text,
                         const ArchiveWriter::Options& options = {}, size_t piece = SIZE_MAX) {
  auto writer = ArchiveWriter::Create(model, options);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  Bytes out;
  const Status status = PassAll(*writer, text, piece, out);
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

struct RestoredText {
  Status status;
  Bytes text;
  std::vector<std::string> damages;
};
inline RestoredText RestoreAll(const std::shared_ptr<const Model>& model, const Bytes& archive,
                               const ArchiveReader::Options& options = {},
                               size_t piece = SIZE_MAX) {
  auto reader = ArchiveReader::Create(model, options);
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  RestoredText restored;
  restored.status = PassAll(*reader, archive, piece, restored.text);
  restored.damages = reader->damages();
  return restored;
}

}  // namespace kinglet::compress

#endif  // KINGLET_TESTS_RUNTIME_COMPRESS_TEXTS_H_
