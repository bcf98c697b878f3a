// The safetensors container (huggingface/safetensors, format of its README): eight bytes of the
// header's length, a JSON header that says of every tensor its type, shape and place, and the
// tensors' bytes without gaps.
#ifndef KINGLET_CONVERTERS_SOURCES_SAFETENSORS_H_
#define KINGLET_CONVERTERS_SOURCES_SAFETENSORS_H_

#include <memory>

#include "converters/sources/input_file.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

// Whether the file starts with a header's length and an opening brace.
bool LooksLikeSafetensors(const InputFile& file);

// Types F64 F32 F16 BF16 I64 I32 I16 I8 U32 U16 U8 BOOL. Refuses headers over 100 MB, tensors that
// overlap, leave gaps or do not take their shape's bytes, and names that come twice. The tensors
// keep the file open. Errors: KINGLET_INVALID_CHECKPOINT, KINGLET_IO_ERROR.
Result<SourceWeights> SafetensorsTensors(const std::shared_ptr<const InputFile>& file);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_SAFETENSORS_H_
