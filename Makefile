# nvtaskset: make, make demo, make check; `make help` lists the rest.
#
# Nothing but make, a C compiler and glibc is needed to build; `make deps` installs what the tests need.
# CC, CFLAGS, LDFLAGS, PREFIX and DESTDIR are the packager's: what we need is added, never replaced.

BUILD  ?= build
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib/nvtaskset
DATADIR ?= $(PREFIX)/share
V ?= 0
Q = $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' $(1) $(2);)

CFLAGS ?= -O2 -g
SANITIZE ?=
sanitize_flags = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
override CPPFLAGS += -D_GNU_SOURCE -Isrc
override CFLAGS += -std=gnu11 -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
                   -Wvla -Wundef -fPIC -fvisibility=hidden -pthread $(sanitize_flags)
override LDFLAGS += -pthread $(sanitize_flags)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

# --- what there is ---------------------------------------------------------------------------------

library_objects = $(patsubst %.c,$(BUILD)/%.o,$(wildcard src/*.c src/topology/*.c))
shim_objects    = $(patsubst %.c,$(BUILD)/%.o,$(wildcard src/shim/*.c))
command_objects = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/nvtaskset/*.c))
sim_objects     = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/sim/*.c))
gpu_support     = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/gpu/support/*.c))
unit_tests      = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/*.c))
bench_programs  = $(patsubst %.c,$(BUILD)/%,$(wildcard bench/*.c))
gpu_tests       = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/gpu/*.c))

library = $(BUILD)/libnvtaskset.a
shim    = $(BUILD)/lib/libcuda.so.1
command = $(BUILD)/nvtaskset
sim     = $(BUILD)/sim/libcuda.so.1

all: $(command) $(shim)

$(BUILD)/bench/%.o: override CPPFLAGS += -Itests/gpu/support

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(library): $(library_objects)
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^

$(command): $(command_objects) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@

# The shim needs the real driver under another file name, which the command puts beside it as a symbolic
# link (FACTS 10); this stub lends its name to the linker.
$(BUILD)/stub/libnvtaskset-driver.so.1:
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -nostdlib -Wl,-soname,libnvtaskset-driver.so.1 -x c /dev/null -o $@

$(shim): $(shim_objects) $(library) src/shim/libcuda.map $(BUILD)/stub/libnvtaskset-driver.so.1
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 \
		-Wl,--version-script=src/shim/libcuda.map $(if $(SANITIZE),,-Wl,-z,defs) -Wl,-z,now -Wl,-z,nodelete \
		-Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN' $(shim_objects) $(library) \
		-Wl,--no-as-needed $(BUILD)/stub/libnvtaskset-driver.so.1 -o $@

# --- tests -----------------------------------------------------------------------------------------

$(sim): $(sim_objects) $(library)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 $^ -o $@

$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lcmocka -o $@

$(BUILD)/tests/gpu/%: $(BUILD)/tests/gpu/%.o $(gpu_support) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lcmocka -ldl -o $@

$(BUILD)/bench/%: $(BUILD)/bench/%.o $(gpu_support) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lcmocka -ldl -o $@

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

.PHONY: all clean
.SECONDARY:
