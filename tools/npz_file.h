// Arrays as an .npz file, which numpy.load reads: a zip archive of .npy files, not compressed.
#ifndef KINGLET_TOOLS_NPZ_FILE_H_
#define KINGLET_TOOLS_NPZ_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/write_file.h"
#include "kinglet/status.h"

namespace kinglet {

struct NpzArray {
  std::string name, type;            // type: as numpy writes it, "<u2"
  std::vector<uint64_t> shape;       // one extent at least
  std::span<const std::byte> bytes;  // little-endian, the last axis first
};

// The archive's bytes up to the end of this array, if it is the first.
std::string NpzBeginning(const NpzArray& first);

// Writes and seals the file; equal arrays give equal bytes. Errors: those of NewFile. REQUIRES: all
// arrays together take less than 4 GiB.
Result<NewFile> WriteNpz(std::span<const NpzArray> arrays, const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_NPZ_FILE_H_
