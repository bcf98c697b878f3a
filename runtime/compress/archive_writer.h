// Makes an archive of bytes that come in pieces of any size.
#ifndef KINGLET_RUNTIME_COMPRESS_ARCHIVE_WRITER_H_
#define KINGLET_RUNTIME_COMPRESS_ARCHIVE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/digest.h"
#include "kinglet/status.h"
#include "runtime/compress/archive_format.h"
#include "runtime/compress/block_team.h"
#include "runtime/model.h"

namespace kinglet::compress {

class ArchiveWriter {
 public:
  struct Options {
    uint32_t block_size = kDefaultBlock;
    uint32_t threads = 1;  // blocks that are compressed at the same time; the bytes do not change
    bool fast = false;     // mix less: faster, and a little larger
    StopAsked stop = {};
  };
  // Errors: KINGLET_INVALID_ARGUMENT for options out of their ranges; those of BlockTeam::Create.
  static Result<ArchiveWriter> Create(std::shared_ptr<const Model> model, const Options& options);

  // Takes the next bytes of the text. Throws std::bad_alloc.
  void Add(std::span<const std::byte> text);
  // No bytes follow.
  void EndOfInput() { has_ended_ = true; }
  // Appends the next bytes of the archive to `out`: a block for each thread. Appends nothing if
  // more text is needed, or after the end. Errors: those of BlockTeam::Compress, which no call may
  // follow.
  Status Next(std::vector<std::byte>& out);

 private:
  ArchiveWriter(BlockTeam team, const ArchiveHeader& header, bool fast)
      : team_(std::move(team)), header_(header), fast_(fast) {}

  BlockTeam team_;
  ArchiveHeader header_;
  bool fast_, begun_ = false, has_ended_ = false, complete_ = false;
  std::vector<std::vector<std::byte>> blocks_;  // texts
  uint64_t number_ = 0, length_ = 0;
  DigestStream digest_;
};

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_ARCHIVE_WRITER_H_
