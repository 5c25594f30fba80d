# ptxgen. `make run`: generate kernels, run them, show numbers. `make test`: the tests for every change.
# Needs a C compiler and make. Uses, where they are there: a GPU and its driver, ptxas, a second compiler.

CC      ?= cc
CXX     ?= c++
CFLAGS  ?= -O2
# Of examples and tests, which compile longer than they run.
QUICK    = $(CFLAGS:-O2=-O1)
SIMFLAGS = -O2
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
WARN     = -Wall -Wextra -pedantic -Wconversion -Wshadow
B        = build
MAKEFLAGS += -j$(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
SIM      = $(B)/libptxsim.so
NCCL     = $(B)/libncclsim.so
HEADERS  = ptxgen.h ptxgen_kernels.h ptxgen_cuda.h
EXAMPLES = $(patsubst examples/%.c,$(B)/%,$(wildcard examples/*.c)) $(EXAMPLES_CXX)
EXAMPLES_CXX = $(if $(shell command -v $(CXX)),$(patsubst examples/%.cpp,$(B)/%,$(wildcard examples/*.cpp)))
PLAIN    = $(patsubst $(B)/%,$(B)/plain/%,$(EXAMPLES))
PICTURES = mandelbrot particles blur shader_graph raymarch $(notdir $(EXAMPLES_CXX))
SIMOBJ   = $(patsubst tests/sim/%.c,$(B)/sim/%.o,$(wildcard tests/sim/*.c))

# Tests lie in folders by what they prove; each file is a program. `make test` leaves out those in PROOF, which are
# slow and seldom find a fault in a change.
SUITES   = builder faults math kernels cuda examples driver
TESTS    = $(patsubst tests/%.c,%,$(foreach s,$(SUITES),$(wildcard tests/$s/*.c)))
SCRIPTS  = dropin layout left_out snippets packaging math/driver_all cuda/threads examples/command_lines \
           examples/operators
PROOF    = math/driver_all math/exhaustive math/random math/sass kernels/ptxas kernels/gemm_costs kernels/decoder \
           kernels/flash_cluster kernels/gemm_warpgroups_faults \
           kernels/flash_hopper_random kernels/flash_hopper_faults kernels/matmul_dense_faults \
           kernels/matmul_dense_sass examples/generate examples/persistent examples/prompt_lengths \
           kernels/flash_decode_faults kernels/matmul_memory_faults examples/architectures examples/experts \
           kernels/decoder_faults examples/ranks_all cuda/host_faults cuda/threads dropin
SHORT    = $(filter-out $(PROOF),$(TESTS) $(SCRIPTS))
OWN_COPY = $(patsubst tests/%.c,$(B)/tests/%,$(shell grep -l 'define PTXGEN_IMPLEMENTATION' tests/*/*.c))
DRIVER   = $(SIM)

.PHONY: all help run pictures plot test proof sanitize bench fuzz gpu runtime install uninstall report clean FORCE
all: $(SIM) $(EXAMPLES) $(addprefix $(B)/tests/,$(TESTS)) $(B)/bench $(B)/bench_sim

help:
	@echo 'make run       the examples, on the GPU if there is one, else on the CPU driver (tests/sim)'
	@echo 'make pictures  the examples that draw: the PNG files of docs/'
	@echo 'make plot      the time from a graph to PTX beside NVRTC, where that is installed: docs/emission.svg'
	@echo 'make test      the tests for every change; ends with the line "N passed, N failed"'
	@echo 'make proof     all tests with all their cases, for a release'
	@echo 'make proof-math  the mathematics over all 2^32 operands, or 2^28 random ones: hours'
	@echo 'make sanitize  all tests, built with the address and undefined-behaviour sanitizers'
	@echo 'make bench     emission speed, launch overhead, compile times beside stb_image.h (BENCH_COMPILE=0:'
	@echo '               without them), the speed of the CPU driver'
	@echo 'make fuzz      hostile PTX, calls and model files, random programs; FUZZ_SECONDS=60 each; needs clang'
	@echo 'make gpu       the tests on the real driver, then the benches'
	@echo 'make runtime   a CUDA runtime over the CPU driver, for programs that nvcc compiles'
	@echo 'make install   the headers, pkg-config and CMake files; PREFIX=/usr/local DESTDIR=; make uninstall'
	@echo 'make report    compiler, tools and GPU of this machine, for a report of a fault'
	@echo 'make clean     removes build/'

run: $(SIM) $(addprefix $(B)/,saxpy scan flash_decode flash_prefill incremental_attention q4k_gemv gemm wgmma generate)
	@PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/saxpy
	@PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/scan
	@echo
	@PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/flash_decode
	@echo
	@PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/flash_prefill
	@echo
	@PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/incremental_attention
	@echo
	@PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/q4k_gemv
	@echo
	@PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/gemm
	@echo
	@PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/wgmma
	@echo
	@PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/generate tests/model/fables.gguf "Once upon a time" --tokens 20

test: $(addprefix $(B)/results/,$(SHORT))
	@sh tests/run.sh sum $(B) $(SHORT)

proof: export PTXGEN_LONG = 1
proof: $(addprefix $(B)/results/,$(TESTS) $(SCRIPTS))
	@sh tests/run.sh sum $(B) $(TESTS) $(SCRIPTS)

# Every f32 function of one operand over all 2^32 operands: about an hour of one core. Then f64 ones and those of
# two operands over 2^28 random ones: about another.
proof-math: $(B)/tests/math/exhaustive $(B)/tests/math/random
	@$(B)/tests/math/exhaustive 1
	@$(B)/tests/math/random 0x10000000

$(B)/results/driver/%: $(B)/tests/driver/% $(SIM) FORCE
	@sh tests/run.sh one $(DRIVER) $(B) driver/$* $< $(SIM)
$(B)/results/examples/command_lines: tests/examples/command_lines.sh $(SIM) $(PLAIN) FORCE
	@sh tests/run.sh one $(DRIVER) $(B) examples/command_lines sh $< $(B)/plain
$(B)/results/examples/pictures: $(B)/tests/examples/pictures $(SIM) $(addprefix $(B)/plain/,$(PICTURES)) FORCE
	@sh tests/run.sh one $(DRIVER) $(B) examples/pictures $< $(B)/plain
$(B)/results/examples/operators: tests/examples/operators.sh FORCE
	@sh tests/run.sh one $(DRIVER) $(B) examples/operators sh $<
$(addprefix $(B)/results/examples/,ranks ranks_all collectives): $(B)/results/%: $(B)/tests/% $(SIM) $(NCCL) FORCE
	@sh tests/run.sh one $(DRIVER) $(B) $* $< $(NCCL)
$(B)/results/examples/ranks_all: $(B)/generate
$(B)/results/cuda/threads: tests/cuda/threads.sh $(SIM) FORCE
	@sh tests/run.sh one $(DRIVER) $(B) cuda/threads sh $< $(SIM)
# The test math/driver with 2^20 random operands of each function, where it has 2^14.
$(B)/results/math/driver_all: $(B)/tests/math/driver $(SIM) FORCE
	@PTXGEN_MATH_COUNT=0x100000 sh tests/run.sh one $(DRIVER) $(B) math/driver_all $<
$(B)/results/left_out: tests/left_out.sh $(B)/implementation.o FORCE
	@sh tests/run.sh one $(DRIVER) $(B) left_out sh $< $(B)
$(B)/results/dropin $(B)/results/layout $(B)/results/snippets $(B)/results/packaging: $(B)/results/%: tests/%.sh $(SIM) FORCE
	@sh tests/run.sh one $(DRIVER) $(B) $* sh $<
$(B)/results/%: $(B)/tests/% $(SIM) FORCE
	@sh tests/run.sh one $(DRIVER) $(B) $* $<

# Without the scripts that compile programs of their own.
sanitize:
	@$(MAKE) --no-print-directory B=build/sanitize CFLAGS="-O1 -g $(SANITIZE)" SIMFLAGS="-O1 -g $(SANITIZE)" \
	  SCRIPTS="math/driver_all examples/command_lines" proof

bench: $(SIM) $(B)/bench $(B)/bench_sim
	@PTXGEN_CUDA_LIBRARY=$(SIM) $(B)/bench
	@sh tests/compile.sh $(B)
	@echo
	@$(B)/bench_sim $(SIM)

# The pictures of README.md; its plot, where NVRTC is installed.
pictures: $(SIM) $(addprefix $(B)/,$(PICTURES))
	@mkdir -p docs
	@PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/mandelbrot --width 384 --height 240 --samples 3 --out docs/mandelbrot.png
	@PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/particles --out docs/particles.png
	@PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/raymarch --width 400 --height 250 --out docs/raymarch.png
	@PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/blur --width 400 --height 250 --radius 8 --out docs/blur.png
	@PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/shader_graph --width 400 --height 250 --out docs/shader_graph.png
	@$(if $(EXAMPLES_CXX),PTXGEN_CUDA_FALLBACK=$(SIM) $(B)/operators --out docs/operators.png)

plot: $(SIM) $(B)/bench_nvrtc
	@mkdir -p docs
	@$(B)/bench_nvrtc $(SIM) docs/emission.svg

gpu: $(EXAMPLES) $(B)/bench
	@$(MAKE) --no-print-directory -j1 DRIVER=gpu SUITES="builder kernels cuda examples" \
	  SCRIPTS=examples/command_lines proof
	@$(B)/flash_decode
	@$(B)/flash_prefill --seq 4096 --heads 32 --kv-heads 8 --repeat 20
	@$(B)/q4k_gemv --n 4096 --k 14336
	@$(B)/gemm --m 8192 --n 8192 --k 8192 --out bf16 --type bf16 --repeat 20
	@$(B)/gemm --m 512 --n 28672 --k 4096 --out f16 --repeat 20
	@$(B)/bench

clean:
	rm -rf $(B)

# The headers, for pkg-config and CMake too; as CMakeLists.txt installs them.
PREFIX  ?= /usr/local
TO       = $(DESTDIR)$(PREFIX)
version  = $(shell sed -n 's/^\#define PTX_VERSION_$(1) \([0-9]*\).*/\1/p' ptxgen.h)
VERSION  = $(call version,MAJOR).$(call version,MINOR).$(call version,PATCH)
FILL     = sed -e 's,@PREFIX@,$(subst &,\&,$(PREFIX)),' -e 's,@VERSION@,$(VERSION),' -e 's,@MAJOR@,$(call version,MAJOR),' \
  -e 's,@MINOR@,$(call version,MINOR),' -e 's,@LIBS@,-ldl,'
INSTALLED = $(addprefix include/,$(HEADERS)) share/pkgconfig/ptxgen.pc \
  $(addprefix share/cmake/ptxgen/,ptxgen-config.cmake ptxgen-config-version.cmake)

install:
	@mkdir -p "$(TO)/include" "$(TO)/share/pkgconfig" "$(TO)/share/cmake/ptxgen"
	cp $(HEADERS) "$(TO)/include"
	$(FILL) packaging/ptxgen.pc.in >"$(TO)/share/pkgconfig/ptxgen.pc"
	cp packaging/ptxgen-config.cmake "$(TO)/share/cmake/ptxgen"
	$(FILL) packaging/ptxgen-config-version.cmake.in >"$(TO)/share/cmake/ptxgen/ptxgen-config-version.cmake"

uninstall:
	if [ -d "$(TO)" ]; then cd "$(TO)" && rm -f $(INSTALLED) && rmdir share/cmake/ptxgen; fi

# What a report of a fault should say about the machine.
report:
	@echo "ptxgen $(VERSION) $$(git log -1 --format=%h 2>/dev/null), $$(uname -srm)"
	@$(CC) --version | head -n 1
	@ptxas --version 2>/dev/null | tail -n 1 || true
	@nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo "no GPU"

# Needs the toolkit's headers, from beside the nvcc on the PATH.
runtime: $(SIM)
	@sh tests/cudart/build.sh $(B)

# tests/sim is one folder, one library; `cc -std=c11 -O2 -fPIC -shared -pthread tests/sim/*.c -lm` does too.
$(SIM): $(SIMOBJ)
	@mkdir -p $(B)
	$(CC) $(SIMFLAGS) -shared -pthread $(SIMOBJ) -o $@ -lm

# NCCL on the CPU driver, for ranks in as many processes.
$(NCCL): tests/nccl/nccl.c
	@mkdir -p $(B)
	$(CC) -std=c11 $(SIMFLAGS) -Wall -Wextra -fPIC -shared -pthread -fvisibility=hidden $< -o $@ -ldl

$(B)/sim/%.o: tests/sim/%.c $(wildcard tests/sim/*.h tests/sim/*.inc tests/sim/*.def)
	@mkdir -p $(B)/sim
	$(CC) -std=c11 $(SIMFLAGS) -fPIC -pthread -c $< -o $@

# Each example says in its first lines how it is compiled: one cc command, this one.
$(B)/%: examples/%.c $(HEADERS) $(wildcard examples/*.h)
	@mkdir -p $(B)
	$(CC) -std=c99 $(QUICK) $(WARN) $< -o $@ -ldl -lm

$(EXAMPLES_CXX): $(B)/%: examples/%.cpp $(HEADERS) $(wildcard examples/*.h examples/*.hpp)
	@mkdir -p $(B)
	$(CXX) -std=c++11 $(CFLAGS) -Wall -Wextra -pedantic -Wshadow $< -o $@ -ldl -lm

# For the tests, by the command in their first lines, without optimisation: they compile longer than they run.
$(filter-out $(EXAMPLES_CXX:$(B)/%=$(B)/plain/%),$(PLAIN)): $(B)/plain/%: examples/%.c $(HEADERS) $(wildcard examples/*.h)
	@mkdir -p $(B)/plain
	@sh tests/examples/compile.sh $< $@ "$(CFLAGS:-O2=-O0)"

$(EXAMPLES_CXX:$(B)/%=$(B)/plain/%): $(B)/plain/%: examples/%.cpp $(HEADERS) $(wildcard examples/*.h examples/*.hpp)
	@mkdir -p $(B)/plain
	@sh tests/examples/compile.sh $< $@ "$(CFLAGS:-O2=-O0)"

# The implementation of the three headers, compiled once; tests include the headers as users do and link it.
# A test that asks for private parts of a header compiles its own copy (see OWN_COPY).
$(B)/implementation.o: tests/implementation.c $(HEADERS)
	@mkdir -p $(B)
	$(CC) -std=c99 $(QUICK) $(WARN) -c $< -o $@

TESTHEADERS = $(wildcard tests/*.h tests/reference/*.h tests/forms/*.h examples/*.h) tests/sim/ptxsim.h

$(B)/tests/driver/%: tests/driver/%.c tests/simtest.h tests/sim/ptxsim.h $(wildcard tests/forms/*.h)
	@mkdir -p $(@D)
	$(CC) -std=c11 $(QUICK) $< -o $@ -ldl -lm

$(OWN_COPY): $(B)/tests/%: tests/%.c $(HEADERS) $(TESTHEADERS)
	@mkdir -p $(@D)
	$(CC) -std=c11 $(QUICK) $(WARN) -Wno-unused-function $< -o $@ -ldl -lm -pthread

$(B)/tests/%: tests/%.c $(B)/implementation.o $(HEADERS) $(TESTHEADERS)
	@mkdir -p $(@D)
	$(CC) -std=c11 $(QUICK) $(WARN) -Wno-unused-function $< $(B)/implementation.o -o $@ -ldl -lm -pthread

$(B)/bench_sim: tests/bench/sim.c tests/simtest.h tests/sim/ptxsim.h
	@mkdir -p $(B)
	$(CC) -std=c11 $(CFLAGS) -Wall -Wextra -Wno-unused-function $< -o $@ -ldl -lm

$(B)/bench: tests/bench/bench.c tests/scale.h $(HEADERS)
	@mkdir -p $(B)
	$(CC) -std=c11 $(CFLAGS) $(WARN) $< -o $@ -ldl -lm

$(B)/bench_nvrtc: tests/bench/nvrtc.c examples/example.h examples/nvrtc.h ptxgen.h ptxgen_cuda.h
	@mkdir -p $(B)
	$(CC) -std=c11 $(CFLAGS) $(WARN) -Wno-unused-function $< -o $@ -ldl -lm

# The driver's sources and the fuzzers, each in one program: texts, then calls of the driver. Seeds are
# the texts of tests/data, those that the tests load and the small ones of the compiler's. Inputs are kept in
# build/fuzz; what fails is written there too, as crash-*, timeout-*, oom-* or leak-*.
CLANG        ?= clang
FUZZ_SECONDS ?= 60
FUZZFLAGS    = -std=c11 -O1 -g -Wno-pass-failed -fno-omit-frame-pointer -fno-sanitize-recover=all -pthread
FUZZOBJ      = $(patsubst tests/sim/%.c,$(B)/fuzz/%.o,$(wildcard tests/sim/*.c))
FUZZRUN      = -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
  -artifact_prefix=$(B)/fuzz/

fuzz:
	@command -v $(CLANG) >/dev/null || { echo "make fuzz needs $(CLANG) (its libFuzzer); nothing was run"; exit 1; }
	@$(MAKE) --no-print-directory $(B)/fuzz/ptx $(B)/fuzz/api $(B)/fuzz/seeds
	@mkdir -p $(B)/fuzz/corpus $(B)/fuzz/calls
	$(B)/fuzz/ptx -dict=tests/fuzz/ptx.dict -max_len=20000 $(FUZZRUN) $(B)/fuzz/corpus $(B)/fuzz/seeds
	$(B)/fuzz/api -max_len=600 $(FUZZRUN) $(B)/fuzz/calls
	@$(MAKE) --no-print-directory $(B)/fuzz/builder
	@mkdir -p $(B)/fuzz/programs
	$(B)/fuzz/builder -max_total_time=$(FUZZ_SECONDS) -timeout=20 -max_len=1500 -len_control=0 \
	  -artifact_prefix=$(B)/fuzz/builder- -print_final_stats=1 $(B)/fuzz/programs
	@$(MAKE) --no-print-directory $(B)/fuzz/gguf $(B)/fuzz/models
	$(B)/fuzz/gguf -max_len=20000 $(FUZZRUN) $(B)/fuzz/models

DRIVER_TESTS = $(patsubst %,$(B)/tests/%,$(filter driver/%,$(TESTS)))

$(B)/fuzz/seeds: $(SIM) $(DRIVER_TESTS)
	@mkdir -p $@
	@find tests/data -name '*.ptx' -size -20k -exec cp {} $@ \;
	@tar xzf tests/nvcc/ptx.tar.gz -C $@ && find $@/ptx -size +20k -delete
	@for t in $(DRIVER_TESTS); do SIMTEST_KEEP=$@ PTXSIM_QUIET=1 $$t $(SIM) >/dev/null 2>&1; done
	@touch $@

$(B)/fuzz/api: tests/fuzz/api.c $(FUZZOBJ)
	$(CLANG) $(FUZZFLAGS) -fsanitize=fuzzer,address,undefined $< $(FUZZOBJ) -o $@ -lm

$(B)/fuzz/ptx: tests/fuzz/ptx.c $(FUZZOBJ)
	$(CLANG) $(FUZZFLAGS) -fsanitize=fuzzer,address,undefined $< $(FUZZOBJ) -o $@ -lm

$(B)/fuzz/builder: tests/fuzz/builder.c tests/program.h tests/kerneltest.h $(wildcard tests/forms/*.h) ptxgen.h $(FUZZOBJ)
	$(CLANG) $(FUZZFLAGS) -Wno-unused-function -fsanitize=fuzzer,address,undefined $< $(FUZZOBJ) -o $@ -lm -ldl

$(B)/fuzz/gguf: tests/fuzz/gguf.c $(HEADERS) $(wildcard examples/*.h)
	@mkdir -p $(B)/fuzz
	$(CLANG) $(FUZZFLAGS) -fsanitize=fuzzer,address,undefined $< -o $@ -ldl -lm

$(B)/fuzz/models: $(B)/tests/examples/gguf $(B)/tests/examples/model_files
	@mkdir -p $@
	@GGUFTEST_KEEP=$@ $(B)/tests/examples/gguf >/dev/null
	@GGUFTEST_KEEP=$@ $(B)/tests/examples/model_files >/dev/null
	@touch $@

$(B)/fuzz/%.o: tests/sim/%.c $(wildcard tests/sim/*.h tests/sim/*.inc tests/sim/*.def)
	@mkdir -p $(B)/fuzz
	$(CLANG) $(FUZZFLAGS) -fsanitize=fuzzer-no-link,address,undefined -c $< -o $@
