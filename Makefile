# nvtaskset: make, make demo, make check; `make help` lists the rest.
#
# Building needs make, a C compiler, glibc and, for the command, jansson. If packages for this, or for tests that are to
# run, are missing, they are installed first (tools/deps); `make deps` does only that.
# CC, CFLAGS, LDFLAGS, PREFIX and DESTDIR are the packager's: our flags are added to them, and replace none.

BUILD  ?= build
# One spelling of BUILD, however it was given, since rules name files by it.
override BUILD := $(patsubst $(CURDIR)/%,%,$(abspath $(BUILD)))
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib/nvtaskset
DATADIR ?= $(PREFIX)/share
V ?= 0
Q = $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' $(1) $(2);)

CFLAGS ?= -O2 -g
# Those of the machine that CC compiles for.
OBJCOPY ?= $(or $(shell $(CC) -print-prog-name=objcopy 2>/dev/null),objcopy)
ifeq ($(origin AR),default)
AR := $(or $(shell $(CC) -print-prog-name=ar 2>/dev/null),ar)
endif
# Warnings are errors for developers (WERROR=1, as in CI), but not for users, who may have a newer compiler.
WERROR ?= 0
SANITIZE ?=
sanitize_flags = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
override CPPFLAGS += -D_GNU_SOURCE -Isrc -Iinclude
override CFLAGS += -std=gnu11 -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror) -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
                   -Wvla -Wundef -fPIC -fvisibility=hidden -pthread $(sanitize_flags)
override LDFLAGS += -pthread $(sanitize_flags)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

# --- files -----------------------------------------------------------------------------------------

