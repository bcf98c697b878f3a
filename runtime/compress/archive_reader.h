// Restores the text of an archive whose bytes come in pieces of any size.
#ifndef KINGLET_RUNTIME_COMPRESS_ARCHIVE_READER_H_
#define KINGLET_RUNTIME_COMPRESS_ARCHIVE_READER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/digest.h"
#include "kinglet/status.h"
#include "runtime/compress/archive_scanner.h"
#include "runtime/compress/block_team.h"
#include "runtime/model.h"

namespace kinglet::compress {

class ArchiveReader {
 public:
  struct Options {
    uint32_t threads = 1;
    uint64_t limit = std::numeric_limits<uint64_t>::max();  // bytes of text; more is refused
    bool salvage = false;  // omit damaged blocks, which damages() then names
    StopAsked stop = {};
  };
  // Errors: those of BlockTeam::Create.
  static Result<ArchiveReader> Create(std::shared_ptr<const Model> model, const Options& options);

  // Takes the next bytes of the archive. Throws std::bad_alloc.
  void Add(std::span<const std::byte> bytes) { scanner_.Add(bytes); }
  // No bytes follow.
  void EndOfInput() { scanner_.EndOfInput(); }
  // Appends the next bytes of the text, of which none is wrong, to `out`: a block for each thread.
  // Appends nothing if more bytes are needed, or after the end. Errors: KINGLET_CORRUPT, also for
  // an archive that is not complete; KINGLET_UNSUPPORTED_VERSION; KINGLET_MISMATCH for an archive
  // of another model, whose digest the message has; KINGLET_INVALID_ARGUMENT for a text above the
  // limit; those of BlockTeam::Restore. No call may follow an error.
  Status Next(std::vector<std::byte>& out);
  // With `salvage`: what is missing, a line for each range of blocks.
  const std::vector<std::string>& damages() const { return damages_; }

 private:
  ArchiveReader(BlockTeam team, const Digest128& model, const Options& options)
      : team_(std::move(team)), model_(model), options_(options) {}
  Status TakeHeader(const ArchiveHeader& header);
  Status TakeBlock(ScannedBlock block, std::vector<std::byte>& out);
  Status RestoreBlocks(std::vector<std::byte>& out);
  Status TakeEnd(const ArchiveEnd& end);
  Status Damage(uint64_t first, std::optional<uint64_t> end, const std::string& found);

  BlockTeam team_;
  Digest128 model_;
  Options options_;
  ArchiveScanner scanner_;
  uint32_t block_size_ = 0;
  std::vector<ScannedBlock> blocks_;
  uint64_t length_ = 0;
  DigestStream digest_;
  std::vector<std::string> damages_;
};

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_ARCHIVE_READER_H_
