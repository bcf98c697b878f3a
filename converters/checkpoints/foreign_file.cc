#include "converters/checkpoints/foreign_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "converters/checkpoints/quoted.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

constexpr size_t kHeadBytes = 64;
constexpr size_t kShownBytes = 8;
constexpr size_t kTarMarkAt = 257;
constexpr std::string_view kTarMark = "ustar";
constexpr std::string_view kTableMark = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";

struct Kind {
  std::string_view begins;
  std::string_view what;
  std::string_view next;          // the next step where a checkpoint is expected
  std::string_view to_text = {};  // where a text is, of the file F; "": the bytes may be text
};
constexpr std::string_view kSave = "save the weights with torch.save";
constexpr std::string_view kPickle = "a pickle that torch.save did not write";
constexpr std::string_view kNoText = "name a text";
constexpr std::array kKinds = {
    Kind{"version https://git-lfs"sv, "a Git LFS pointer", "run `git lfs pull`",
         "run `git lfs pull`"},
    Kind{"<!DOCTYPE"sv, "a web page", "download the file itself"},
    Kind{"<!doctype"sv, "a web page", "download the file itself"},
    Kind{"<html"sv, "a web page", "download the file itself"},
    Kind{"\x1f\x8b"sv, "a gzip file", "unpack it", "`gzip -dc F > text.txt` unpacks it"},
    Kind{"\xfd"
         "7zXZ"sv,
         "an xz file", "unpack it", "`xz -dc F > text.txt` unpacks it"},
    Kind{"BZh"sv, "a bzip2 file", "unpack it", "`bzip2 -dc F > text.txt` unpacks it"},
    Kind{"\x28\xb5\x2f\xfd"sv, "a zstd file", "unpack it", "`zstd -dc F > text.txt` unpacks it"},
    Kind{"KNG1"sv, "an n-gram file that is converted already", "`kinglet ngram` shows it",
         "`kinglet ngram` shows it"},
    Kind{"mmap lm http://kheafield.com/code"sv,
         "a binary file of KenLM, whose layout depends on KenLM's version",
         "name the ARPA file that it was made from", "name the ARPA file that it was made from"},
    Kind{"KGL1"sv, "a model file that is converted already", "`kinglet inspect` shows it",
         "`kinglet inspect` shows it"},
    Kind{"GGUF"sv, "a GGUF file of llama.cpp", "convert the checkpoint that it was made from",
         kNoText},
    Kind{"\x89HDF"sv, "an HDF5 file", "save the weights as .npz or safetensors", kNoText},
    Kind{"\x80\x02"sv, kPickle, kSave, kNoText},
    Kind{"\x80\x03"sv, kPickle, kSave, kNoText},
    Kind{"\x80\x04"sv, kPickle, kSave, kNoText},
    Kind{"\x80\x05"sv, kPickle, kSave, kNoText},
};
// Files that contain texts, but are not text.
constexpr std::array kDocuments = {
    Kind{"PK\x03\x04"sv, "a zip archive", "", "`unzip -p F > text.txt` unpacks its texts"},
    Kind{"PK\x05\x06"sv, "an empty zip archive", "", kNoText},
    Kind{"7z\xbc\xaf\x27\x1c"sv, "a 7z archive", "", "`7z x -so F > text.txt` unpacks its texts"},
    Kind{"\x04\x22\x4d\x18"sv, "an lz4 file", "", "`lz4 -dc F > text.txt` unpacks it"},
    Kind{"\x5d\x00\x00"sv, "an lzma file", "", "`xz -dc F > text.txt` unpacks it"},
    Kind{"LZIP\x01"sv, "an lzip file", "", "`lzip -dc F > text.txt` unpacks it"},
    Kind{"\xff\x06\x00\x00sNaPpY"sv, "a snappy file", "", "`snzip -dc F > text.txt` unpacks it"},
    Kind{"\x1f\x9d"sv, "a file of compress", "", "`gzip -dc F > text.txt` unpacks it"},
    Kind{"Rar!\x1a\x07"sv, "a rar archive", "", "`unrar p -inul F > text.txt` unpacks its texts"},
    Kind{"PAR1"sv, "a Parquet table", "",
         "`python3 -c \"import pandas; pandas.read_parquet('F').to_json('text.jsonl', "
         "orient='records', lines=True)\"` makes JSON Lines of it"},
    Kind{"ARROW1"sv, "an Arrow table", "",
         "`python3 -c \"import pandas; pandas.read_feather('F').to_json('text.jsonl', "
         "orient='records', lines=True)\"` makes JSON Lines of it"},
    Kind{"FEA1"sv, "a Feather table", "",
         "`python3 -c \"import pandas; pandas.read_feather('F').to_json('text.jsonl', "
         "orient='records', lines=True)\"` makes JSON Lines of it"},
    Kind{"ORC"sv, "an ORC table", "",
         "`python3 -c \"import pandas; pandas.read_orc('F').to_json('text.jsonl', "
         "orient='records', lines=True)\"` makes JSON Lines of it"},
    Kind{"Obj\x01"sv, "an Avro file", "", "write its texts as JSON Lines"},
    Kind{"SQLite format 3"sv, "an SQLite database", "", "write its texts as JSON Lines"},
    Kind{"%PDF-1."sv, "a PDF", "", "`pdftotext F text.txt` makes a text of it"},
    Kind{"%PDF-2."sv, "a PDF", "", "`pdftotext F text.txt` makes a text of it"},
    Kind{"{\\rtf1"sv, "an RTF document", "", "save it as plain text in UTF-8"},
    Kind{"\xd0\xcf\x11\xe0"sv, "an old Office document", "", "save it as plain text in UTF-8"},
    Kind{"\x89PNG"sv, "a picture", "", kNoText},
    Kind{"\xff\xd8\xff"sv, "a picture", "", kNoText},
    Kind{"\x7f"
         "ELF"sv,
         "a program", "", kNoText},
    Kind{"\x93NUMPY"sv, "a NumPy array", "", "--ids reads token ids"},
    Kind{"\xff\xfe\x00\x00"sv, "text in UTF-32", "",
         "`iconv -f UTF-32 -t UTF-8 F > text.txt` rewrites it"},
    Kind{"\x00\x00\xfe\xff"sv, "text in UTF-32", "",
         "`iconv -f UTF-32 -t UTF-8 F > text.txt` rewrites it"},
    Kind{"\xff\xfe"sv, "text in UTF-16", "", "`iconv -f UTF-16 -t UTF-8 F > text.txt` rewrites it"},
    Kind{"\xfe\xff"sv, "text in UTF-16", "", "`iconv -f UTF-16 -t UTF-8 F > text.txt` rewrites it"},
};
constexpr Kind kTar = {"", "a tar archive", "unpack it",
                       "`tar -xOf F > text.txt` unpacks its texts"};
