// The parts of emulator_bench. Each registers its benchmarks; all rates are of CPU time.
//
// Thread-safety: called once, by main.
#pragma once

namespace laneshift::emulator {

void RegisterSums();          // the tensor core's arithmetic alone
void RegisterInstructions();  // small PTX kernels: thread instructions a second
void RegisterLaunches();      // what each launch costs besides
void RegisterKernels();       // our own kernels, end to end

}  // namespace laneshift::emulator
