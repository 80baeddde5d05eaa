// Appended to a user's source: a function of f32 and pointers that calls the user's, and the user's signature, as words
// in the PTX (nvrtc/signature.h). An unsupported signature compiles, too, and reports itself.
namespace laneshift::binding {

enum Kind : int { kInvalid, kRow, kColumn, kElement, kOutput, kTable, kNumber };

// As DataType; of D; none.
template <class T>
constexpr int kType = -2;
template <>
constexpr int kType<TypeOfD> = -1;
template <>
constexpr int kType<__half> = 0;
template <>
constexpr int kType<__nv_bfloat16> = 1;
template <>
constexpr int kType<float> = 2;
template <>
constexpr int kType<__nv_fp8_e4m3> = 3;
template <>
constexpr int kType<__nv_fp8_e5m2> = 4;

template <class T>
constexpr bool kArithmetic = false;
template <>
constexpr bool kArithmetic<float> = true;
template <>
constexpr bool kArithmetic<double> = true;
template <>
constexpr bool kArithmetic<int> = true;
template <>
constexpr bool kArithmetic<unsigned> = true;
template <>
constexpr bool kArithmetic<bool> = true;

// One for each form of a parameter: its kind, the kernel's argument, and the function's argument made from it.
template <class T>
struct Parameter {
  static constexpr int kind = kArithmetic<T> ? kNumber : kInvalid, type = -1, count = 0;
  using Carried = float;
  T held;
  __device__ Parameter(float carried) : held(static_cast<T>(carried)) {}
  __device__ void Put(float*, int&) const {}
};
template <class T>
struct Parameter<const T> : Parameter<T> {
  using Parameter<T>::Parameter;
};
template <class T>
struct Parameter<const T&> : Parameter<T> {
  using Parameter<T>::Parameter;
};
template <class T>
struct Parameter<T&> : Parameter<T> {
  static constexpr int kind = kInvalid;
  using Parameter<T>::Parameter;
};
#define LANESHIFT_INPUT(Name, kind_of_it)                                                  \
  template <class T>                                                                       \
  struct Parameter<Name<T>> {                                                              \
    static constexpr int kind = kType<T> > -2 ? kind_of_it : kInvalid, type = kType<T>, count = 0; \
    using Carried = float;                                                                 \
    Name<T> held;                                                                          \
    __device__ Parameter(float carried) : held{carried} {}                                 \
    __device__ void Put(float*, int&) const {}                                             \
  };
LANESHIFT_INPUT(PerRow, kRow)
LANESHIFT_INPUT(PerColumn, kColumn)
LANESHIFT_INPUT(PerElement, kElement)
#undef LANESHIFT_INPUT
template <class T>
struct Parameter<Output<T>&> {
  static constexpr int kind = kType<T> > -2 ? kOutput : kInvalid, type = kType<T>, count = 0;
  using Carried = float;
  Output<T> held;
  __device__ Parameter(float) {}
  __device__ void Put(float* results, int& next) const { results[next++] = held.value; }
};
template <class T, int kCount>
struct Parameter<Table<T, kCount>> {
  static constexpr int kind = kType<T> > -1 && kCount > 0 ? kTable : kInvalid, type = kType<T>, count = kCount;
  using Carried = const void*;
  Table<T, kCount> held;
  __device__ Parameter(const void* carried) : held{static_cast<const T*>(carried)} {}
  __device__ void Put(float*, int&) const {}
};

// The first parameter: its kind, and the function's argument made from the one or two values of the kernel.
enum Value : int { kNoValue, kOneValue, kPairOfValues };

template <class V>
struct First {
  static constexpr int value = Parameter<V>::kind == kNumber ? kOneValue : kNoValue;
};
template <>
struct First<Pair> {
  static constexpr int value = kPairOfValues;
};
template <>
struct First<const Pair&> : First<Pair> {};

template <int kCount>
struct Results {
  float values[kCount];
};
template <int kCount>
struct Words {
  int values[kCount];
};

// Whether it can be converted to f32.
template <class T>
constexpr auto IsNumber(int) -> decltype(static_cast<float>(*static_cast<T*>(nullptr)), bool()) {
  return true;
}
template <class T>
constexpr bool IsNumber(...) {
  return false;
}

template <auto kFunction, class Type>
struct Call {
  static constexpr Words<4> kWords = {{1, 0, 0, 0}};
  __device__ static Results<1> Run(float) { return {}; }
  static constexpr auto Entry() { return &Run; }
};
template <auto kFunction, class R, class V, class... P>
struct Call<kFunction, R (*)(V, P...)> {
  static constexpr bool kResult = IsNumber<R>(0);
  static constexpr int kValue = First<V>::value;
  static constexpr bool kValid = kResult && kValue != kNoValue && (true && ... && (Parameter<P>::kind != kInvalid));
  static constexpr int kResults = 1 + (0 + ... + (Parameter<P>::kind == kOutput ? 1 : 0));
  static constexpr Words<4 + 3 * sizeof...(P)> MakeWords() {
    Words<4 + 3 * sizeof...(P)> words = {{1, kResult, kValue, sizeof...(P)}};
    int next = 4;
    ((words.values[next++] = Parameter<P>::kind, words.values[next++] = Parameter<P>::type,
      words.values[next++] = Parameter<P>::count),
     ...);
    return words;
  }
  static constexpr Words<4 + 3 * sizeof...(P)> kWords = MakeWords();
  template <class Got, class... Held>
  __device__ static Results<kResults> Apply(const Got& value, Held... held) {
    Results<kResults> results;
    results.values[0] = static_cast<float>(kFunction(value, held.held...));
    int next = 1;
    (held.Put(results.values, next), ...);
    return results;
  }
  __device__ static Results<kResults> RunOne(float value, typename Parameter<P>::Carried... carried) {
    if constexpr (kValid) {
      return Apply(Parameter<V>(value).held, Parameter<P>(carried)...);
    } else {
      return {};
    }
  }
  __device__ static Results<kResults> RunPair(float gate, float up, typename Parameter<P>::Carried... carried) {
    if constexpr (kValid) {
      return Apply(Pair{gate, up}, Parameter<P>(carried)...);
    } else {
      return {};
    }
  }
  static constexpr auto Entry() {
    if constexpr (kValue == kPairOfValues) {
      return &RunPair;
    } else {
      return &RunOne;
    }
  }
};
template <auto kFunction, class R, class V, class... P>
struct Call<kFunction, R (*)(V, P...) noexcept> : Call<kFunction, R (*)(V, P...)> {};

}  // namespace laneshift::binding