constexpr Kind kLittleUtf16 = {"", "text in UTF-16 without its mark", "",
                               "`iconv -f UTF-16LE -t UTF-8 F > text.txt` rewrites it"};
constexpr Kind kBigUtf16 = {"", "text in UTF-16 without its mark", "",
                            "`iconv -f UTF-16BE -t UTF-8 F > text.txt` rewrites it"};
constexpr size_t kUtf16Bytes = 4;  // two characters of ASCII
// What follows the level of a bzip2 file: the digits of pi.
constexpr std::string_view kBzip2Block = "1AY&SY";
constexpr size_t kBzip2BlockAt = 4;

// The length of names in ASCII with which no text begins by chance.
constexpr size_t kLongName = 6;

// A byte that no text contains, to tell a file from a text that begins with the same letters.
bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 && !(byte >= '\t' && byte <= '\r') && byte < 0x1b;
}

bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// Whether bytes that begin like the kind's are a file of the kind, not a text about it.
bool IsFileOfKind(const Kind& kind, std::string_view head) {
  if (kind.begins == "BZh") {
    return head.substr(std::min(head.size(), kBzip2BlockAt)).starts_with(kBzip2Block);
  }
  return !IsPrintable(kind.begins) || kind.begins.size() >= kLongName ||
         std::any_of(head.begin(), head.end(), IsControl);
}