# The rooms (HACKING.md), from the top down: those that every program of ours may use; and those that run in other people's
# processes.
rooms         = base gpu mps state monitor
process_rooms = driver launch time shim
# The sources of rooms, and of the rooms in them.
sources_of = $(wildcard $(foreach room,$(1),src/$(room)/*.c src/$(room)/*/*.c))
objects_of = $(patsubst %.c,$(BUILD)/%.o,$(call sources_of,$(1)))
library_objects = $(call objects_of,$(rooms) attach api)
# There are two kinds of the library, which differ in how they start.
shim_objects    = $(filter-out %/entry_attached.o,$(call objects_of,$(process_rooms)))
attach_objects  = $(filter-out %/entry_loaded.o,$(call objects_of,$(process_rooms)))
# libsmctrl contains their common part, for processes that have neither.
smctrl_objects  = $(call objects_of,smctrl) $(filter-out %/entry_loaded.o,$(shim_objects))
command_objects = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/nvtaskset/*.c tools/nvtaskset/*/*.c))
sim_objects     = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/sim/*.c))
gpu_support     = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/gpu/support/*.c))
bench_support   = $(patsubst %.c,$(BUILD)/%.o,$(wildcard bench/support/*.c))
unit_tests      = $(filter-out $(if $(can_attach),,%/attach),$(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/*.c)))
# By topic; built, they lie side by side.
bench_sources   = $(filter-out bench/support/%,$(wildcard bench/*/*.c))
bench_programs  = $(addprefix $(BUILD)/bench/,$(notdir $(bench_sources:.c=)))
gpu_tests       = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/gpu/*.c))
test_programs   = $(addprefix $(BUILD)/tests/programs/,play play-rpath play-needed memory nothing nothing-static hostile refuse libcublas.so.0 \
                  smctrl smctrl-static smctrl-original smctrl-opens)

library = $(BUILD)/libnvtaskset.a
shim    = $(BUILD)/lib/libcuda.so.1
attach  = $(BUILD)/lib/libnvtaskset-attach.so
audit   = $(BUILD)/lib/libnvtaskset-audit.so
smctrl  = $(BUILD)/libsmctrl.so.0
command = $(BUILD)/nvtaskset
sim     = $(BUILD)/sim/libcuda.so.1

version     = $(shell sed -n '/define NVTASKSET_VERSION /s/.*"\(.*\)"/\1/p' src/version.h)
api         = $(BUILD)/api/libnvtaskset.so.$(version)
api_archive = $(BUILD)/api/libnvtaskset.a
smctrl_archive = $(BUILD)/libsmctrl.a

# The goals that users type first. Packages are installed before anything is built, also with -j.
packages_all  = build
packages_demo = build
with_packages = all demo check check-gpu check-tools check-slurm soak
packages_check-slurm = slurm
# Each of these builds in a make of its own, so it must not run beside another goal that may build the same files.
ifneq ($(filter $(with_packages),$(MAKECMDGOALS)),)
ifneq ($(words $(MAKECMDGOALS)),1)
.NOTPARALLEL:
endif
endif
$(with_packages) deps: export COMPILE = $(CC) $(CPPFLAGS) $(CFLAGS)
$(with_packages):
	$(Q)tools/deps $(or $(packages_$@),tests)
	$(Q)$(MAKE) --no-print-directory run-$@
deps:
	$(Q)tools/deps tests
	@echo 'Everything is there.'

run-all: $(command) $(shim) $(attach) $(audit) $(api) $(api_archive) $(smctrl) $(smctrl_archive)
	@:

$(BUILD)/tools/%.o $(BUILD)/tests/unit/%.o: override CPPFLAGS += -Itools/nvtaskset
# Callbacks, threads and the driver's functions take what a test has no use for.
$(BUILD)/tests/%.o $(BUILD)/tests/attach/% $(BUILD)/tests/programs/original/%: override CFLAGS += -Wno-unused-parameter
$(BUILD)/bench/%.o $(BUILD)/demo/%.o: override CPPFLAGS += -Itests/gpu/support -Ibench/support

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(library): $(library_objects)
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^

$(command): $(command_objects) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -ljansson -ldl -o $@

# The shim needs the real driver under another file name, which the command puts beside it as a symbolic
# link (facts.md, "Loading"); this stub gives the linker that name.
$(BUILD)/stub/libnvtaskset-driver.so.1:
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -nostdlib -Wl,-soname,libnvtaskset-driver.so.1 -x c /dev/null -o $@

$(shim): $(shim_objects) $(library) src/shim/libcuda.map $(BUILD)/stub/libnvtaskset-driver.so.1
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 \
		-Wl,--version-script=src/shim/libcuda.map $(if $(SANITIZE),,-Wl,-z,defs) -Wl,-z,now -Wl,-z,nodelete \
		-Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN:$$ORIGIN/driver' $(shim_objects) $(library) \
		-Wl,--no-as-needed $(BUILD)/stub/libnvtaskset-driver.so.1 -o $@
	$(Q)ln -sf $(@F) $(@D)/libcuda.so

# It must need no library: src/audit/audit.c says why. Code that the packager's or a sanitizer's flags add would call libc.
$(audit): src/audit/audit.c src/base/driver_names.h
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CPPFLAGS) $(filter-out $(sanitize_flags),$(CFLAGS)) $(filter-out $(sanitize_flags),$(LDFLAGS)) \
		-fno-builtin -fno-stack-protector -shared -nostdlib -Wl,-z,defs \
		-Wl,-soname,$(@F) $< -o $@

# The same for a process that has loaded the driver already (--attach): it does not need the driver, and may be
# unloaded.
$(attach): $(attach_objects) $(library) src/shim/attached.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) \
		-Wl,--version-script=src/shim/attached.map $(if $(SANITIZE),,-Wl,-z,defs) -Wl,-z,now \
		$(attach_objects) $(library) -o $@

# Exactly the names that include/nvtaskset.h declares, for other programs: as a library and as an archive.
# It is one object of machine code, since names cannot be hidden in the data that compilers leave for -flto.
lto = $(filter -flto%,$(CFLAGS))
lto_to_code = $(shell $(CC) -flinker-output=nolto-rel -E -x c /dev/null >/dev/null 2>&1 && echo -flinker-output=nolto-rel)
link_one = $(CC) $(lto) -r -nostdlib $(if $(lto),$(lto_to_code))
api_objects = $(call objects_of,api)
$(api): $(api_objects) $(library) src/api/libnvtaskset.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libnvtaskset.so.0 \
		-Wl,--version-script=src/api/libnvtaskset.map $(if $(SANITIZE),,-Wl,-z,defs) -Wl,-z,now \
		$(api_objects) $(library) -o $@
	$(Q)ln -sf $(@F) $(@D)/libnvtaskset.so.0
$(api_archive): $(api_objects) $(library)
	@mkdir -p $(@D)
	$(call say,AR,$@)rm -f $@ && $(link_one) $(api_objects) $(library) -o $(@:.a=.o) && \
		$(OBJCOPY) --localize-hidden $(@:.a=.o) && $(AR) rcs $@ $(@:.a=.o)

# Programs that were linked with the original need libsmctrl.so, and symbols without a version. The link gives them the same
# file, with the one version that exists.
$(smctrl): $(smctrl_objects) $(library) src/smctrl/libsmctrl.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) \
		-Wl,--version-script=src/smctrl/libsmctrl.map $(if $(SANITIZE),,-Wl,-z,defs) -Wl,-z,now -Wl,-z,nodelete \
		$(smctrl_objects) $(library) -o $@
	$(Q)ln -sf $(@F) $(@D)/libsmctrl.so

# One object, so that a program does not get our internal names.
$(smctrl_archive): $(smctrl_objects) $(library)
	$(call say,AR,$@)rm -f $@ && $(link_one) $^ -o $(@:.a=.o) && \
		$(OBJCOPY) --wildcard --keep-global-symbol='libsmctrl_*' $(@:.a=.o) && \
		$(AR) rcs $@ $(@:.a=.o)

# The plugin for Slurm: needs Slurm's headers, and calls what the program that loads it has of Slurm's.
slurm_plugin = $(BUILD)/slurm/nvtaskset.so
slurm_objects = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/slurm/*.c))
$(BUILD)/tools/slurm/%.o: override CPPFLAGS += -DLIBRARY_DIRECTORY='"$(LIBDIR)"'
slurm: $(slurm_plugin)
# Built again where another PREFIX is given.
$(BUILD)/slurm/libdir: FORCE
	@mkdir -p $(@D) && echo '$(LIBDIR)' | cmp -s - $@ || echo '$(LIBDIR)' >$@
FORCE:
$(BUILD)/tools/slurm/config.o: $(BUILD)/slurm/libdir
$(slurm_plugin): $(slurm_objects) $(api_objects) $(library) tools/slurm/nvtaskset.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,--version-script=tools/slurm/nvtaskset.map -Wl,-z,relro \
		$(slurm_objects) $(api_objects) $(library) -o $@

# --- tests -----------------------------------------------------------------------------------------

$(sim): $(sim_objects) $(library)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,nodelete $^ -o $@

# What runs in other people's processes, the command's parts, and the simulated driver's, for tests to take from.
process_archive = $(BUILD)/process.a
$(process_archive): $(filter-out %/entry_loaded.o,$(shim_objects))
command_archive = $(BUILD)/command.a
$(command_archive): $(filter-out %/main.o,$(command_objects))
sim_archive = $(BUILD)/sim.a
$(sim_archive): $(sim_objects)
$(process_archive) $(command_archive) $(sim_archive):
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(process_archive) $(command_archive) $(sim_archive) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(first) $(filter %.a,$^) -lcmocka -ljansson -ldl -o $@
# Both have a turns.c.
$(BUILD)/tests/unit/sim_%: first = $(sim_archive)

# Its clock goes on by itself, however busy the machine is.
$(BUILD)/tests/unit/timestamps $(BUILD)/tests/unit/lengths $(BUILD)/tests/unit/lending_rates: override LDFLAGS += -Wl,--wrap=process_clock_ns
# Nothing is suspended there.
$(BUILD)/tests/unit/time_thread: override LDFLAGS += -Wl,--wrap=turns_look,--wrap=keeper_end,--wrap=turns_end,--wrap=kernel_access_begin,--wrap=kernel_access_end,--wrap=hook_want_more

link_gpu_program = $(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lcmocka -ldl $(link_$(@F)) -o $@

$(BUILD)/tests/gpu/%: $(BUILD)/tests/gpu/%.o $(gpu_support) $(library)
	$(link_gpu_program)
# It has the library in it.
$(BUILD)/tests/gpu/channels: $(BUILD)/tests/gpu/channels.o $(attach_objects) $(gpu_support) $(library)
	$(link_gpu_program)
$(addprefix $(BUILD)/tests/gpu/,smctrl smctrl_alone smctrl_beside gate): $(smctrl)
link_smctrl = -Wl,-rpath,$(abspath $(BUILD))
link_smctrl_alone = $(link_smctrl)
link_smctrl_beside = $(link_smctrl)
link_gate = $(link_smctrl)
link_bench_program = $(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) -ldl -lm -o $@
$(foreach source,$(bench_sources),$(eval $(BUILD)/bench/$(notdir $(source:.c=)): $(source:%.c=$(BUILD)/%.o)))
# They have the library in them.
$(addprefix $(BUILD)/bench/,account aside quota_start registration slice): $(attach_objects)
# It listens to what the kernel driver is asked.
$(BUILD)/bench/presence: $(BUILD)/tests/gpu/support/kernel.o
$(BUILD)/bench/plans: $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/nvtaskset/plan/*.c))
$(BUILD)/bench/space/plans.o: override CPPFLAGS += -Itools/nvtaskset
$(bench_programs): $(bench_support) $(library)
	$(link_bench_program)
# As any program that uses the API.
$(BUILD)/demo/draw: $(BUILD)/demo/draw.o $(api_archive)
	$(link_bench_program)
# The demo must not need the tests' packages, such as cmocka.
$(BUILD)/demo/%: $(BUILD)/demo/%.o $(bench_support) $(library)
	$(link_bench_program)

# The same program three times: it opens the driver by name; it has the driver's directory built in; it is linked with
# the driver.
$(BUILD)/tests/programs/%.o: override CPPFLAGS += -Itests/gpu/support
$(filter %/play %/play-rpath %/play-needed,$(test_programs)): $(BUILD)/tests/programs/play.o $(gpu_support) $(library) | $(sim)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(filter %.o %.a,$^) -lcmocka -ldl $(link_$(@F)) -o $@
link_play-rpath  = -Wl,--disable-new-dtags,-rpath,$(abspath $(dir $(sim)))
link_play-needed = -Wl,--no-as-needed,-rpath-link,$(BUILD)/lib $(sim)
$(BUILD)/tests/programs/hostile: %: %.o $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@
$(BUILD)/tests/programs/memory: $(BUILD)/tests/programs/memory.o $(gpu_support) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lcmocka -ldl -o $@
# With the shared library; with the archive; linked with the original, which has neither a soname nor versions; and opening
# the library by name.
$(BUILD)/tests/programs/smctrl: $(smctrl)
$(BUILD)/tests/programs/smctrl-static: $(smctrl_archive)
$(BUILD)/tests/programs/smctrl-original: $(BUILD)/tests/programs/original/libsmctrl.so
$(BUILD)/tests/programs/smctrl-opens: $(BUILD)/tests/programs/smctrl_opens.o
$(filter %/smctrl %/smctrl-static %/smctrl-original %/smctrl-opens,$(test_programs)): $(BUILD)/tests/programs/smctrl.o $(gpu_support) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(filter-out %.so,$^) $(if $(filter %.so,$^),-L$(BUILD)/tests/programs/original -lsmctrl) \
		-lcmocka -ldl $(link_smctrl) -o $@
$(BUILD)/tests/programs/original/libsmctrl.so: tests/programs/smctrl_original.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CPPFLAGS) $(filter-out $(sanitize_flags),$(CFLAGS)) -shared $< -o $@
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

# Programs to attach to, and a library to load into them: without sanitizers, which change the dynamic linker. Only for
# the architecture where attaching works; on others their tests are skipped.
can_attach = $(filter x86_64-%,$(shell $(CC) -dumpmachine 2>/dev/null))
attach_programs = $(addprefix $(BUILD)/tests/attach/,busy alone small alone-static alone32 plain-musl goroutines library.so \
                    slow.so again)
$(filter-out %32 %-musl %/goroutines,$(attach_programs)): $(wildcard tests/attach/*.[ch] tests/gpu/support/*.[ch] src/*/*.[ch] src/*/*/*.[ch])
	@mkdir -p $(@D)
	$(if $(can_attach),$(call say,LINK,$@)$(CC) $(CPPFLAGS) -Itests/gpu/support $(filter-out $(sanitize_flags),$(CFLAGS)) \
		$(build_$(@F)) -o $@)
