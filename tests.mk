# Tests, checks of the source, and fuzz targets.

sim_objects   = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/sim/*.c))
gpu_support   = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/gpu/support/*.c))
unit_tests    = $(filter-out $(if $(can_attach),,%/attach),$(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/*.c)))
gpu_tests     = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/gpu/*.c))
test_programs = $(addprefix $(BUILD)/tests/programs/,play play-rpath play-needed memory nothing nothing-static hostile \
                  refuse another-time.so libcublas.so.0 $(smctrl_programs))
smctrl_programs = smctrl smctrl-static smctrl-original smctrl-opens

# How a test is built and run stands in the test's head: KEY_FILE, for each key of tests/head.awk.
headed = $(wildcard tests/unit/*.c tests/gpu/*.c tests/cli/*.bats tests/slurm/*.bats)
$(foreach word,$(shell awk -f tests/head.awk $(headed)),$(eval $(word)))
$(if $(unknown),$(error no such key in tests/head.awk: $(unknown)))
# The program of a test, its source, and the words of a key in its head.
program_of = $(patsubst $(CURDIR)/%,%,$(firstword $(subst @, ,$(1))))
source_of  = $(if $(filter %.bats,$(1)),$(1),$(patsubst $(BUILD)/%,%.c,$(program_of)))
told       = $($(1)_$(call source_of,$(2)))
in_build   = $(filter -%,$(1)) $(addprefix $(BUILD)/,$(filter-out -%,$(1)))

$(BUILD)/tests/unit/%.o: override CPPFLAGS += -Itools/nvtaskset
# Callbacks, threads and the driver's functions have parameters for which a test has no use.
$(BUILD)/tests/%.o $(BUILD)/tests/attach/% $(BUILD)/tests/programs/original/%: override CFLAGS += -Wno-unused-parameter

older_sim = $(BUILD)/sim/older/libcuda.so.1
$(older_sim): exported = -Wl,--version-script=tests/sim/older.map
$(sim) $(older_sim): $(sim_objects) $(library) tests/sim/older.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,nodelete $(exported) \
		$(filter %.o %.a,$^) -o $@

# Archives for tests: of the code in other people's processes, of the command, and of the simulated driver.
process_archive = $(BUILD)/process.a
$(process_archive): $(filter-out %/entry_loaded.o,$(shim_objects))
command_archive = $(BUILD)/command.a
$(command_archive): $(filter-out %/main.o,$(command_objects))
$(BUILD)/sim.a: $(sim_objects)
$(process_archive) $(command_archive) $(BUILD)/sim.a:
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^

# The words of the head come first.
link_test = $(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(linked_first) $(filter %.a,$^) \
	$(if $(filter %.so.0,$^),$(beside_it)) -lcmocka $(1) -ldl -o $@
linked_first = $(call in_build,$(call told,link,$@))
beside_it = -Xlinker -rpath=$(abspath $(BUILD))
$(foreach test,$(unit_tests) $(gpu_tests),$(eval $(test): $(filter-out -%,$(call in_build,$(call told,link,$(test))))))
$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(process_archive) $(command_archive) $(library)
	$(call link_test,-ljansson)
$(BUILD)/tests/gpu/%: $(BUILD)/tests/gpu/%.o $(gpu_support) $(library)
	$(call link_test)

# The same program three times: it opens the driver by name; it has the driver's directory built in; it is linked with
# the driver.
play_programs = $(addprefix $(BUILD)/tests/programs/,play play-rpath play-needed)
$(BUILD)/tests/programs/%.o: override CPPFLAGS += -Itests/gpu/support
$(play_programs): $(BUILD)/tests/programs/play.o $(gpu_support) $(library) | $(sim)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(filter %.o %.a,$^) -lcmocka -ldl $(link_$(@F)) -o $@
link_play-rpath  = -Wl,--disable-new-dtags,-rpath,$(abspath $(dir $(sim)))
link_play-needed = -Wl,--no-as-needed,-rpath-link,$(BUILD)/lib $(sim)
$(BUILD)/tests/programs/hostile: %: %.o $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@
$(BUILD)/tests/programs/memory: $(BUILD)/tests/programs/memory.o $(gpu_support) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lcmocka -ldl -o $@
# With the shared library; with the archive; linked with the original, without a soname and versions; and opening the
# library by name.
$(BUILD)/tests/programs/smctrl: $(smctrl)
$(BUILD)/tests/programs/smctrl-static: $(smctrl_archive)
$(BUILD)/tests/programs/smctrl-original: $(BUILD)/tests/programs/original/libsmctrl.so
$(BUILD)/tests/programs/smctrl-opens: $(BUILD)/tests/programs/smctrl_opens.o
$(addprefix $(BUILD)/tests/programs/,$(smctrl_programs)): $(BUILD)/tests/programs/smctrl.o $(gpu_support) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(filter-out %.so,$^) \
		$(if $(filter %.so,$^),-L$(BUILD)/tests/programs/original -lsmctrl) -lcmocka -ldl $(beside_it) -o $@
$(BUILD)/tests/programs/original/libsmctrl.so: tests/programs/smctrl_original.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CPPFLAGS) $(filter-out $(sanitize_flags),$(CFLAGS)) -shared $< -o $@
$(BUILD)/tests/programs/another-time.so: tests/programs/another_time.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CPPFLAGS) $(filter-out $(sanitize_flags),$(CFLAGS)) -shared $< -ldl -o $@
$(BUILD)/tests/programs/libcublas.so.0: tests/programs/cublas.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -shared $< -o $@

$(filter %/nothing %/nothing-static,$(test_programs)): tests/programs/nothing.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $< $(link_$(@F)) -o $@
link_nothing-static = -static
$(BUILD)/tests/programs/refuse: tests/programs/refuse.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CPPFLAGS) $< -o $@

# Programs to attach to, and a library to load: without sanitizers, which change the dynamic linker. Only for
# the architecture where attaching works; elsewhere the tests are skipped.
can_attach = $(filter x86_64,$(machine))
attach_programs = $(addprefix $(BUILD)/tests/attach/,busy alone beside small alone-static alone32 plain-musl \
                    goroutines library.so slow.so again)
$(filter-out %32 %-musl %/goroutines,$(attach_programs)): $(wildcard tests/attach/*.[ch] tests/gpu/support/*.[ch]) \
		$(if $(SANITIZE),$(wildcard src/*/*.[ch] src/*/*/*.[ch]),$(library))
	@mkdir -p $(@D)
	$(if $(can_attach),$(call say,LINK,$@)$(CC) $(CPPFLAGS) -Itests/gpu/support \
		$(filter-out $(sanitize_flags),$(CFLAGS)) $(build_$(@F)) -o $@)
