#include "measure/peers/cublas.h"

#include <optional>
#include <utility>

#include "base/shared_library.h"
#include "base/text.h"
#include "device/buffer.h"
#include "ir/element_type.h"
#include "measure/peers/cublas_types.h"

namespace laneshift::measure {
namespace {

using base::Cat;
using base::SharedLibrary;

// Values of cublas_api.h and library_types.h.
constexpr int kOpN = 0, kOpT = 1, kGemmDefault = -1;
constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // what NVIDIA recommends for Hopper and later

int CudaType(DataType type) { return ir::InfoOf(type).cuda; }

struct Functions {
  int (*create)(void** handle) = nullptr;
  int (*destroy)(void* handle) = nullptr;
  int (*version)(void* handle, int* version) = nullptr;
  int (*set_stream)(void* handle, device::CuStream stream) = nullptr;
  int (*set_workspace)(void* handle, void* workspace, size_t bytes) = nullptr;
  int (*gemm)(void* handle, int op_a, int op_b, int64_t m, int64_t n, int64_t k, const void* alpha, const void* a,
              int a_type, int64_t lda, long long stride_a, const void* b, int b_type, int64_t ldb, long long stride_b,
              const void* beta, void* c, int c_type, int64_t ldc, long long stride_c, int64_t batch, int compute,
              int algorithm) = nullptr;
};

Result<Functions> Bind(const SharedLibrary& library) {
  Functions f;
  LS_TRY(library.Bind("cublasCreate_v2", &f.create));
  LS_TRY(library.Bind("cublasDestroy_v2", &f.destroy));
  LS_TRY(library.Bind("cublasGetVersion_v2", &f.version));
  LS_TRY(library.Bind("cublasSetStream_v2", &f.set_stream));
  LS_TRY(library.Bind("cublasSetWorkspace_v2", &f.set_workspace));
  LS_TRY(library.Bind("cublasGemmStridedBatchedEx_64", &f.gemm));
  return f;
}

Result<SharedLibrary> OpenLibrary(const std::vector<std::string>& directories) {
  auto library = SharedLibrary::Open({"libcublas.so.13", "libcublas.so.12", "libcublas.so"}, directories);
  if (library) return library;
  return MakeError(ErrorCode::kUnsupported, Cat("no cuBLAS: ", library.error().message,
                                                "; install the CUDA toolkit's libcublas or set CUDA_HOME"));
}

Status CheckCublas(int status, std::string_view call) {
  if (status == 0) return Ok();
  return MakeError(ErrorCode::kDriver, Cat(call, ": cuBLAS status ", status));
}

}  // namespace

struct Cublas::State {
  Functions f;
  device::Context context;
  void* handle = nullptr;
  std::optional<device::DeviceBuffer> workspace;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const auto active = device::ActiveContext::Enter(context);
    if (handle != nullptr) f.destroy(handle);
  }
};

Cublas::Cublas(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cublas::Cublas(Cublas&&) noexcept = default;
Cublas& Cublas::operator=(Cublas&&) noexcept = default;
Cublas::~Cublas() = default;

Result<std::string> Cublas::Probe(const std::vector<std::string>& library_directories) {
  LS_ASSIGN(const SharedLibrary library, OpenLibrary(library_directories));
  LS_TRY(Bind(library));
  int (*property)(int, int*) = nullptr;
  LS_TRY(library.Bind("cublasGetProperty", &property));
  int version[3] = {};
  for (int i = 0; i < 3; ++i) property(i, &version[i]);
  return Cat("cuBLAS ", version[0], ".", version[1], ".", version[2], " (", library.name(), ")");
}

Result<Cublas> Cublas::Open(const std::vector<std::string>& library_directories, const device::Device& device,
                            const device::Stream& stream) {
  LS_ASSIGN(const SharedLibrary library, OpenLibrary(library_directories));
  LS_ASSIGN(const device::ActiveContext active, device.Activate());
  auto state = std::make_unique<State>();
  state->context = device.context();
  LS_ASSIGN(state->f, Bind(library));
  LS_TRY(CheckCublas(state->f.create(&state->handle), "cublasCreate"));
  LS_TRY(CheckCublas(state->f.set_stream(state->handle, stream.handle()), "cublasSetStream"));
  LS_ASSIGN(state->workspace, device::DeviceBuffer::Allocate(device.context(), kWorkspaceBytes));
  void* workspace = reinterpret_cast<void*>(state->workspace->pointer());
  LS_TRY(CheckCublas(state->f.set_workspace(state->handle, workspace, kWorkspaceBytes), "cublasSetWorkspace"));
  return Cublas(std::move(state));
}

Status Cublas::Multiply(const GemmProblem& p, const GemmArguments& arguments) const {
  LS_ASSIGN(const device::ActiveContext active, device::ActiveContext::Enter(state_->context));
  const CublasScalar alpha(p, p.alpha), beta(p, p.beta);
  // cuBLAS is column-major: our row-major D is its D transposed, so A and B change places.
  const int op_b = p.b_major == Major::kK ? kOpT : kOpN, op_a = p.a_major == Major::kK ? kOpN : kOpT;
  return CheckCublas(
      state_->f.gemm(state_->handle, op_b, op_a, p.n, p.m, p.k, alpha.pointer(), arguments.b, CudaType(p.b), p.ldb,
                     p.stride_b, arguments.a, CudaType(p.a), p.lda, p.stride_a, beta.pointer(), arguments.d,
                     CudaType(p.d), p.ldd, p.stride_d, p.batch, ArithmeticOf(p).compute, kGemmDefault),
      "cublasGemmStridedBatchedEx");
}

}  // namespace laneshift::measure