# Programs that not every machine can build. If one is missing, tests that need it are skipped.
$(BUILD)/tests/attach/alone32: tests/attach/alone32.c
	@mkdir -p $(@D)
	-$(Q)$(if $(can_attach),$(CC) -m32 -O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie $< -o $@)
$(BUILD)/tests/attach/plain-musl: tests/attach/plain.c
	@mkdir -p $(@D)
	-$(Q)$(if $(can_attach),! command -v musl-gcc >/dev/null || musl-gcc $< -o $@)
$(BUILD)/tests/attach/goroutines: tests/attach/goroutines.go
	@mkdir -p $(@D)
	-$(Q)$(if $(can_attach),! command -v go >/dev/null || CGO_ENABLED=1 GO111MODULE=off GOCACHE=$(abspath $(BUILD))/go CC="$(CC)" go build -o $@ $<)
# Debian's loader of CDI.
cdi_library = /usr/share/gocode/src/github.com/container-orchestrated-devices/container-device-interface
$(BUILD)/tests/cdi/inject: tests/cdi/inject.go
	@mkdir -p $(@D)
	-$(Q)! command -v go >/dev/null || [ ! -d $(cdi_library) ] || \
		GOPATH=/usr/share/gocode GO111MODULE=off GOCACHE=$(abspath $(BUILD))/go go build -o $@ ./$<
