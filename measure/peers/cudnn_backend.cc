#include "measure/peers/cudnn_backend.h"

#include <utility>

#include "base/text.h"

namespace laneshift::measure::cudnn {
namespace {

using base::Cat;

Result<Functions> Bind(const SharedLibrary& library) {
  Functions f;
  LS_TRY(library.Bind("cudnnCreate", &f.create));
  LS_TRY(library.Bind("cudnnDestroy", &f.destroy));
  LS_TRY(library.Bind("cudnnSetStream", &f.set_stream));
  LS_TRY(library.Bind("cudnnGetVersion", &f.version));
  LS_TRY(library.Bind("cudnnGetLastErrorString", &f.last_error));
  LS_TRY(library.Bind("cudnnBackendCreateDescriptor", &f.create_descriptor));
  LS_TRY(library.Bind("cudnnBackendDestroyDescriptor", &f.destroy_descriptor));
  LS_TRY(library.Bind("cudnnBackendFinalize", &f.finalize));
  LS_TRY(library.Bind("cudnnBackendSetAttribute", &f.set_attribute));
  LS_TRY(library.Bind("cudnnBackendGetAttribute", &f.get_attribute));
  LS_TRY(library.Bind("cudnnBackendExecute", &f.execute));
  return f;
}

}  // namespace

Status Functions::Check(int status, std::string_view call) const {
  if (status == 0) return Ok();
  char words[256] = {};
  last_error(words, sizeof words);
  std::string text = Cat(call, ": cuDNN status ", status);
  if (words[0] != '\0') text += Cat(" (", static_cast<const char*>(words), ")");
  return MakeError(ErrorCode::kDriver, std::move(text));
}

Result<CudnnLibrary> CudnnLibrary::Open(const std::vector<std::string>& directories) {
  // cuDNN finds these only through the loader. Without them, engines that it compiles at run time, including fast ones,
  // silently drop out. A library that is already open is found by its name.
  (void)SharedLibrary::Open({"libnvrtc.so.13", "libnvrtc.so.12"}, directories);
  (void)SharedLibrary::Open({"libcublasLt.so.13", "libcublasLt.so.12"}, directories);
  (void)SharedLibrary::Open({"libcublas.so.13", "libcublas.so.12"}, directories);
  auto library = SharedLibrary::Open({"libcudnn.so.9"}, directories);
  if (!library) {
    return MakeError(ErrorCode::kUnsupported,
                     Cat("no cuDNN: ", library.error().message,
                         "; install cuDNN 9 or set CUDNN_HOME to the directory above its lib"));
  }
  LS_ASSIGN(const Functions functions, Bind(*library));
  return CudnnLibrary{std::move(*library), functions};
}

std::string CudnnLibrary::Name() const {
  const size_t version = functions.version();
  return Cat("cuDNN ", version / 10000, ".", version / 100 % 100, ".", version % 100, " (", library.name(), ")");
}

Result<CudnnDescriptor> CudnnDescriptor::Create(const Functions& functions, DescriptorType type) {
  void* handle = nullptr;
  LS_TRY(functions.Check(functions.create_descriptor(type, &handle), "cudnnBackendCreateDescriptor"));
  return CudnnDescriptor(&functions, handle);
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : functions_(other.functions_), handle_(std::exchange(other.handle_, nullptr)) {}

CudnnDescriptor& CudnnDescriptor::operator=(CudnnDescriptor&& other) noexcept {
  std::swap(functions_, other.functions_);
  std::swap(handle_, other.handle_);
  return *this;
}

CudnnDescriptor::~CudnnDescriptor() {
  if (handle_ != nullptr) functions_->destroy_descriptor(handle_);
}

Status CudnnDescriptor::Set(Attribute name, ValueType type, int64_t count, const void* values) const {
  return functions_->Check(functions_->set_attribute(handle_, name, type, count, values),
                           Cat("cudnnBackendSetAttribute ", static_cast<int>(name)));
}

Status CudnnDescriptor::SetInts(Attribute name, const std::vector<int64_t>& values) const {
  return Set(name, kInt64, static_cast<int64_t>(values.size()), values.data());
}

Status CudnnDescriptor::SetEnum(Attribute name, ValueType type, int value) const { return Set(name, type, 1, &value); }

Status CudnnDescriptor::SetFloat(Attribute name, float value) const { return Set(name, kFloat, 1, &value); }

Status CudnnDescriptor::SetHandle(Attribute name, ValueType type, void* value) const {
  return Set(name, type, 1, &value);
}

Status CudnnDescriptor::SetDescriptor(Attribute name, const CudnnDescriptor& value) const {
  return SetHandle(name, kDescriptor, value.handle());
}

Status CudnnDescriptor::Finalize() const {
  return functions_->Check(functions_->finalize(handle_), "cudnnBackendFinalize");
}

Result<int64_t> CudnnDescriptor::GetInt(Attribute name) const {
  int64_t value = 0, count = 0;
  LS_TRY(functions_->Check(functions_->get_attribute(handle_, name, kInt64, 1, &count, &value),
                           Cat("cudnnBackendGetAttribute ", static_cast<int>(name))));
  return value;
}

Result<std::vector<CudnnDescriptor>> CudnnDescriptor::GetEngineConfigs() const {
  const auto get = [&](int64_t capacity, int64_t* count, void* values) {
    return functions_->Check(
        functions_->get_attribute(handle_, kHeuristicsResults, kDescriptor, capacity, count, values),
        "cudnnBackendGetAttribute of heuristics");
  };
  int64_t count = 0;
  LS_TRY(get(0, &count, nullptr));
  // cuDNN fills descriptors that the caller has made.
  std::vector<CudnnDescriptor> configs;
  std::vector<void*> handles;
  for (int64_t i = 0; i < count; ++i) {
    LS_ASSIGN(CudnnDescriptor config, Create(*functions_, kEngineConfig));
    handles.push_back(config.handle());
    configs.push_back(std::move(config));
  }
  int64_t filled = 0;
  if (count > 0) LS_TRY(get(count, &filled, handles.data()));
  while (static_cast<int64_t>(configs.size()) > filled) configs.pop_back();
  return configs;
}

}  // namespace laneshift::measure::cudnn
