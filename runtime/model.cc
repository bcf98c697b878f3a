#include "runtime/model.h"

#include <new>
#include <utility>

#include "runtime/float_environment.h"
#include "runtime/lower/lower.h"

namespace kinglet {

Result<std::shared_ptr<const Model>> Model::Open(const std::string& path,
                                                 const ModelOptions& options) {
  KINGLET_ASSIGN_OR_RETURN(auto file, ModelFile::Open(path));
  return FromFile(std::move(file), options);
}

Result<std::shared_ptr<const Model>> Model::FromBytes(std::span<const std::byte> bytes,
                                                      const ModelOptions& options) {
  KINGLET_ASSIGN_OR_RETURN(auto file, ModelFile::FromBytes(bytes));
  return FromFile(std::move(file), options);
}

Result<std::shared_ptr<const Model>> Model::FromFile(std::shared_ptr<const ModelFile> file,
                                                     const ModelOptions& options) {
  const FloatEnvironment environment;  // weights are decoded and scales multiplied here
  try {
    std::shared_ptr<Model> model(new Model);
    model->file_ = std::move(file);
    KINGLET_ASSIGN_OR_RETURN(model->backend_, FindBackend(options.backend));
    KINGLET_ASSIGN_OR_RETURN(model->plan_, Lower(*model->file_));
    KINGLET_ASSIGN_OR_RETURN(model->layout_, LayOut(model->plan_, model->backend_->real_bytes));
    model->session_memory_limit_ = options.session_memory_limit;
    KINGLET_ASSIGN_OR_RETURN(model->kernels_, model->backend_->bind(model->plan_, model->layout_));
    return std::shared_ptr<const Model>(std::move(model));
  } catch (const std::bad_alloc&) {
    return Status(KINGLET_OUT_OF_MEMORY, "model: out of memory while laying out the weights");
  }
}

}  // namespace kinglet
