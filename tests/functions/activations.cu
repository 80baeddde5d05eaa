// Users' functions of the tests: compiled by NVRTC as parts of kernels, and by the host compiler as what their results
// are compared with.

__constant__ float kKnots[9] = {-2.0f, -1.25f, -0.75f, -0.25f, 0.0f, 0.5f, 0.8f, 1.0f, 1.1f};

// Between equidistant values from -4 to 4.
__device__ float Interpolate(const float* knots, int last, float v) {
  const float at = fminf(fmaxf((v + 4.0f) * 0.125f, 0.0f), 1.0f) * static_cast<float>(last);
  const int i = min(static_cast<int>(at), last - 1);
  const float share = at - static_cast<float>(i);
  return knots[i] + share * (knots[i + 1] - knots[i]);
}

__device__ __noinline__ float Wave(float v) { return sinf(v) * 0.5f; }

__device__ float Polynomial(float v) { return ((0.5f * v - 1.25f) * v + 2.0f) * v - 0.75f; }

__device__ float Erf(float v) { return 0.5f * v * (1.0f + erff(0.70710678f * v)); }

__device__ float Tanh(float v) { return tanhf(v) + expf(-v * v); }

__device__ float Swish(float v, laneshift::PerColumn<float> bias, float beta) {
  const float x = v + bias;
  return x / (1.0f + expf(-beta * x));
}

// A branch, and Newton's iteration: as many iterations as the value needs.
__device__ float Root(float v, int most) {
  if (v <= 0.0f) return 0.25f * v;
  float y = fmaxf(v, 1.0f);
  for (int i = 0; i < most && fabsf(y * y - v) > 1e-6f * v; ++i) y = 0.5f * (y + v / y);
  return y;
}

__device__ float OwnTable(float v) { return Interpolate(kKnots, 8, v); }

__device__ float Lookup(float v, laneshift::Table<float, 17> knots) { return Interpolate(knots, 16, v); }

// A function that is not inlined, and arrays in local memory where its argument is large.
__device__ float Sine(float v) { return Wave(v) + v; }

__device__ float TwoOutputs(float v, laneshift::PerRow<float> scale, const laneshift::PerElement<__half>& residual,
                            laneshift::Output<__half>& scaled, laneshift::Output<float>& gate) {
  const float x = v * scale;
  scaled = x;
  gate = fmaxf(x, 0.0f) * residual;
  return x + residual;
}

// A gated linear unit: both columns are clamped, and one is added to what the gate multiplies.
__device__ float ClampedSwiglu(laneshift::Pair v, float alpha, float limit) {
  const float gate = fminf(v.gate, limit), up = fminf(fmaxf(v.up, -limit), limit);
  return (up + 1.0f) * gate / (1.0f + expf(-alpha * gate));
}

// The same with operands of D's columns, and a second result.
__device__ float SquaredGate(const laneshift::Pair& v, laneshift::PerColumn<float> scale,
                             laneshift::PerElement<float> residual, laneshift::Output<float>& gate) {
  gate = fmaxf(v.gate, 0.0f);
  return gate.value * gate.value * v.up * scale + residual;
}

// The way back through swiglu: the gradients of gate and up of what was joined to one element of D.
__device__ float SwigluGradient(float v, laneshift::PerElement<float> gate, laneshift::PerElement<float> up,
                                laneshift::Output<float>& up_gradient) {
  const float sigmoid = 1.0f / (1.0f + expf(-gate));
  up_gradient = v * gate * sigmoid;
  return v * up * sigmoid * (1.0f + gate * (1.0f - sigmoid));
}

// Each leads out of what it may do.
__device__ float Endless(float v) {
  volatile float x = v;
  while (x < 1e30f) x = fminf(x, 1.0f);
  return x;
}

__device__ float OutOfBounds(float v, laneshift::Table<float, 4> few) { return v + few[1 << 24]; }