# Not every machine can build these programs. Tests without their program are skipped.
$(BUILD)/tests/attach/alone32: tests/attach/alone32.c
	@mkdir -p $(@D)
	-$(Q)$(if $(can_attach),$(CC) -m32 -O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie $< -o $@)
$(BUILD)/tests/attach/plain-musl: tests/attach/plain.c
	@mkdir -p $(@D)
	-$(Q)$(if $(can_attach),! command -v musl-gcc >/dev/null || musl-gcc $< -o $@)
$(BUILD)/tests/attach/goroutines: tests/attach/goroutines.go
	@mkdir -p $(@D)
	-$(Q)$(if $(can_attach),! command -v go >/dev/null || \
		CGO_ENABLED=1 GO111MODULE=off GOCACHE=$(abspath $(BUILD))/go CC="$(CC)" go build -o $@ $<)
$(BUILD)/tests/attach/all: $(attach_programs)
# Debian's loader of CDI.
cdi_library = /usr/share/gocode/src/github.com/container-orchestrated-devices/container-device-interface
$(BUILD)/tests/cdi/inject: tests/cdi/inject.go
	@mkdir -p $(@D)
	-$(Q)! command -v go >/dev/null || [ ! -d $(cdi_library) ] || \
		GOPATH=/usr/share/gocode GO111MODULE=off GOCACHE=$(abspath $(BUILD))/go go build -o $@ ./$<
unsanitized        = $(if $(SANITIZE),$(call sources_of,$(1)),$(library))
build_busy         = $(addprefix tests/,attach/busy.c attach/registers.c gpu/support/gpu.c) \
                     $(call unsanitized,$(rooms)) -lcmocka -ldl
