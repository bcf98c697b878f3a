// Streams of gzip and zstd, made piece by piece. Equal bytes are packed to equal bytes.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_PACKER_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_PACKER_H_

#include <memory>
#include <string>
#include <string_view>

namespace kinglet {

class Packer {
 public:
  // `form`: "gz" or "zst". REQUIRES: one of them.
  static std::unique_ptr<Packer> For(std::string_view form);
  virtual ~Packer() = default;

  // Appends packed bytes to `packed`. They hold all bytes so far only if `ends`; no call follows.
  virtual void Pack(std::string_view bytes, bool ends, std::string& packed) = 0;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_PACKER_H_
