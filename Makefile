# The commands of laneshift. Everything else is CMake: see CMakePresets.json.
#
#   make build   the program build/laneshift
#   make demo    three language-model GEMMs, compiled, run and checked on the PTX emulator, twice: the second time from the store
#   make check   builds everything and runs all tests that need no GPU
#   make sanitize   the tests of cmake/sanitize.cmake under ASan with UBSan, and under TSan (docs/reliability.md);
#                   SANITIZED=sanitized_ci: the part that CI runs, sanitized_more: what it runs on a fast machine
#   make docs    draws the pictures of docs/ and writes the tables of docs/performance/ from bench/measured/ (Python, no build)
#   make fuzz    builds the fuzz targets with clang and runs each for MINUTES (docs/reliability.md)
#
# Each but `make docs` first installs what is missing from Debian, as root or through sudo (scripts/install_dependencies.sh).
# CMAKE_ARGS is passed on to the configuration, CTEST_ARGS to ctest, JOBS is the number of parallel jobs, TEST_JOBS
# that of tests.

JOBS ?= $(shell nproc)
# Some tests wait: for other processes, for the disk.
TEST_JOBS ?= $(shell expr $(JOBS) + 1)
SANITIZED ?= sanitized
CMAKE_ARGS ?=
CTEST_ARGS ?=
MINUTES ?= 10
DEMO_STORE := build/demo-store
DEMO := build/laneshift run --file examples/llama3-8b-16-tokens.txt --device emulator --check

.PHONY: build demo check docs sanitize asan tsan fuzz dependencies configure
.NOTPARALLEL:

build: configure
	cmake --build build --parallel $(JOBS) --target laneshift

demo: build
	@rm -rf $(DEMO_STORE)
	@echo; echo '$$ $(DEMO)'
	@LANESHIFT_CACHE_DIR=$(DEMO_STORE) $(DEMO)
	@echo; echo '$$ $(DEMO)      # again: the kernels come from the store'
	@LANESHIFT_CACHE_DIR=$(DEMO_STORE) $(DEMO)

check: configure
	cmake --build build --parallel $(JOBS)
	ctest --test-dir build --output-on-failure --parallel $(TEST_JOBS) --label-exclude gpu --no-tests=error $(CTEST_ARGS)

docs:
	python3 scripts/draw_convolution.py
	python3 scripts/plot_performance.py

sanitize: asan tsan

asan tsan: configure
	cmake --preset $@ $(CMAKE_ARGS)
	cmake --build build-$@ --parallel $(JOBS) --target $(SANITIZED)_tests
	ctest --test-dir build-$@ --output-on-failure --parallel $(TEST_JOBS) --label-regex '^$(SANITIZED)$$' --no-tests=error $(CTEST_ARGS)

fuzz: configure
	@command -v clang++ >/dev/null || { echo "make fuzz needs clang with its sanitizers: apt-get install clang libclang-rt-14-dev" >&2; exit 1; }
	cmake --build build --parallel $(JOBS) --target random_kernels
	cmake -G Ninja -S . -B build/fuzz -D CMAKE_CXX_COMPILER=clang++ -D LANESHIFT_BUILD_FUZZERS=ON \
	  -D LANESHIFT_BUILD_SHARED=OFF -D CMAKE_UNITY_BUILD=ON -D CMAKE_BUILD_TYPE=Fuzz -D CMAKE_CXX_FLAGS=-O1 \
	  $(CMAKE_ARGS)
	cmake --build build/fuzz --parallel $(JOBS) --target libfuzzer_targets
	scripts/fuzz.sh $(MINUTES) build build/fuzz

dependencies:
	@scripts/install_dependencies.sh

configure: dependencies
	cmake --preset default $(CMAKE_ARGS)
