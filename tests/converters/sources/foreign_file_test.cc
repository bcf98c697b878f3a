#include "converters/sources/foreign_file.h"

#include <gtest/gtest.h>

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
        {"hello", "bytes 68 65 6c 6c 6f"},
        {"version 1", "bytes 76 65 72 73 69 6f 6e 20"}}) {
    EXPECT_EQ(Described(content), text);
  }
}

}  // namespace
}  // namespace kinglet::foreign_file_test