build_busy         = $(addprefix tests/,attach/busy.c attach/registers.c gpu/support/gpu.c) \
                     $(call sources_of,$(rooms)) -lcmocka -ldl
build_again        = tests/attach/again.c $(call sources_of,$(rooms) attach)
build_alone        = tests/attach/alone.c tests/attach/registers.c -ldl -Wl,-rpath,'$$ORIGIN'
build_small        = tests/attach/small.c
build_alone-static = $(build_alone) -static -Wl,--no-warnings
build_library.so   = tests/attach/library.c -shared
build_slow.so      = tests/attach/slow.c -shared

# Each test program of tests/gpu runs on a simulated H200 (share/topologies), and on others where descriptors, releases of
# the driver, graphs or the topology differ: inside nvtaskset with a partition of the whole GPU, which it then changes
# itself; the bare ones without nvtaskset.
sim_gpus           = h200
several_gpus       = h200 turing ada blackwell hopper-synthetic
sim_gpus_driver_behaviour = $(several_gpus)
sim_gpus_exact_sms = $(several_gpus)
sim_gpus_graphs    = $(several_gpus)
sim_gpus_graphs_changed = $(several_gpus)
sim_gpus_masks_combined = $(several_gpus)
sim_gpus_releases  = $(several_gpus)
sim_gpus_smctrl    = $(several_gpus)
sim_gpus_counts    = h200 turing blackwell
sim_gpus_graphs_conditional = h200 turing blackwell
sim_gpus_graphs_memory = h200 turing blackwell
sim_gpus_hidden    = h200 turing
sim_gpus_live_change = h200 turing blackwell
sim_gpus_misfits   = h200 turing blackwell
sim_gpus_refused   = h200 turing
sim_gpus_shared_slot = h200 blackwell
sim_gpus_smctrl_alone = h200 turing blackwell
sim_gpus_times     = h200 turing blackwell
sim_gpus_tool_first = h200 hopper-synthetic
sim_gpus_attach    = h200 turing blackwell
sim_gpus_two_gpus  = h200-x2
sim_gpus_channels  = h200 h200-x2
sim_gpus_ranks     = h200-x2
sim_gpus_gate      = h200-x2 blackwell
sim_gpus_hangs     = h200 blackwell hopper-synthetic
sim_gpus_soak      = h200-x2 turing blackwell
bare_tests         = attach channels driver_behaviour hangs releases tool_first smctrl_alone smctrl_beside
sim_runs = $(foreach test,$(notdir $(gpu_tests)),\
	$(addprefix $(BUILD)/tests/gpu/$(test)@,$(or $(sim_gpus_$(test)),$(sim_gpus))))

