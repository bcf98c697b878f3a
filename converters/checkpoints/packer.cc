#include "converters/checkpoints/packer.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <new>

namespace kinglet {
namespace {

constexpr size_t kPackedBytes = size_t{1} << 16;

class GzipPacker final : public Packer {
 public:
  GzipPacker() {
    constexpr int kGzip = 16 + MAX_WBITS, kUsualMemory = 8;
    if (::deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kUsualMemory,
                       Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  GzipPacker(const GzipPacker&) = delete;
  GzipPacker& operator=(const GzipPacker&) = delete;
  ~GzipPacker() override { ::deflateEnd(&stream_); }

  void Pack(std::string_view bytes, bool ends, std::string& packed) override {
    constexpr size_t kMost = std::numeric_limits<uInt>::max();
    do {
      const std::string_view some = bytes.substr(0, kMost);
      bytes.remove_prefix(some.size());
      // zlib takes its input without const, but only reads it.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(some.data()));
      stream_.avail_in = static_cast<uInt>(some.size());
      do {
        stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
        stream_.avail_out = static_cast<uInt>(piece_.size());
        ::deflate(&stream_, ends && bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
        packed.append(piece_.data(), piece_.size() - stream_.avail_out);
      } while (stream_.avail_out == 0);
    } while (!bytes.empty());
  }

 private:
  z_stream stream_ = {};
  std::array<char, kPackedBytes> piece_;
};

class ZstdPacker final : public Packer {
 public:
  ZstdPacker() {
    if (context_ == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  }

  void Pack(std::string_view bytes, bool ends, std::string& packed) override {
    ZSTD_inBuffer in = {bytes.data(), bytes.size(), 0};
    size_t left;
    do {
      ZSTD_outBuffer out = {piece_.data(), piece_.size(), 0};
      left = ZSTD_compressStream2(context_.get(), &out, &in, ends ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left) != 0) throw std::bad_alloc();  // the only error of valid parameters
      packed.append(piece_.data(), out.pos);
    } while (ends ? left > 0 : in.pos < in.size);
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context_{ZSTD_createCCtx()};
  std::array<char, kPackedBytes> piece_;
};

}  // namespace

std::unique_ptr<Packer> Packer::For(std::string_view form) {
  if (form == "gz") return std::make_unique<GzipPacker>();
  return std::make_unique<ZstdPacker>();
}

}  // namespace kinglet
