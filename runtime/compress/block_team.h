// Compresses or restores several blocks at the same time: threads with a session each.
#ifndef KINGLET_RUNTIME_COMPRESS_BLOCK_TEAM_H_
#define KINGLET_RUNTIME_COMPRESS_BLOCK_TEAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kinglet/status.h"
#include "runtime/compress/block_coder.h"
#include "runtime/model.h"
#include "runtime/session.h"

namespace kinglet::compress {

class BlockTeam {
 public:
  // Errors: KINGLET_INVALID_ARGUMENT for no threads; KINGLET_UNSUPPORTED for a model that cannot
  // predict the next token of a text, or on a backend whose bits are its own; those of
  // Session::Create. Each block's memory is claimed from the model's limit.
  static Result<BlockTeam> Create(std::shared_ptr<const Model> model, uint32_t threads,
                                  StopAsked stop = {});

  // The most blocks of one call.
  size_t together() const { return sessions_.size(); }
  // The compressed texts. REQUIRES: at most together() texts. Errors: those of the session, and
  // KINGLET_OUT_OF_MEMORY.
  Result<std::vector<std::vector<std::byte>>> Compress(
      std::span<const std::vector<std::byte>> texts, bool fast);
  // A compressed text, and its length.
  struct Coded {
    std::span<const std::byte> bytes;
    size_t length;
  };
  // The texts; an empty one for bytes that cannot be a block of this model. Errors: as above.
  Result<std::vector<std::vector<std::byte>>> Restore(std::span<const Coded> blocks);

 private:
  BlockTeam() = default;
  template <class Code>
  Result<std::vector<std::vector<std::byte>>> RunEach(std::span<const size_t> lengths,
                                                      const Code& code);

  std::shared_ptr<const Model> model_;
  StopAsked stop_;
  std::unique_ptr<const SharedWords> words_;
  std::vector<std::unique_ptr<Session>> sessions_;
};

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_BLOCK_TEAM_H_
