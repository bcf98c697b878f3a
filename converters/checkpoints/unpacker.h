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
  // The unpacker for bytes that begin with `head`; nullptr if they are not packed.
  static std::unique_ptr<Unpacker> For(std::string_view head);
  virtual ~Unpacker() = default;

  // Unpacks into `out` and removes the bytes that it has read from the front of `packed`, until
  // `packed` is empty or `out` is full. Returns the number of bytes in `out`. After an empty
  // `packed`, more bytes may follow: all members and frames are read. Errors: KINGLET_CORRUPT, with
  // the next step.
  virtual Result<size_t> Unpack(std::string_view& packed, std::span<char> out) = 0;
  // Whether the packed bytes may end here.
  virtual bool at_end() const = 0;
  // "gzip" or "zstd".
  virtual std::string name() const = 0;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_UNPACKER_H_
