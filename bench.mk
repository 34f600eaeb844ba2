# Experiments, figures and the demo.

bench_support   = $(patsubst %.c,$(BUILD)/%.o,$(wildcard bench/support/*.c))
# By topic; the programs lie side by side.
bench_sources   = $(filter-out bench/support/% bench/preload/%,$(wildcard bench/*/*.c))
bench_programs  = $(addprefix $(BUILD)/bench/,$(notdir $(bench_sources:.c=)))
bench_preloads  = $(patsubst bench/preload/%.c,$(BUILD)/bench/%.so,$(wildcard bench/preload/*.c))

$(BUILD)/bench/%.o $(BUILD)/demo/%.o: override CPPFLAGS += -Itests/gpu/support -Ibench/support
link_bench_program = $(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) -ldl -lm -o $@
$(foreach source,$(bench_sources),$(eval $(BUILD)/bench/$(notdir $(source:.c=)): $(source:%.c=$(BUILD)/%.o)))
# Programs with the library inside.
$(addprefix $(BUILD)/bench/,account aside quota_start registration slice): $(attach_objects)
# Listens to the kernel driver's calls.
$(BUILD)/bench/presence: $(BUILD)/tests/gpu/support/kernel.o
$(BUILD)/bench/plans: $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/nvtaskset/plan/*.c))
$(BUILD)/bench/space/plans.o: override CPPFLAGS += -Itools/nvtaskset
$(bench_programs): $(bench_support) $(library)
	$(link_bench_program)
# For LD_PRELOAD.
$(BUILD)/bench/%.so: bench/preload/%.c
	$(Q)mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -shared $< -ldl -o $@

# The demo must not need the tests' packages, such as cmocka.
$(BUILD)/demo/%: $(BUILD)/demo/%.o $(bench_support) $(library)
	$(link_bench_program)

bench: $(command) $(shim) $(sim) $(bench_programs) $(bench_preloads) $(BUILD)/tests/programs/memory
	$(Q)BUILD=$(abspath $(BUILD)) bench/run

figures:
	$(Q)tools/deps figures
	$(Q)bench/figures

run-demo: $(command) $(shim) $(sim) $(BUILD)/demo/where
	$(Q)BUILD=$(abspath $(BUILD)) demo/run

.PHONY: bench figures run-demo
