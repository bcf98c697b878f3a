// Streams of gzip and zstd, unpacked piece by piece.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_UNPACKER_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_UNPACKER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kinglet/status.h"

namespace kinglet {

class Unpacker {
 public:
  // One for bytes that begin so; null for any others.
  static std::unique_ptr<Unpacker> For(std::string_view head);
  virtual ~Unpacker() = default;

  // Unpacks into `out` and takes what it has read off the front of `packed`; both are left with
  // room or bytes only if the other has none. Returns the number of bytes in `out`. After "" of
  // `packed` more may come: all members and frames are read. Errors: KINGLET_CORRUPT, with the next
  // step.
  virtual Result<size_t> Unpack(std::string_view& packed, std::span<char> out) = 0;
  // Whether the bytes may end here.
  virtual bool at_end() const = 0;
  // "gzip" or "zstd".
  virtual std::string name() const = 0;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_UNPACKER_H_
