#include "converters/checkpoints/unpacker.h"

#include <zlib.h>
#if __has_include(<zstd.h>)
#include <zstd.h>
#include <zstd_errors.h>
#endif

#include <new>
#include <utility>

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kGzipMagic = "\x1f\x8b"sv;
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd"sv;
// Frames of other data, which may precede those of a text: 0x184D2A50 to 0x184D2A5F.
constexpr std::string_view kSkippedMagicEnd = "\x2a\x4d\x18"sv;
constexpr int kGzipOnly = 16 + MAX_WBITS;  // of inflateInit2

Status Damaged(const std::string& kind, const std::string& found) {
  return Status::Refusal(KINGLET_CORRUPT, kind, "unpacking", "complete " + kind + " data",
                         found + " (the file is damaged: copy or make it again)");
}

// Members follow each other; zeros may follow the last one, as tape drives add them.
class GzipUnpacker final : public Unpacker {
 public:
  GzipUnpacker() {
    if (::inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  GzipUnpacker(const GzipUnpacker&) = delete;
  GzipUnpacker& operator=(const GzipUnpacker&) = delete;
  ~GzipUnpacker() override { ::inflateEnd(&stream_); }

  Result<size_t> Unpack(std::string_view& packed, std::span<char> out) override {
    size_t made = 0;
    while (made < out.size()) {
      if (between_) {
        while (!packed.empty() && packed.front() == '\0' && members_ > 0) {
          packed.remove_prefix(1);
          padded_ = true;
        }
        if (packed.empty()) break;
        if (packed.front() != kGzipMagic.front() || padded_) {
          return Damaged("gzip", "other bytes after its end");
        }
        if (::inflateReset(&stream_) != Z_OK) return Damaged("gzip", "none");
        between_ = false;
      }
      // zlib takes its input without const, but only reads it.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
      stream_.avail_in = static_cast<uInt>(packed.size());
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + made);
      stream_.avail_out = static_cast<uInt>(out.size() - made);
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      packed.remove_prefix(packed.size() - stream_.avail_in);
      made = out.size() - stream_.avail_out;
      if (status == Z_STREAM_END) {
        between_ = true;
        ++members_;
        continue;
      }
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      if (status != Z_OK && status != Z_BUF_ERROR) {
        return Damaged("gzip", stream_.msg == nullptr ? "other bytes" : stream_.msg);
      }
      if (packed.empty() && stream_.avail_out > 0) break;
    }
    return made;
  }
  bool at_end() const override { return between_; }
  std::string name() const override { return "gzip"; }

 private:
  z_stream stream_ = {};
  bool between_ = true, padded_ = false;
  size_t members_ = 0;
};

#if __has_include(<zstd.h>)
class ZstdUnpacker final : public Unpacker {
 public:
  ZstdUnpacker() : stream_(::ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  ZstdUnpacker(const ZstdUnpacker&) = delete;
  ZstdUnpacker& operator=(const ZstdUnpacker&) = delete;
  ~ZstdUnpacker() override { ::ZSTD_freeDStream(stream_); }

  Result<size_t> Unpack(std::string_view& packed, std::span<char> out) override {
    ZSTD_outBuffer to = {out.data(), out.size(), 0};
    while (to.pos < to.size) {
      ZSTD_inBuffer from = {packed.data(), packed.size(), 0};
      const size_t before = to.pos;
      const size_t status = ::ZSTD_decompressStream(stream_, &to, &from);
      packed.remove_prefix(from.pos);
      if (::ZSTD_isError(status) != 0) {
        if (::ZSTD_getErrorCode(status) == ZSTD_error_frameParameter_windowTooLarge) {
          return Status::Refusal(KINGLET_UNSUPPORTED, "zstd", "unpacking",
                                 "a window of at most 128 MiB",
                                 "a larger one (unpack it with `zstd -dc --long=31`)");
        }
        return Damaged("zstd", ::ZSTD_getErrorName(status));
      }
      if (from.pos > 0 || to.pos > before) at_end_ = status == 0;
      if (packed.empty() && to.pos < to.size) break;
    }
    return to.pos;
  }
  bool at_end() const override { return at_end_; }
  std::string name() const override { return "zstd"; }

 private:
  ZSTD_DStream* stream_;
  bool at_end_ = false;
};
#else
// In builds for systems without the library.
class ZstdUnpacker final : public Unpacker {
 public:
  Result<size_t> Unpack(std::string_view& /*packed*/, std::span<char> /*out*/) override {
    return Status::Refusal(KINGLET_UNSUPPORTED, "zstd", "unpacking",
                           "text that is plain or packed by gzip (unpack it with `zstd -dc`)",
                           "a build without the library of zstd");
  }
  bool at_end() const override { return true; }
  std::string name() const override { return "zstd"; }
};
#endif

}  // namespace

std::unique_ptr<Unpacker> Unpacker::For(std::string_view head) {
  if (head.starts_with(kGzipMagic)) return std::make_unique<GzipUnpacker>();
  const bool skipped = head.size() > kSkippedMagicEnd.size() && (head[0] & 0xf0) == 0x50 &&
                       head.substr(1).starts_with(kSkippedMagicEnd);
  if (skipped || head.starts_with(kZstdMagic)) return std::make_unique<ZstdUnpacker>();
  return nullptr;
}

}  // namespace kinglet