# A make that a test starts gets our variables, but not our job slots.
test_environment = BUILD=$(abspath $(BUILD)) BARE_TESTS="$(bare_tests)" MAKEFLAGS='$(filter-out -j% --jobserver-%,$(MAKEFLAGS))'

# Those that take longest begin first. Many wait more than they compute, so there are more of them than cores; but where they would
# see each other's programs (tests/run), they run one at a time, apart from those that look at none, or have GPUs of their own.
experiments = bench bench_space bench_time
look_at_none = $(patsubst %,tests/cli/%.bats,$(experiments) completions deps exports figures install loading manual mps skips strict) \
               $(addprefix $(BUILD)/tests/unit/,attach group)
slowest = $(patsubst %,tests/cli/%.bats,$(experiments) metrics system install figures completions loading manual group skips \
            lifetime quota strict top) $(addprefix $(BUILD)/tests/unit/,segment_steps attach)
slowest_first = $(foreach test,$(slowest),$(filter $(test),$(1))) $(filter-out $(slowest),$(1))
are_apart := $(shell unshare --pid --fork --mount-proc true 2>/dev/null && echo yes)
JOBS ?= $(shell echo $$(($(if $(are_apart),3,2) * $$(nproc))))

run_tests = $(Q)$(test_environment) JOBS=$(JOBS) LOOK_AT_NONE="$(if $(are_apart),,$(look_at_none))" tests/all $(call slowest_first,$(1))

