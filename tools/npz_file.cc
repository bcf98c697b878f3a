#include "tools/npz_file.h"

#include <zlib.h>

#include <string_view>
#include <utility>

namespace kinglet {
namespace {

void AddInteger(uint64_t value, int bytes, std::string& out) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

// The header of a .npy file, version 1.0: filled up to 64 bytes, so that the values are aligned.
std::string NpyHeader(const NpzArray& array) {
  std::string text = "{'descr': '" + array.type + "', 'fortran_order': False, 'shape': (";
  for (const uint64_t extent : array.shape) text += std::to_string(extent) + ", ";
  text.resize(text.size() - (array.shape.size() > 1 ? 2 : 1));
  text += "), }";
  constexpr size_t kLead = 10, kAligned = 64;
  text.append(kAligned - (kLead + text.size() + 1) % kAligned, ' ');
  text += '\n';
  std::string header = std::string("\x93NUMPY\x01\0", 8);
  AddInteger(text.size(), 2, header);
  return header + text;
}

// What an entry of a zip archive has in both of its headers, with the date of 1980-01-01: from the
// version needed to the length of the extra field.
std::string EntryFields(const NpzArray& array, std::string_view header) {
  uLong sum =
      crc32(0, reinterpret_cast<const Bytef*>(header.data()), static_cast<uInt>(header.size()));
  if (!array.bytes.empty()) {  // crc32 of no pointer begins a new sum
    sum = crc32(sum, reinterpret_cast<const Bytef*>(array.bytes.data()),
                static_cast<uInt>(array.bytes.size()));
  }
  std::string fields;
  for (const uint64_t field : {20, 0, 0, 0, 0x21}) AddInteger(field, 2, fields);
  const uint64_t size = header.size() + array.bytes.size();
  for (const uint64_t field : {uint64_t{sum}, size, size}) AddInteger(field, 4, fields);
  constexpr size_t kEnding = 4;  // of ".npy"
  AddInteger(array.name.size() + kEnding, 2, fields);
  AddInteger(0, 2, fields);
  return fields;
}

// What comes before the array's values.
std::string LocalHeader(const NpzArray& array, const std::string& fields,
                        const std::string& header) {
  std::string local = "PK\x03\x04";
  local += fields + array.name + ".npy" + header;
  return local;
}

}  // namespace

std::string NpzBeginning(const NpzArray& first) {
  const std::string header = NpyHeader(first);
  return LocalHeader(first, EntryFields(first, header), header) +
         std::string(reinterpret_cast<const char*>(first.bytes.data()), first.bytes.size());
}

Result<NewFile> WriteNpz(std::span<const NpzArray> arrays, const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(NewFile file, NewFile::Create(path));
  const auto append = [&file](std::string_view text) {
    return file.Append(std::as_bytes(std::span(text)));
  };
  std::string directory;
  uint64_t offset = 0;
  for (const NpzArray& array : arrays) {
    const std::string header = NpyHeader(array);
    const std::string fields = EntryFields(array, header);
    const std::string local = LocalHeader(array, fields, header);
    directory += "PK\x01\x02";
    AddInteger(20, 2, directory);  // made by version 2.0
    directory += fields;
    // No comment, the first disk, no attributes.
    AddInteger(0, 6, directory);
    AddInteger(0, 4, directory);
    AddInteger(offset, 4, directory);
    directory += array.name + ".npy";
    KINGLET_RETURN_IF_ERROR(append(local));
    KINGLET_RETURN_IF_ERROR(file.Append(array.bytes));
    offset += local.size() + array.bytes.size();
  }
  std::string end = "PK\x05\x06";
  AddInteger(0, 4, end);
  AddInteger(arrays.size(), 2, end);
  AddInteger(arrays.size(), 2, end);
  AddInteger(directory.size(), 4, end);
  AddInteger(offset, 4, end);
  AddInteger(0, 2, end);
  KINGLET_RETURN_IF_ERROR(append(directory + end));
  KINGLET_RETURN_IF_ERROR(file.Seal());
  return file;
}

}  // namespace kinglet
