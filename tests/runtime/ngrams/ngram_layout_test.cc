#include "runtime/ngrams/ngram_layout.h"

#include <gtest/gtest.h>

namespace kinglet::ngram_layout_test {
namespace {

NgramHeader Header() {
  NgramHeader header;
  header.order = 3;
  header.bits = 8;
  header.word_bytes = 100;
  header.counts = {20, 30, 40};
  return header;
}

TEST(NgramLayout, HeadersAreReadAsWritten) {
  const NgramLayout layout = LayOutNgrams("a", Header()).value();
  const auto bytes = EncodeNgramHeader(layout);
  const NgramLayout read = DecodeNgramHeader("a", bytes, layout.file_size).value();
  EXPECT_EQ(read.header, Header());
  EXPECT_EQ(read.file_size, layout.file_size);
  EXPECT_EQ(read.levels[1].record_bits(), 5 + 8 + 8 + 6);
  EXPECT_EQ(read.levels[2].record_bits(), 5 + 8);
  EXPECT_FALSE(DecodeNgramHeader("a", bytes, layout.file_size + 1).ok());
}

TEST(NgramLayout, ImpossibleHeadersAreRefused) {
  const auto refused = [](auto change) {
    NgramHeader header = Header();
    change(header);
    const Status status = LayOutNgrams("a.kng", header).status();
    EXPECT_EQ(status.code(), KINGLET_CORRUPT);
    EXPECT_TRUE(status.message().starts_with("a.kng: ")) << status.message();
  };
  refused([](NgramHeader& header) { header.order = 0; });
  refused([](NgramHeader& header) { header.order = 9; });
  refused([](NgramHeader& header) { header.order = 2; });
  refused([](NgramHeader& header) { header.bits = 1; });
  refused([](NgramHeader& header) { header.bits = 17; });
  refused([](NgramHeader& header) { header.counts[0] = 2; });
  refused([](NgramHeader& header) { header.counts[1] = kMaxNgrams + 1; });
  refused([](NgramHeader& header) { header.word_bytes = uint64_t{1} << 32; });
}

TEST(NgramLayout, AnotherVersionNamesTheNextStep) {
  const NgramLayout layout = LayOutNgrams("a", Header()).value();
  auto bytes = EncodeNgramHeader(layout);
  bytes[4] = std::byte{2};
  const Status status = DecodeNgramHeader("a.kng", bytes, layout.file_size).status();
  EXPECT_EQ(status.code(), KINGLET_UNSUPPORTED_VERSION);
  EXPECT_EQ(status.message(),
            "a.kng: version: expected 1, found 2 (make the file again from its ARPA file)");
}

}  // namespace
}  // namespace kinglet::ngram_layout_test