const Kind* KindOfNoText(std::string_view head) {
  for (const Kind& kind : kKinds) {
    if (kind.to_text.empty() || !head.starts_with(kind.begins)) continue;
    if (IsFileOfKind(kind, head)) return &kind;
  }
  for (const Kind& kind : kDocuments) {
    if (head.starts_with(kind.begins) && IsFileOfKind(kind, head)) return &kind;
  }
  if (head.substr(std::min(head.size(), kTarMarkAt)).starts_with(kTarMark)) return &kTar;
  if (head.size() < kUtf16Bytes) return nullptr;
  const auto zeros = [&](size_t first) { return head[first] == 0 && head[first + 2] == 0; };
  const auto letters = [&](size_t first) { return head[first] != 0 && head[first + 2] != 0; };
  if (letters(0) && zeros(1)) return &kLittleUtf16;
  if (zeros(0) && letters(1)) return &kBigUtf16;
  return nullptr;
}

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

// "WHAT (NEXT)".
std::string Described(std::string_view what, std::string_view next) {
  return std::string(what) + " (" + std::string(next) + ")";
}

}  // namespace

std::string DescribeForeign(const InputFile& file) {
  if (file.size() == 0) return "an empty file (copy or download it again)";
  std::array<char, kHeadBytes> space{};
  const std::string_view head = HeadOf(file, space);
  if (head.empty()) return "unreadable bytes";
  for (const Kind& kind : kKinds) {
    if (head.starts_with(kind.begins)) return Described(kind.what, kind.next);
  }
  if (IsTar(file)) return Described(kTar.what, kTar.next);
  // A table of LevelDB, as also a .index is, with another content.
  std::array<char, kTableMark.size()> end{};
  if (file.size() > kTableMark.size() &&
      file.ReadAt(file.size() - end.size(), std::as_writable_bytes(std::span(end))).ok() &&
      std::string_view(end.data(), end.size()) == kTableMark) {
    return Described("a checkpoint of TensorFlow's first format",
                     "save it with tf.compat.v1.train.Saver, or as .npz");
  }
  std::string text = "bytes";
  for (const char c : head.substr(0, kShownBytes)) text += " " + HexByte(std::byte(c));
  return text + " (name the file of weights that the framework saved)";
}

std::string DescribeNoText(std::string_view head, const std::string& name) {
  const Kind* const kind = KindOfNoText(head.substr(0, kNoTextHead));
  if (kind == nullptr) return "";
  std::string next(kind->to_text);
  if (const size_t at = next.find(" F "); at != next.npos) next.replace(at + 1, 1, name);
  if (const size_t at = next.find("'F'"); at != next.npos) next.replace(at + 1, 1, name);
  return Described(kind->what, next);
}

bool LooksBinary(std::string_view head) {
  constexpr std::ptrdiff_t kLeast = 8, kShare = 32;
  head = head.substr(0, kNoTextHead);
  const std::ptrdiff_t controls = std::count_if(head.begin(), head.end(), IsControl);
  return controls >= kLeast && controls * kShare >= std::ssize(head);
}

bool MayBeNoText(std::string_view head) {
  if (head.size() < kUtf16Bytes && head.find('\0') != head.npos) return true;
  if (head.find('\n') != head.npos) return false;  // a line that was typed is answered
  const auto may_begin = [&](const Kind& kind) {
    return kind.begins.starts_with(head) ||
           (head.starts_with(kind.begins) && head.size() < kBzip2BlockAt + kBzip2Block.size());
  };
  return std::any_of(kKinds.begin(), kKinds.end(),
                     [&](const Kind& kind) { return !kind.to_text.empty() && may_begin(kind); }) ||
         std::any_of(kDocuments.begin(), kDocuments.end(), may_begin);
}

}  // namespace kinglet
