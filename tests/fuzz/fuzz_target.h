// The entry point of a fuzz target: libFuzzer calls it with what it makes up, corpus_replay.cc with the files of a
// corpus.
//
// Thread-safety: none; one input after another.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