# TESTS may name fewer. Sanitizers see nothing new in tests of texts and of the installation, nor on a second GPU of the same
# code; and ThreadSanitizer nothing where a program has one thread, as the command has, and all that was given nothing in time.
with_threads = $(addprefix tests/cli/,api hostile policy quota rank)
left_out = $(if $(SANITIZE),$(BUILD)/tests/unit/segment_steps $(addprefix tests/cli/,$(addsuffix .bats,$(experiments) completions deps \
                            exports figures install manual skips strict system topology words)) \
                            $(filter %@ada %@hopper-synthetic,$(sim_runs))) \
           $(if $(filter thread,$(SANITIZE)),$(filter-out %@h200 %@h200-x2,$(sim_runs)) \
                            $(filter-out $(with_threads:=.bats),$(wildcard tests/cli/*.bats)))
TESTS = $(filter-out $(left_out),$(unit_tests) $(sim_runs) $(wildcard tests/cli/*.bats))

# With sanitizers, only benchmarks that tests of the command run.
tested_benchmarks = $(if $(SANITIZE),$(addprefix $(BUILD)/bench/,change crowd launches),$(bench_programs))
check_programs = $(sim) $(unit_tests) $(gpu_tests) $(test_programs) $(attach_programs) $(tested_benchmarks) $(BUILD)/tests/cdi/inject \
	$(BUILD)/demo/where $(BUILD)/demo/draw
build-check: run-all $(check_programs)
run-check: build-check
	$(call run_tests,$(TESTS))

run-check-gpu: $(command) $(shim) $(gpu_tests)
	$(Q)said=$$($(command) --mps off all true 2>&1) || \
		{ echo "make check-gpu: needs a GPU that nvtaskset can use: $${said#nvtaskset: }" >&2; exit 1; }
	$(call run_tests,$(gpu_tests))

# Real profilers and debuggers, on the GPU. CUPTI's headers come with the toolkit's, which declare the same names as
# ours.
CUDA ?= /usr/local/cuda
cupti_link = -L$(CUDA)/lib64 -L$(CUDA)/extras/CUPTI/lib64 -lcupti -Wl,-rpath,$(CUDA)/lib64:$(CUDA)/extras/CUPTI/lib64
tool = $(BUILD)/tests/hardware/tool.o
tool_programs = $(addprefix $(BUILD)/tests/hardware/,cupti cupti_first injected.so where.so)
$(BUILD)/tests/hardware/%.o: override CPPFLAGS += -Itests/gpu/support
$(tool): override CPPFLAGS = -D_GNU_SOURCE -isystem $(CUDA)/include -isystem $(CUDA)/extras/CUPTI/include
$(BUILD)/tests/hardware/%: $(BUILD)/tests/hardware/%.o $(tool) $(gpu_support) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lcmocka -ldl $(cupti_link) -o $@
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

# Checks in a copy, with one deliberate fault after the other, that the tests find it. FAULTS: functions, or patterns.
mutants: deps
	$(Q)BUILD=$(abspath $(BUILD)) tests/mutants/run $(FAULTS)

# Interrupts readers and editors of the segment at every place.
check-steps: $(BUILD)/tests/unit/segment_steps
	SEGMENT_STRIDE=1 $<

# Attaches a thousand times to each program, and kills the attacher at each of its steps.
check-attach: run-all $(sim) $(BUILD)/tests/unit/attach $(attach_programs)
	$(Q)$(test_environment) ATTACH_TIMES=1000 ATTACH_STRIDE=1 TEST_SECONDS=3600 tests/run $(BUILD)/tests/unit/attach

# The same tests with clang's sanitizers, which find more than gcc's. Reports need lines, and no variables.
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
	tests/links
	tests/mutants/run --check
	mandoc -T lint -W warning tools/man/nvtaskset.1 $(BUILD)/man/nvtaskset.3
	shellcheck -S warning $(scripts)
	cppcheck --quiet --suppress=ctunullpointer --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
		-D_GNU_SOURCE -D__x86_64__ -Isrc src tools
	$(call tidy,$(sources),-Itools/nvtaskset -Itests/gpu/support -Ibench/support)
	$(call tidy,$(slurm_sources),-Itools/slurm)

tidy = $(Q)printf '%s\n' $(1) | xargs -r -P "$$(nproc)" -n 8 sh -c 'clang-tidy --quiet "$$@" -- $(CPPFLAGS) -std=gnu11 $(2)' clang-tidy

sources = $(wildcard src/*/*.c src/*/*/*.c tools/nvtaskset/*.c tools/nvtaskset/*/*.c tests/sim/*.c tests/gpu/*.c tests/gpu/support/*.c \
	tests/unit/*.c bench/*/*.c demo/*.c)
# These need Slurm's headers (libslurm-dev).
slurm_sources = $(if $(wildcard /usr/include/slurm/spank.h),$(wildcard tools/slurm/*.c tests/slurm/unit/*.c))
scripts = $(wildcard tests/cli/*.bash tools/completions/*.bash bench/support/*.bash) \
	tests/bare.bash share/packaging/check $(shell grep -rlE '^\#!.*[/ ](sh|bash|bats)$$' .ci bench demo tests tools)

# A fuzz target for each file of tests/fuzz; FUZZ_SECONDS each. Needs clang.
FUZZ_SECONDS ?= 600
fuzz: $(patsubst tests/fuzz/%.c,fuzz-%,$(wildcard tests/fuzz/*.c))
fuzz_flags = -std=gnu11 -g -O1 -fno-sanitize-recover=all
fuzz_library = $(BUILD)/fuzz/library.a
fuzz_objects = $(patsubst $(BUILD)/%,$(BUILD)/fuzz/%,\
               $(filter-out %/entry_loaded.o %/entry_attached.o,$(call objects_of,$(rooms) $(process_rooms))))
$(BUILD)/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)clang $(CPPFLAGS) -Itools/nvtaskset $(fuzz_flags) -fsanitize=fuzzer-no-link,address,undefined -MMD -MP -c $< -o $@
$(fuzz_library): $(fuzz_objects)
	$(Q)rm -f $@ && ar rcs $@ $^
fuzz-%: tests/fuzz/%.c $(fuzz_library)
	@mkdir -p $(BUILD)/fuzz/corpus-$*
	$(Q)clang $(CPPFLAGS) -Itools/nvtaskset $(fuzz_flags) -fsanitize=fuzzer,address,undefined $< $(fuzz_library) -o $(BUILD)/fuzz/$*
	$(Q)$(BUILD)/fuzz/$* -max_total_time=$(FUZZ_SECONDS) -print_final_stats=0 -verbosity=0 \
		-artifact_prefix=$(BUILD)/fuzz/ $(BUILD)/fuzz/corpus-$*

# --- benchmarks ------------------------------------------------------------------------------------

bench: $(command) $(shim) $(sim) $(bench_programs)
	$(Q)BUILD=$(abspath $(BUILD)) bench/run

figures:
	$(Q)tools/deps figures
	$(Q)bench/figures

run-demo: $(command) $(shim) $(sim) $(BUILD)/demo/where $(BUILD)/demo/draw
	$(Q)BUILD=$(abspath $(BUILD)) demo/run

# --- installing ------------------------------------------------------------------------------------

# The directories of these files. A file in the installation lists those that were missing, so that uninstalling removes
# no others. A package (DESTDIR) has its own.
directories = $(LIBDIR)/directories
make_directories = $(Q)umask 022; $(if $(DESTDIR),mkdir -p $(sort $(dir $(addprefix $(DESTDIR),$(1)))),\
	made=$$(LC_ALL=C mkdir -pv $(LIBDIR) $(sort $(dir $(1)))) && printf '%s\n' "$$made" | sed -n "s/.* '\(.*\)'$$/\1/p" >>$(directories))
remove_directories = $(Q)$(if $(DESTDIR),cd $(DESTDIR) && rmdir -p $(patsubst /%,%,$(sort $(dir $(installed)))),\
	made=$$(sort -ru $(directories)); rm -f $(directories); \
	rmdir $(LIBDIR) $(addprefix $(DOCDIR)/,reference internals evaluation) $(DOCDIR) $(PYTHONDIR) $(DATADIR)/nvtaskset $$made) 2>/dev/null || true

# Whether we may write there, before anything is built or written. A package's DESTDIR is not checked.
may-install:
	$(Q)$(if $(DESTDIR),,for directory in $(sort $(dir $(installed))); do \
		while [ ! -e "$$directory" ]; do directory=$$(dirname "$$directory"); done; \
		[ -w "$$directory" ] || { echo "make install: $$directory: you may not write there;" \
			"use 'sudo make install', or 'make install PREFIX=\$$HOME/.local'" >&2; exit 1; }; done)
install install-api install-smctrl: | may-install

# The library is replaced atomically: after nvtaskset system enable, programs open it at any time. The link beside it
# leads to this machine's driver, by the name that a driver upgrade keeps. A package (DESTDIR) has none: nvtaskset makes
# one for each user at run time.
install: $(command) $(shim) $(attach) $(audit)
	$(call make_directories,$(installed_command))
	install -D -m 755 $(command) $(DESTDIR)$(BINDIR)/nvtaskset
	install -D -m 755 $(shim) $(DESTDIR)$(LIBDIR)/.libcuda.so.1
	mv -f $(DESTDIR)$(LIBDIR)/.libcuda.so.1 $(DESTDIR)$(LIBDIR)/libcuda.so.1
	ln -sf libcuda.so.1 $(DESTDIR)$(LIBDIR)/libcuda.so
	install -D -m 755 $(attach) $(DESTDIR)$(LIBDIR)/libnvtaskset-attach.so
	install -D -m 755 $(audit) $(DESTDIR)$(LIBDIR)/libnvtaskset-audit.so
	install -D -m 644 tools/man/nvtaskset.1 $(DESTDIR)$(DATADIR)/man/man1/nvtaskset.1
	install -D -m 644 tools/completions/nvtaskset.bash $(DESTDIR)$(BASH_COMPLETION)
	install -D -m 644 tools/completions/_nvtaskset $(DESTDIR)$(ZSH_COMPLETION)
	install -D -m 644 tools/completions/nvtaskset.fish $(DESTDIR)$(FISH_COMPLETION)
	$(foreach document,$(documents),install -D -m 644 docs/$(document) $(DESTDIR)$(DOCDIR)/$(document) &&) true
	install -D -m 644 share/systemd/nvtaskset-metrics.socket $(DESTDIR)$(UNITDIR)/nvtaskset-metrics.socket
	sed 's|@BINDIR@|$(BINDIR)|' share/systemd/nvtaskset-metrics.service.in >$(DESTDIR)$(UNITDIR)/nvtaskset-metrics.service
	$(Q)$(if $(DESTDIR),,$(link_driver))

# The dynamic linker's cache is as of the last ldconfig. Renews it for $(1), a library, or says what programs need.
define register_library
$(Q)if /sbin/ldconfig -NXv 2>/dev/null | grep -q '^$(SHLIBDIR):' && [ -w /etc/ld.so.cache ]; then /sbin/ldconfig; else \
	echo "Programs find $(SHLIBDIR)/$(1) by LD_LIBRARY_PATH, or once ldconfig knows that directory."; fi
endef

# For programs: nvtaskset.h, and the Python module on top of it.
SHLIBDIR   ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
PYTHONDIR  ?= $(DATADIR)/nvtaskset/python
installed_api = $(INCLUDEDIR)/nvtaskset.h $(addprefix $(SHLIBDIR)/,$(notdir $(api)) libnvtaskset.so.0 libnvtaskset.so \
	libnvtaskset.a pkgconfig/nvtaskset.pc) $(PYTHONDIR)/nvtaskset.py $(DATADIR)/man/man3/nvtaskset.3
install: install-api
uninstall: uninstall-api
$(BUILD)/man/nvtaskset.3: include/nvtaskset.h tools/man/nvtaskset.3 tools/man/header.awk
	@mkdir -p $(@D)
	$(Q)awk -f tools/man/header.awk include/nvtaskset.h tools/man/nvtaskset.3 >$@
install-api: $(api) $(api_archive) $(BUILD)/man/nvtaskset.3
	$(call make_directories,$(installed_api))
	install -D -m 644 include/nvtaskset.h $(DESTDIR)$(INCLUDEDIR)/nvtaskset.h
	install -D -m 755 $(api) $(DESTDIR)$(SHLIBDIR)/$(notdir $(api))
	ln -sf $(notdir $(api)) $(DESTDIR)$(SHLIBDIR)/libnvtaskset.so.0
	ln -sf libnvtaskset.so.0 $(DESTDIR)$(SHLIBDIR)/libnvtaskset.so
	install -D -m 644 $(api_archive) $(DESTDIR)$(SHLIBDIR)/libnvtaskset.a
	sed 's|@PREFIX@|$(PREFIX)|; s|@SHLIBDIR@|$(SHLIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(version)|' \
		src/api/nvtaskset.pc.in >$(DESTDIR)$(SHLIBDIR)/pkgconfig/nvtaskset.pc
	install -D -m 644 tools/python/nvtaskset.py $(DESTDIR)$(PYTHONDIR)/nvtaskset.py
	install -D -m 644 $(BUILD)/man/nvtaskset.3 $(DESTDIR)$(DATADIR)/man/man3/nvtaskset.3
	$(if $(DESTDIR),,$(call register_library,libnvtaskset.so.0))
uninstall-api:
	rm -f $(addprefix $(DESTDIR),$(installed_api))

# For programs written for libsmctrl.
installed_smctrl = $(INCLUDEDIR)/libsmctrl.h $(addprefix $(SHLIBDIR)/,libsmctrl.so.0 libsmctrl.so libsmctrl.a)
install: install-smctrl
uninstall: uninstall-smctrl
install-smctrl: $(smctrl) $(smctrl_archive)
	$(call make_directories,$(installed_smctrl))
	install -D -m 644 include/libsmctrl.h $(DESTDIR)$(INCLUDEDIR)/libsmctrl.h
	install -D -m 755 $(smctrl) $(DESTDIR)$(SHLIBDIR)/libsmctrl.so.0
	ln -sf libsmctrl.so.0 $(DESTDIR)$(SHLIBDIR)/libsmctrl.so
	install -D -m 644 $(smctrl_archive) $(DESTDIR)$(SHLIBDIR)/libsmctrl.a
	$(if $(DESTDIR),,$(call register_library,libsmctrl.so.0))
uninstall-smctrl:
	rm -f $(addprefix $(DESTDIR),$(installed_smctrl))

BASH_COMPLETION = $(DATADIR)/bash-completion/completions/nvtaskset
ZSH_COMPLETION  = $(DATADIR)/zsh/site-functions/_nvtaskset
UNITDIR        ?= $(PREFIX)/lib/systemd/system
FISH_COMPLETION = $(DATADIR)/fish/vendor_completions.d/nvtaskset.fish
DOCDIR         ?= $(DATADIR)/doc/nvtaskset
documents       = $(patsubst docs/%,%,$(shell find docs -name '*.md' | sort))

define link_driver
driver=$$(/sbin/ldconfig -p | grep -v $(LIBDIR)/ | sed -n 's/^.*libcuda\.so\.1 (libc6,[^ ]*64) => //p' | head -n 1); \
	test -z "$$driver" || ln -sf "$$driver" $(LIBDIR)/libnvtaskset-driver.so.1
endef

installed_command = $(BINDIR)/nvtaskset $(addprefix $(LIBDIR)/,libcuda.so.1 libcuda.so libnvtaskset-attach.so \
	libnvtaskset-audit.so libnvtaskset-driver.so.1) $(DATADIR)/man/man1/nvtaskset.1 $(BASH_COMPLETION) $(ZSH_COMPLETION) \
	$(FISH_COMPLETION) $(addprefix $(UNITDIR)/,nvtaskset-metrics.socket nvtaskset-metrics.service) \
	$(addprefix $(DOCDIR)/,$(documents))
installed = $(installed_command) $(installed_api) $(installed_smctrl)
system_configuration = /etc/ld.so.conf.d/00-000-nvtaskset.conf
# Disables by the former spelling: what is installed may be an older version.
uninstall:
	$(Q)$(if $(DESTDIR),,! grep -qsx $(LIBDIR)/system $(system_configuration) || $(BINDIR)/nvtaskset --disable-system)
	rm -f $(addprefix $(DESTDIR),$(installed_command))
	$(remove_directories)

include share/packaging/packaging.mk

clean:
	rm -rf $(BUILD)

# Not those of other trees that are built in it.
-include $(shell find $(BUILD) -name 'nvtaskset-*' -prune -o -name '*.d' -type f -print 2>/dev/null)

help:
	@echo 'make                 build the command and the library'
	@echo 'make demo            show the main job, on the GPU or on a simulated one'
	@echo 'make check           run the tests (no GPU needed), or some: TESTS=tests/cli/run.bats'
	@echo '                     MUST_WORK=1: what a package or being root would let run may not be skipped'
	@echo 'make check-asan      the same under sanitizers; check-tsan. tests/busy: while every core is busy'
	@echo 'make check-attach    attach a thousand times; check-steps: interrupt editors anywhere'
	@echo 'make check-slurm     the plugin for Slurm, on a real cluster of this machine; SLURM_JOBS. make slurm builds it'
	@echo 'make check-gpu       run the tests of tests/gpu on the GPU; check-tools: profilers and debuggers'
	@echo 'make mutants         which deliberate faults no test finds; FAULTS'
	@echo 'make soak            ten minutes of a mixed load under changing partitions; SOAK_SECONDS'
	@echo 'make bench           measure; make figures: pictures and numbers of the docs from bench/data'
	@echo 'make lint, fuzz      clang-tidy, cppcheck, shellcheck, mandoc; libFuzzer, FUZZ_SECONDS each'
	@echo 'make deps            install what is needed to build and to test (Debian, Ubuntu); the others do so, too'
	@echo 'make install         DESTDIR= PREFIX=/usr/local; also: uninstall'
	@echo 'make dist, deb, rpm, wheel   a tarball and packages, in build/release; make release: all of a release'
	@echo 'make check-arm64     tests on aarch64, under qemu-user, as root'
	@echo 'make check-litmus    orders of memory, by herd7'
	@echo 'make check-compatibility   this version and the one before (BEFORE, a commit) beside each other'
	@echo '                     tests/packages: on a bare Debian; tests/fresh'
	@echo 'V=1 shows commands; WERROR=1 makes warnings errors; CC, CFLAGS, LDFLAGS, BUILD as usual'

.PHONY: $(with_packages) $(addprefix run-,$(with_packages)) build-check clean check-steps check-attach mutants check-asan check-tsan \
	check-sanitizers slurm build-check-slurm FORCE lint fuzz bench figures deps \
	install uninstall may-install install-api uninstall-api help install-smctrl uninstall-smctrl
.SECONDARY:
