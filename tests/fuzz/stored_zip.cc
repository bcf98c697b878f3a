#include "tests/fuzz/stored_zip.h"

#include <zlib.h>

#include <cstdint>

namespace kinglet::fuzz {
namespace {

void AppendTo(std::vector<std::byte>& out, const void* data, size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + size);
}

void Append16To(std::vector<std::byte>& out, uint64_t value) { AppendTo(out, &value, 2); }
void Append32To(std::vector<std::byte>& out, uint64_t value) { AppendTo(out, &value, 4); }

}  // namespace

std::vector<std::byte> StoredZip(const ZipEntries& entries) {
  std::vector<std::byte> out, directory;
  for (const auto& [name, content] : entries) {
    const uint64_t crc =
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    const uint64_t offset = out.size();
    std::vector<std::byte> common;  // from the version needed to the length of the extra field
    for (const int field : {20, 0, 0, 0, 0x21}) Append16To(common, static_cast<uint64_t>(field));
    for (const uint64_t field : {crc, uint64_t{content.size()}, uint64_t{content.size()}}) {
      Append32To(common, field);
    }
    Append16To(common, name.size());
    Append16To(common, 0);
    Append32To(out, 0x04034b50);
    AppendTo(out, common.data(), common.size());
    AppendTo(out, name.data(), name.size());
    AppendTo(out, content.data(), content.size());
    Append32To(directory, 0x02014b50);
    Append16To(directory, 20);
    AppendTo(directory, common.data(), common.size());
    for (int i = 0; i < 3; ++i) Append16To(directory, 0);
    Append32To(directory, 0);
    Append32To(directory, offset);
    AppendTo(directory, name.data(), name.size());
  }
  const uint64_t begin = out.size();
  AppendTo(out, directory.data(), directory.size());
  Append32To(out, 0x06054b50);
  Append32To(out, 0);
  Append16To(out, entries.size());
  Append16To(out, entries.size());
  Append32To(out, directory.size());
  Append32To(out, begin);
  Append16To(out, 0);
  return out;
}

std::vector<std::byte> TorchZipOf(std::span<const std::byte> pickle) {
  const std::vector<std::byte> zeros(64);
  return StoredZip({{"archive/data.pkl", pickle},
                    {"archive/byteorder", std::as_bytes(std::span("little", 6))},
                    {"archive/data/0", zeros},
                    {"archive/data/1", std::span(zeros).first(32)}});
}

}  // namespace kinglet::fuzz
