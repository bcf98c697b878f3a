// Model file -> the draft that it was packed from, so that tests can compare drafts and pack again.
#ifndef KINGLET_TESTS_SUPPORT_UNPACK_H_
#define KINGLET_TESTS_SUPPORT_UNPACK_H_

#include "format/model_file.h"
#include "format/writer.h"

namespace kinglet {

// Every tensor keeps its encoding, every word its id. If this version's writer made `file`,
// SerialiseModel of the draft gives its bytes again. REQUIRES: no tensor is released.
ModelDraft UnpackModel(const ModelFile& file);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_UNPACK_H_