build_again        = tests/attach/again.c $(call unsanitized,$(rooms) attach)
build_alone        = tests/attach/alone.c tests/attach/registers.c -ldl -Wl,-rpath,'$$ORIGIN'
build_beside       = tests/attach/beside.c
build_small        = tests/attach/small.c
build_alone-static = $(build_alone) -static -Wl,--no-warnings
build_library.so   = tests/attach/library.c -shared
build_slow.so      = tests/attach/slow.c -shared

# A test of tests/gpu runs inside nvtaskset with a partition of the whole simulated GPU, and changes the partition.
# Where descriptors, releases of the driver, graphs or the topology matter, the head names further GPUs.
sim_runs = $(foreach test,$(gpu_tests),$(addprefix $(test)@,$(or $(call told,gpus,$(test)),h200)))

# A make that a test starts gets our variables, but not our job slots.
test_environment = BUILD=$(abspath $(BUILD)) MAKEFLAGS='$(filter-out -j% --jobserver-%,$(MAKEFLAGS))'

# Many tests wait more than they compute: more tests than cores run at a time. Where tests would see each other's
# programs (tests/run), only tests that look at no processes do.
are_apart := $(shell tests/run --is-apart && echo yes)
JOBS ?= $(shell echo $$(($(if $(are_apart),3,2) * $$(nproc))))
# The tests of $(1) whose heads have the key $(2).
having = $(foreach test,$(1),$(if $(call told,$(2),$(test)),$(test)))
long_first = $(call having,$(1),takes) $(filter-out $(call having,$(1),takes),$(1))
run_tests = $(Q)$(test_environment) JOBS=$(JOBS) LOOK_AT_NONE="$(if $(are_apart),,$(call having,$(1),processes))" \
	tests/all $(call long_first,$(1))

