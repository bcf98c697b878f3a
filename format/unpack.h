// Bytes -> values again: the draft that a model file was packed from, for tools that change a part
// of a model and write the rest as it was.
#ifndef KINGLET_FORMAT_UNPACK_H_
#define KINGLET_FORMAT_UNPACK_H_

#include "format/model_file.h"
#include "format/writer.h"

namespace kinglet {

// Every tensor keeps its encoding, every word its id. SerialiseModel of the draft gives the bytes
// of `file` again if this version's writer made it, and otherwise a file of equal meaning. May
// throw std::bad_alloc.
ModelDraft UnpackModel(const ModelFile& file);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_UNPACK_H_
