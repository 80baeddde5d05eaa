// A program of the CUDA runtime, as docs/emulating.md has a reader compile one: doubles numbers and checks them.
#include <cstdio>
#include <vector>

__global__ void Double(float* numbers, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) numbers[i] *= 2;
}

int main() {
  constexpr int kCount = 1000;
  std::vector<float> numbers(kCount);
  for (int i = 0; i < kCount; ++i) numbers[i] = static_cast<float>(i);
  float* on_device = nullptr;
  cudaMalloc(&on_device, kCount * sizeof(float));
  cudaMemcpy(on_device, numbers.data(), kCount * sizeof(float), cudaMemcpyHostToDevice);
  Double<<<(kCount + 127) / 128, 128>>>(on_device, kCount);
  cudaMemcpy(numbers.data(), on_device, kCount * sizeof(float), cudaMemcpyDeviceToHost);
  const cudaError_t error = cudaGetLastError();
  for (int i = 0; i < kCount; ++i) {
    if (error == cudaSuccess && numbers[i] == 2.0f * static_cast<float>(i)) continue;
    std::fprintf(stderr, "number %d is %g: %s\n", i, numbers[i], cudaGetErrorString(error));
    return 1;
  }
  return 0;
}