# Sanitizers see nothing new in tests of texts and of the installation, nor on a second GPU of the same code.
# ThreadSanitizer sees nothing where a program has a single thread: the command, and programs without a quota or rank.
sanitizers_of = $(or $(call told,sanitizers,$(1)),$(if $(filter %.bats,$(1)),address,address thread))
suits = $(filter $(or $(findstring thread,$(SANITIZE)),address),$(sanitizers_of))
other_gpus = $(if $(SANITIZE),%@ada %@hopper-synthetic) $(if $(findstring thread,$(SANITIZE)),%@blackwell %@turing)
all_tests = $(filter-out $(other_gpus),$(unit_tests) $(sim_runs) $(wildcard tests/cli/*.bats))
# TESTS may name fewer.
ifndef TESTS
TESTS = $(foreach test,$(all_tests),$(if $(SANITIZE),$(if $(call suits,$(test)),$(test)),$(test)))
endif

# With sanitizers, only benchmarks that tests of the command run.
tested_benchmarks = \
	$(if $(SANITIZE),$(addprefix $(BUILD)/bench/,change crowd launches),$(bench_programs) $(bench_preloads))
$(BUILD)/bench/all: $(tested_benchmarks)
# The files of BUILD that a test needs, by its kind and by its head.
needed_by = $(if $(filter %.bats,$(1)),run-all $(sim) $(BUILD)/demo/where $(test_programs),$(program_of) \
	$(if $(findstring /unit/,$(1)),,$(command) $(shim) $(attach) $(sim))) $(call in_build,$(call told,needs,$(1)))
# All is built where TESTS was not given.
check_programs = $(sim) $(older_sim) $(unit_tests) $(gpu_tests) $(test_programs) $(attach_programs) \
	$(tested_benchmarks) $(BUILD)/tests/cdi/inject $(BUILD)/demo/where
build-check: $(if $(filter file,$(origin TESTS)),run-all $(check_programs),\
	$(foreach test,$(TESTS),$(call needed_by,$(test))))
run-check: build-check
	$(call run_tests,$(TESTS))

run-check-gpu: $(foreach test,$(gpu_tests),$(call needed_by,$(test)))
	$(Q)said=$$($(command) --mps off all true 2>&1) || \
		{ echo "make check-gpu: needs a GPU that nvtaskset can use: $${said#nvtaskset: }" >&2; exit 1; }
	$(call run_tests,$(gpu_tests))

# Real profilers and debuggers, on the GPU. CUPTI's headers come with the toolkit's; our headers declare the same names.
CUDA ?= /usr/local/cuda
cupti_link = -L$(CUDA)/lib64 -L$(CUDA)/extras/CUPTI/lib64 -lcupti -Wl,-rpath,$(CUDA)/lib64:$(CUDA)/extras/CUPTI/lib64
tool = $(BUILD)/tests/hardware/tool.o
tool_programs = $(addprefix $(BUILD)/tests/hardware/,cupti cupti_first injected.so where.so)
$(BUILD)/tests/hardware/%.o: override CPPFLAGS += -Itests/gpu/support
$(tool): override CPPFLAGS = -D_GNU_SOURCE -isystem $(CUDA)/include -isystem $(CUDA)/extras/CUPTI/include
$(BUILD)/tests/hardware/%: $(BUILD)/tests/hardware/%.o $(tool) $(gpu_support) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lcmocka -ldl $(cupti_link) -o $@
# With a part of the library, without CUDA.
$(BUILD)/tests/hardware/controls.o: override CPPFLAGS += -Ibench/support
$(BUILD)/tests/hardware/controls: $(BUILD)/tests/hardware/controls.o $(bench_support) $(attach_objects) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -ldl -lm -o $@
# The library, with a part that changes launches that wait.
$(BUILD)/tests/hardware/churn/libcuda.so.1: $(BUILD)/tests/hardware/churn.o $(names_objects) $(shim_objects) \
	$(library) $(BUILD)/stub/libnvtaskset-driver.so.1
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(link_shim) -o $@
$(BUILD)/tests/hardware/withhold.so: $(BUILD)/tests/hardware/withhold.o
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared $^ -ldl -o $@
$(BUILD)/tests/hardware/injected.so: $(BUILD)/tests/hardware/injected.o $(tool)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared $^ $(cupti_link) -o $@
$(BUILD)/tests/hardware/where.so: $(BUILD)/tests/hardware/where.o $(gpu_support) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared $^ -lcmocka -ldl -o $@

run-check-tools: $(command) $(shim) $(attach) $(BUILD)/demo/where $(tool_programs)
	$(Q)BUILD=$(abspath $(BUILD)) tests/hardware/tools.sh

# The plugin on a real cluster of this machine, with simulated GPUs; as root. SLURM_JOBS: of random sizes and kinds.
slurm_parts = $(BUILD)/tests/slurm/unit/parts
$(slurm_parts).o: override CPPFLAGS += -Itools/slurm
slurm_archive = $(BUILD)/slurm/parts.a
$(slurm_archive): $(slurm_objects)
	$(call say,AR,$@)mkdir -p $(@D) && rm -f $@ && $(AR) rcs $@ $^
$(slurm_parts): $(slurm_parts).o $(slurm_archive) $(api_archive) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lcmocka -o $@
build-check-slurm: run-all $(slurm_plugin) $(sim) $(BUILD)/demo/where $(BUILD)/tests/programs/play $(slurm_parts)
run-check-slurm: build-check-slurm
	$(call run_tests,$(slurm_parts) $(wildcard tests/slurm/*.bats))

# A mixed load under changing partitions, on all GPUs of the machine, or on simulated ones.
SOAK_SECONDS ?= 600
run-soak: $(command) $(shim) $(sim) $(BUILD)/tests/gpu/soak
	$(Q)$(test_environment) SOAK_SECONDS=$(SOAK_SECONDS) TEST_SECONDS=$$(($(SOAK_SECONDS) + 120)) \
		tests/run $(BUILD)/tests/gpu/soak$(if $(wildcard /dev/nvidiactl),,@h200-x2)

# Whether the tests find deliberate faults, each put into a copy of the tree. FAULTS: functions, or patterns.
mutants: deps
	$(Q)BUILD=$(abspath $(BUILD)) tests/mutants/run $(FAULTS)

# Interrupts readers and editors of the segment at every place.
check-steps: $(BUILD)/tests/unit/segment_steps
	SEGMENT_STRIDE=1 $<

# Attaches a thousand times to each program, and kills the attacher at each of its steps.
check-attach: run-all $(sim) $(BUILD)/tests/unit/attach $(attach_programs)
	$(Q)$(test_environment) ATTACH_TIMES=1000 ATTACH_STRIDE=1 TEST_SECONDS=3600 tests/run $(BUILD)/tests/unit/attach

# With clang's sanitizers: gcc's find less. Reports need lines, and no variables.
sanitized = CC=clang CFLAGS='-O1 -gline-tables-only'
check-asan:
	$(Q)$(MAKE) $(sanitized) BUILD=$(BUILD)/asan SANITIZE=address,undefined check
check-tsan:
	$(Q)$(MAKE) $(sanitized) BUILD=$(BUILD)/tsan SANITIZE=thread check
check-sanitizers: check-asan check-tsan

# Each core checks some files at a time.
lint: $(BUILD)/man/nvtaskset.3
	tests/layers
	tests/plain_text
	tests/prose
	tests/links
	tests/mutants/run --check
	mandoc -T lint -W warning tools/man/nvtaskset.1 $(BUILD)/man/nvtaskset.3
	shellcheck -S warning $(scripts)
	cppcheck --quiet --suppress=ctunullpointer --suppress=internalAstError:src/driver/pushbuffer/swap.c \
		--std=c11 --enable=warning,performance,portability --inline-suppr \
		--error-exitcode=1 -D_GNU_SOURCE -D__x86_64__ -Isrc src tools
	$(call tidy,$(sources),-Itools/nvtaskset -Itests/gpu/support -Ibench/support)
	$(call tidy,$(slurm_sources),-Itools/slurm)

tidy = $(Q)printf '%s\n' $(1) | xargs -r -P "$$(nproc)" -n 8 \
	sh -c 'clang-tidy --quiet "$$@" -- $(CPPFLAGS) -std=gnu11 $(2)' clang-tidy

sources = $(wildcard src/*/*.c src/*/*/*.c tools/nvtaskset/*.c tools/nvtaskset/*/*.c tests/sim/*.c tests/gpu/*.c \
	tests/gpu/support/*.c tests/unit/*.c bench/*/*.c demo/*.c)
# These need Slurm's headers (libslurm-dev).
slurm_sources = $(if $(wildcard /usr/include/slurm/spank.h),$(wildcard tools/slurm/*.c tests/slurm/unit/*.c))
scripts = $(wildcard tests/cli/*.bash tools/completions/*.bash bench/support/*.bash) \
	tests/bare.bash share/packaging/check $(shell grep -rlE '^\#!.*[/ ](sh|bash|bats)$$' .ci bench demo tests tools)

# A fuzz target for each file of tests/fuzz; FUZZ_SECONDS each. Needs clang.
FUZZ_SECONDS ?= 600
fuzz: $(patsubst tests/fuzz/%.c,fuzz-%,$(wildcard tests/fuzz/*.c))
fuzz_compile = clang $(CPPFLAGS) -Itools/nvtaskset -std=gnu11 -g -O1 -fsanitize=address,undefined \
	-fno-sanitize-recover=all
fuzz_library = $(BUILD)/fuzz/library.a
fuzz_objects = $(patsubst $(BUILD)/%,$(BUILD)/fuzz/%,\
               $(filter-out %/entry_loaded.o %/entry_attached.o,$(call objects_of,$(rooms) $(process_rooms))))
$(BUILD)/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(fuzz_compile) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@
$(fuzz_library): $(fuzz_objects)
	$(Q)rm -f $@ && ar rcs $@ $^
fuzz-%: tests/fuzz/%.c $(fuzz_library)
	@mkdir -p $(BUILD)/fuzz/corpus-$*
	$(Q)$(fuzz_compile) -fsanitize=fuzzer $< $(fuzz_library) -o $(BUILD)/fuzz/$*
	$(Q)$(BUILD)/fuzz/$* -max_total_time=$(FUZZ_SECONDS) -print_final_stats=0 -verbosity=0 \
		-artifact_prefix=$(BUILD)/fuzz/ $(BUILD)/fuzz/corpus-$*

.PHONY: $(BUILD)/tests/attach/all $(BUILD)/bench/all build-check build-check-slurm check-steps check-attach check-asan \
	check-tsan check-sanitizers mutants lint fuzz
