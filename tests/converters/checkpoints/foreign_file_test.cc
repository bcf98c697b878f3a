#include "converters/checkpoints/foreign_file.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "tests/converters/files.h"

namespace kinglet::foreign_file_test {
namespace {

std::string Described(const std::string& content) {
  const TemporaryFile file(content);
  return DescribeForeign(*InputFile::Open(file.path()));
}

TEST(DescribeForeign, NamesTheNextStep) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 3145\n";
  for (const auto& [content, text] :
       {std::pair<std::string, std::string>{"", "an empty file (copy or download it again)"},
        {pointer, "a Git LFS pointer (run `git lfs pull`)"},
        {"<!DOCTYPE html>", "a web page (download the file itself)"},
        {"\x1f\x8b\x08", "a gzip file (unpack it)"},
        {std::string("KGL1\r\n\x1a\n", 8),
         "a model file that is converted already (`kinglet inspect` shows it)"},
        {"\x89HDF\r\n", "an HDF5 file (save the weights as .npz or safetensors)"},
        {"\x80\x04.", "a pickle that torch.save did not write (save the weights with torch.save)"},
        {std::string(257, 'x') + "ustar  ", "a tar archive (unpack it)"},
        {std::string(99, 'x') + "\x57\xfb\x80\x8b\x24\x75\x47\xdb",
         "a checkpoint of TensorFlow's first format (save it with tf.compat.v1.train.Saver, or as "
         ".npz)"},
        {"hello", "bytes 68 65 6c 6c 6f (name the file of weights that the framework saved)"},
        {"version 1",
         "bytes 76 65 72 73 69 6f 6e 20 (name the file of weights that the framework saved)"}}) {
    EXPECT_EQ(Described(content), text);
  }
}

// First bytes from the formats' specifications. Texts about the formats are texts.
TEST(DescribeNoText, NamesTheCommand) {
  const std::string zero(1, '\0');
  for (const auto& [head, found] : std::initializer_list<std::pair<std::string, std::string>>{
           {"\xfd"
            "7zXZ" +
                zero,
            "an xz file (`xz -dc F.x > text.txt` unpacks it)"},
           {"BZh91AY&SY", "a bzip2 file (`bzip2 -dc F.x > text.txt` unpacks it)"},
           {"PK\x03\x04", "a zip archive (`unzip -p F.x > text.txt` unpacks its texts)"},
           {"7z\xbc\xaf\x27\x1c", "a 7z archive (`7z x -so F.x > text.txt` unpacks its texts)"},
           {std::string(257, 'x') + "ustar",
            "a tar archive (`tar -xOf F.x > text.txt` unpacks its "
            "texts)"},
           {"%PDF-1.7\n", "a PDF (`pdftotext F.x text.txt` makes a text of it)"},
           {std::string("\x5d\0\0\x80", 4), "an lzma file (`xz -dc F.x > text.txt` unpacks it)"},
           {"LZIP\x01", "an lzip file (`lzip -dc F.x > text.txt` unpacks it)"},
           {std::string("\xff\x06\0\0sNaPpY", 10),
            "a snappy file (`snzip -dc F.x > text.txt` unpacks it)"},
           {"ORC\x0a\x01",
            "an ORC table (`python3 -c \"import pandas; "
            "pandas.read_orc('F.x').to_json('text.jsonl', orient='records', lines=True)\"` "
            "makes JSON Lines of it)"},
           {"PAR1\x15\x04",
            "a Parquet table (`python3 -c \"import pandas; "
            "pandas.read_parquet('F.x').to_json('text.jsonl', orient='records', lines=True)\"` "
            "makes JSON Lines of it)"},
           {"\xff\xfe"
            "a" +
                zero,
            "text in UTF-16 (`iconv -f UTF-16 -t UTF-8 F.x > text.txt` rewrites it)"},
           {"a" + zero + "b" + zero,
            "text in UTF-16 without its mark (`iconv -f UTF-16LE -t UTF-8 F.x > text.txt` rewrites "
            "it)"},
           {zero + "a" + zero + "b",
            "text in UTF-16 without its mark (`iconv -f UTF-16BE -t UTF-8 F.x > text.txt` rewrites "
            "it)"},
           {"\x80\x04\x95", "a pickle that torch.save did not write (name a text)"},
           {"KGL1\r\n\x1a\n",
            "a model file that is converted already (`kinglet inspect` shows it)"},
           {"\x93NUMPY", "a NumPy array (--ids reads token ids)"}}) {
    EXPECT_EQ(DescribeNoText(head, "F.x"), found);
  }
  for (const std::string text :
       {"", "the cat", "BZh is its name", "PAR1 and PAR2", "KGL1\r\n", "PK", "<html>",
        "\xEF\xBB\xBF", "caf\xe9", "7zip", "%PDF is a format", "ORC", "LZIP"}) {
    EXPECT_EQ(DescribeNoText(text, "F.x"), "") << text;
  }
}

// Packed bytes have each control as often as any other byte.
TEST(LooksBinary, ByControls) {
  std::string all;
  for (int i = 0; i < 512; ++i) all += static_cast<char>(i * 167);
  EXPECT_TRUE(LooksBinary(all));
  EXPECT_TRUE(LooksBinary(std::string("\x01\x02\x03\x04\x05\x06\x07\x08")));
  for (const std::string& text :
       {std::string(), std::string(300, 'a') + std::string(9, '\0'), std::string("a\0b\x01", 4),
        std::string("\x1b[1mthe\x1b[0m\t\r\n\f"), std::string(600, 'a') + all}) {
    EXPECT_FALSE(LooksBinary(text)) << text;
  }
}

// A complete line is answered at once.
TEST(DescribeNoText, MoreBytesMayDecide) {
  for (const char* head : {"", "P", "PK", "%PDF-", "BZh9", "\xfd", "\xff"}) {
    EXPECT_TRUE(MayBeNoText(head)) << head;
  }
  for (const char* head : {"the", "P\n", "PAR1\n", "a", "BZh9 is its beginning"}) {
    EXPECT_FALSE(MayBeNoText(head)) << head;
  }
}

}  // namespace
}  // namespace kinglet::foreign_file_test
