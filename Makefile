# nvtaskset: make, make demo, make check; `make help` lists the rest.
#
# Building needs make, a C compiler, glibc and, for the command, jansson. If packages for this, or for tests that are to
# run, are missing, they are installed first (tools/deps); `make deps` does only that. A packager (DESTDIR) has them.
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

# The rooms (HACKING.md), from the top down: for every program of ours; and for other people's processes only.
rooms         = base gpu mps state monitor
process_rooms = driver launch time memory shim
# The sources of rooms, and of the rooms in them.
sources_of = $(wildcard $(foreach room,$(1),src/$(room)/*.c src/$(room)/*/*.c))
objects_of = $(patsubst %.c,$(BUILD)/%.o,$(call sources_of,$(1)))
library_objects = $(call objects_of,$(rooms) attach api)
# There are two kinds of the library, which differ in how they start.
shim_objects    = $(filter-out %/entry_attached.o,$(call objects_of,$(process_rooms)))
attach_objects  = $(filter-out %/entry_loaded.o,$(call objects_of,$(process_rooms)))
# The driver's names, and their jumps for this machine: in the shim only.
machine         = $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
names_objects   = $(call objects_of,names) $(BUILD)/src/names/$(machine)/stubs.o
# libsmctrl contains their common part, for processes that have neither.
smctrl_objects  = $(call objects_of,smctrl) $(filter-out %/entry_loaded.o,$(shim_objects))
command_objects = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/nvtaskset/*.c tools/nvtaskset/*/*.c))

library = $(BUILD)/libnvtaskset.a
shim    = $(BUILD)/lib/libcuda.so.1
attach  = $(BUILD)/lib/libnvtaskset-attach.so
audit   = $(BUILD)/lib/libnvtaskset-audit.so
# For ldconfig after nvtaskset system enable (tools/nvtaskset/system/system.c): the shim, the driver's other name, and a
# way to the driver in containers.
front   = $(BUILD)/lib/libcuda.so.01
alias   = $(BUILD)/lib/libnvtaskset-alias.so
way     = $(BUILD)/lib/libcuda.so.nvtaskset
listed  = $(front) $(alias) $(way)
smctrl  = $(BUILD)/libsmctrl.so.0
command = $(BUILD)/nvtaskset
sim     = $(BUILD)/sim/libcuda.so.1

version     = $(shell sed -n '/define NVTASKSET_VERSION /s/.*"\(.*\)"/\1/p' src/version.h)
api         = $(BUILD)/api/libnvtaskset.so.$(version)
api_archive = $(BUILD)/api/libnvtaskset.a
smctrl_archive = $(BUILD)/libsmctrl.a

# The goals that users type first. Packages are installed before anything is built, also with -j.
installs      = install install-api install-smctrl
with_packages = all demo check check-gpu check-tools check-slurm soak $(installs)
packages_check-slurm = slurm
$(foreach goal,all demo $(installs),$(eval packages_$(goal) = build))
# Each of these builds in a make of its own, so it must not run beside another goal that may build the same files.
ifneq ($(filter $(with_packages),$(MAKECMDGOALS)),)
ifneq ($(words $(MAKECMDGOALS)),1)
.NOTPARALLEL:
endif
endif
$(with_packages) deps: export COMPILE = $(CC) $(CPPFLAGS) $(CFLAGS)
$(with_packages):
	$(Q)$(if $(DESTDIR),,tools/deps $(or $(packages_$@),tests))
	$(Q)$(MAKE) --no-print-directory run-$@
deps:
	$(Q)tools/deps tests
	@echo 'Everything is there.'

run-all: $(command) $(shim) $(attach) $(audit) $(listed) $(api) $(api_archive) $(smctrl) $(smctrl_archive)
	@:

$(BUILD)/tools/%.o: override CPPFLAGS += -Itools/nvtaskset

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(library): $(library_objects)
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^

$(command): $(command_objects) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,-z,now $^ -ljansson -ldl -o $@

# The shim needs the real driver under another file name, which the command puts beside it as a symbolic
# link (facts.md, "Loading"); this stub gives the linker that name.
$(BUILD)/stub/%:
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -nostdlib -Wl,-soname,'$(or $(soname),$(@F))' -x c /dev/null -o $@

$(BUILD)/%.o: %.S src/names/list.h
	@mkdir -p $(@D)
	$(call say,AS,$@)$(CC) $(CPPFLAGS) $(filter-out $(sanitize_flags) -flto%,$(CFLAGS)) -c $< -o $@

link_shim = $(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) \
		-Wl,--version-script=src/shim/libcuda.map $(if $(SANITIZE),,-Wl,-z,defs) -Wl,-z,now -Wl,-z,nodelete \
		-Wl,-z,separate-code -Wl,--hash-style=gnu \
		-Wl,--enable-new-dtags -Wl,-rpath,'$(run_path)' \
		$(filter %.o %.a,$^) -Wl,--no-as-needed $(filter $(BUILD)/stub/%,$^)
run_path = $$ORIGIN:$$ORIGIN/driver
$(shim): $(BUILD)/stub/libnvtaskset-driver.so.1
$(front): $(BUILD)/src/listed/listed.o $(BUILD)/stub/libcuda.so.nvtaskset
$(front): run_path = $$ORIGIN/driver:$$ORIGIN
$(shim) $(front): $(names_objects) $(shim_objects) $(library) src/shim/libcuda.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(link_shim) -o $@
	$(Q)ln -sf libcuda.so.1 $(@D)/libcuda.so

$(alias): $(names_objects) $(BUILD)/src/listed/alias.o $(shim)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libcuda.so -Wl,-z,now -Wl,-z,nodelete \
		-Wl,-z,separate-code -Wl,--hash-style=gnu \
		$(filter %.o,$^) -Wl,--no-as-needed -L$(@D) -l:libcuda.so.1 -o $@

$(BUILD)/stub/beside: soname = $$ORIGIN/libcuda.so.1
$(way): $(BUILD)/stub/beside
	$(Q)mkdir -p $(@D) && $(CC) -shared -nostdlib -Wl,-soname,$(@F) -x c /dev/null -x none -Wl,--no-as-needed $< -o $@

# Without any library: src/audit/audit.c says why. Code that the packager's or a sanitizer's flags add would call libc.
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

include bench.mk
include tests.mk
include share/packaging/install.mk
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

.PHONY: $(with_packages) $(addprefix run-,$(with_packages)) clean slurm FORCE deps help
.SECONDARY:
