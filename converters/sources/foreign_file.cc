#include "converters/sources/foreign_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "converters/sources/quoted.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

constexpr size_t kHeadBytes = 64;
constexpr size_t kShownBytes = 8;
constexpr size_t kTarMarkAt = 257;
constexpr std::string_view kTarMark = "ustar";

struct Kind {
  std::string_view begins;
  std::string_view text;
};
constexpr std::array kKinds = {
    Kind{"version https://git-lfs"sv, "a Git LFS pointer (run `git lfs pull`)"sv},
    Kind{"<!DOCTYPE"sv, "a web page (download the file itself)"sv},
    Kind{"<!doctype"sv, "a web page (download the file itself)"sv},
    Kind{"<html"sv, "a web page (download the file itself)"sv},
    Kind{"\x1f\x8b"sv, "a gzip file (unpack it)"sv},
    Kind{"\xfd"
         "7zXZ"sv,
         "an xz file (unpack it)"sv},
    Kind{"BZh"sv, "a bzip2 file (unpack it)"sv},
    Kind{"\x28\xb5\x2f\xfd"sv, "a zstd file (unpack it)"sv},
    Kind{"KGL1"sv, "a model file that is converted already (`kinglet inspect` shows it)"sv},
    Kind{"GGUF"sv, "a GGUF file of llama.cpp (convert the checkpoint that it was made of)"sv},
    Kind{"\x89HDF"sv, "an HDF5 file (save the weights as .npz or safetensors)"sv},
    Kind{"\x80\x02"sv,
         "a pickle that torch.save did not write (save the weights with torch.save)"sv},
    Kind{"\x80\x03"sv,
         "a pickle that torch.save did not write (save the weights with torch.save)"sv},
    Kind{"\x80\x04"sv,
         "a pickle that torch.save did not write (save the weights with torch.save)"sv},
    Kind{"\x80\x05"sv,
         "a pickle that torch.save did not write (save the weights with torch.save)"sv},
};

std::string_view HeadOf(const InputFile& file, std::span<char> space) {
  const std::span<char> head = space.first(std::min<uint64_t>(space.size(), file.size()));
  if (!file.ReadAt(0, std::as_writable_bytes(head)).ok()) return {};
  return {head.data(), head.size()};
}

bool IsTar(const InputFile& file) {
  std::array<char, kTarMark.size()> mark{};
  return file.size() > kTarMarkAt + mark.size() &&
         file.ReadAt(kTarMarkAt, std::as_writable_bytes(std::span(mark))).ok() &&
         std::string_view(mark.data(), mark.size()) == kTarMark;
}

}  // namespace

std::string DescribeForeign(const InputFile& file) {
  if (file.size() == 0) return "an empty file (copy or download it again)";
  std::array<char, kHeadBytes> space{};
  const std::string_view head = HeadOf(file, space);
  if (head.empty()) return "unreadable bytes";
  for (const Kind& kind : kKinds) {
    if (head.starts_with(kind.begins)) return std::string(kind.text);
  }
  if (IsTar(file)) return "a tar archive (unpack it)";
  std::string text = "bytes";
  for (const char c : head.substr(0, kShownBytes)) text += " " + HexByte(std::byte(c));
  return text;
}

}  // namespace kinglet
