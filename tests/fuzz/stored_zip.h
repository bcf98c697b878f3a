// Zip archives made byte by byte: any entry names, no compression.
#ifndef KINGLET_TESTS_FUZZ_STORED_ZIP_H_
#define KINGLET_TESTS_FUZZ_STORED_ZIP_H_

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kinglet::fuzz {

using ZipEntries = std::vector<std::pair<std::string, std::span<const std::byte>>>;

// PKWARE's APPNOTE.TXT, method 0, with right checksums.
std::vector<std::byte> StoredZip(const ZipEntries& entries);
// A torch.save archive of this pickle and two storages of zeros, "0" and "1".
std::vector<std::byte> TorchZipOf(std::span<const std::byte> pickle);

}  // namespace kinglet::fuzz

#endif  // KINGLET_TESTS_FUZZ_STORED_ZIP_H_
