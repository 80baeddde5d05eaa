# What `make sanitize` builds and runs. Each line: a test program, the number of processes that share its cases, and the
# cases. A program runs its cases in one process: under a sanitizer most of a case run by ctest would be the start.
#
# Left out by name: cases that limit the address space or ask for all of it, of which a sanitizer reserves more than any limit;
# writers that are killed around a moment, whose every other test is the same code; faults that only differ in their errno;
# and mutated programs, which the fuzz target `tile` runs under the same sanitizers for as long as one likes.
set(memory_limits "HostMemory.ALackOfItIsAnError:HostMemory.SurvivesAHostWithoutMemory:Threads.AreAsManyAsTheHostAllows")
string(APPEND memory_limits ":DriverEntries.LetNoExceptionOut")
set(fuzzed "ProgramText.MutatedTextsAreReadOrRefused")
set(repeated "UpkeepTest.*:CrashTest.AProcessKilled*:Codes/FaultTest.*/1:Codes/FaultTest.*/2:Codes/FaultTest.*/3")
string(APPEND repeated ":Codes/FaultTest.*/4:Codes/FaultTest.*/5")
# Rankings of whole search spaces, on one thread: under TSan each ends after one or two minutes of processor time, in which
# there is nothing for it to find.
set(rankings "*ChooseOnTarget.*:RankingRevision.*")
set(LANESHIFT_SANITIZED_address,undefined
  "base_test            1 -${memory_limits}"
  "ir_test              2 -${fuzzed}"
  "device_test          1 *"
  "store_test           2 -${repeated}"
  "emulator_units_test  2 *"
  "emulator_test        2 -${memory_limits}"
  "compiler_test        2 *"
  "autotune_test        2 *"
  "runtime_test         2 *"
  "tuner_fault_test     1 *"
  "driver_fault_test    1 *")
set(LANESHIFT_SANITIZED_thread
  "base_test            1 -${memory_limits}"
  "store_test           2 -${repeated}:All/WorkFaultTest.*"
  "emulator_test        2 -${memory_limits}"
  "autotune_test        2 -${rankings}"
  "runtime_test         2 *"
  "tuner_fault_test     1 *")

# What CI always runs of them (`make sanitize SANITIZED=sanitized_ci`): what reads files and other people's kernels, and
# the cases in which threads meet there. Little has to be compiled for it.
set(all_of_it LANESHIFT_SANITIZED_address,undefined)  # a comma cannot be part of a reference
set(LANESHIFT_SANITIZED_CI_address,undefined ${${all_of_it}})
list(FILTER LANESHIFT_SANITIZED_CI_address,undefined INCLUDE REGEX "^(base|store|emulator_units)_test ")
set(LANESHIFT_SANITIZED_CI_thread
  "base_test            1 -${memory_limits}"
  "store_test           1 StoreTest.ManyThreadsUseOneStore:StoreTest.TwoProcesses*")

# What CI runs where its machine leaves time (`make sanitize SANITIZED=sanitized_more`). With ASan: the programs of the other
# libraries that are compiled without LLVM and that of the compiler, all of their cases; the tuner's but for searches; and of
# the engine's those that compile problems of every kind, run them on the emulator and compare the results, and hostile
# calls through C, but for long texts. With TSan: where threads meet in the engine, the emulator and the tuner.
set(LANESHIFT_SANITIZED_MORE_address,undefined ${${all_of_it}})
list(FILTER LANESHIFT_SANITIZED_MORE_address,undefined INCLUDE REGEX "^(ir|device|compiler)_test ")
set(computed "PackedPlan.*:RunFromHost.*:QuantizedOutput.*:*GroupedGemm.*:*Execute*")
set(called "Engine.*:CApi*:HostileC.*-HostileC.TextThatNobodyExpects:HostileC.MembersOfStructs:HostileC.ASourceThatIsNoText")
list(APPEND LANESHIFT_SANITIZED_MORE_address,undefined
  "autotune_test        1 -${rankings}:Search.*"
  "runtime_test         2 ${computed}:${called}")
set(LANESHIFT_SANITIZED_MORE_thread
  "emulator_test        1 HostThreads.*"
  "runtime_test         1 MissPolicy.*:Engine.*:Prepare.*:Capture.*"
  "tuner_fault_test     1 */segv")

# A finding ends the program with an exit code that is not 0. A library keeps what it made for the whole process, such as
# LLVM its options, so leaks are what nothing points to any more.
set(options "ASAN_OPTIONS=detect_stack_use_after_return=1" "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1"
  "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")

if(NOT LANESHIFT_SANITIZED_${LANESHIFT_SANITIZE})
  message(FATAL_ERROR "cmake/sanitize.cmake has no list of tests for LANESHIFT_SANITIZE=${LANESHIFT_SANITIZE}")
endif()
foreach(label sanitized sanitized_ci sanitized_more)
  add_custom_target(${label}_tests)
  string(TOUPPER LANESHIFT_${label} list)
  foreach(line ${${list}_${LANESHIFT_SANITIZE}})
    string(REGEX MATCHALL "[^ ]+" words "${line}")
    list(POP_FRONT words program shards cases)
    add_dependencies(${label}_tests ${program})
    math(EXPR last "${shards} - 1")
    foreach(shard RANGE ${last})
      set(name ${label}.${program}.${shard})
      add_test(NAME ${name} COMMAND ${program} --gtest_filter=${cases} --gtest_brief=1)
      set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 600
        ENVIRONMENT "${options};GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
    endforeach()
  endforeach()
endforeach()
