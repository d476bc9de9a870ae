# ntrace: see README.md.  `make help` lists the targets.
#
# One Makefile for the whole tree.  Objects go to $(BUILD); a sanitizer build is the same
# Makefile with another BUILD.  V=1 shows the commands.

VERSION := 0.1.0
BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
V       ?= 0
SANITIZE ?=

CC       ?= gcc
CXX      ?= g++
CLANG    ?= clang
BPFTOOL  ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
ifeq ($(origin CC),default)
CC := gcc
endif

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' $(1) $(patsubst $(BUILD)/%,%,$@))

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules
# `make setup demo` must finish setup before anything is looked up or built.
ifneq ($(filter setup,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

# ---- flags --------------------------------------------------------------------------------------

# pkg-config is asked when a recipe runs, not when this file is read: `setup` may still be to come.
PKGS := libbpf libelf libprotobuf-c fuse3 libzstd libxxhash jansson
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS))
pkg_libs = $(shell pkg-config --libs $(1))

WARN := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla -Wformat=2 -Wno-format-truncation -Wundef $(if $(CI),-Werror)
# A sanitizer's report needs lines and no variables; its build takes a third less time so.
OPT := $(if $(SANITIZE),-O1 -g1,-O2 -g) -fno-omit-frame-pointer
# gcc's flow warnings misfire in code that a sanitizer has changed; the plain build has them all.
SAN := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -Wno-stringop-overread \
	-Wno-maybe-uninitialized)
CPPFLAGS_ALL = -D_GNU_SOURCE -DNTRACE_VERSION='"$(VERSION)"' \
	-I. -I$(BUILD)/gen -Iruntime/include
CFLAGS_ALL = -std=gnu11 $(OPT) $(WARN) -fPIC -fvisibility=hidden -pthread $(SAN) $(CFLAGS)
LDFLAGS_ALL = -pthread -Wl,-z,relro,-z,now $(SAN) $(LDFLAGS)

# ---- files --------------------------------------------------------------------------------------

PROTOS    := $(wildcard proto/*.proto)
PB_C      := $(PROTOS:%.proto=$(BUILD)/gen/%.pb-c.c)
PB_H      := $(PB_C:.c=.h)
PB_O      := $(PB_C:$(BUILD)/gen/%.c=$(BUILD)/obj/%.o)
BPF_SRC   := $(wildcard bpf/*.bpf.c)
SKEL_H    := $(BPF_SRC:bpf/%.bpf.c=$(BUILD)/gen/bpf/%.skel.h)

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
# The calls of nrt_sys_trace.h are the library's alone.
CORE_SRC  := $(filter-out runtime/trace/sys_trace%,$(wildcard proto/*.c vmlinux/*.c runtime/base/*.c \
	runtime/trace/*.c runtime/record/*.c))
NRT_SRC   := $(wildcard runtime/lifecycle/*.c runtime/log/*.c runtime/device/*.c runtime/exec/*.c \
	runtime/profile/*.c runtime/trace/sys_trace*.c)
VDEV_SRC  := $(wildcard runtime/vdev/*.c)
AGENT_SRC := $(wildcard agent/*.c agent/collect/*.c agent/output/*.c agent/serve/*.c)
UNIT_SRC  := $(wildcard tests/unit/*.c)
BENCH_SRC := $(wildcard tests/bench/*.c)
WORK_SRC  := $(wildcard tests/workloads/*.c)
FUZZ_SRC  := $(wildcard tests/fuzz/*.c)
FUZZERS   := $(patsubst tests/fuzz/%_fuzz.c,%,$(wildcard tests/fuzz/*_fuzz.c))
MODEL_SRC := $(filter-out tests/model/main.c,$(wildcard tests/model/*.c))
# The BPF programs once more, for the host, and the kernel that they meet there.
BPFHOST_SRC := $(wildcard tests/shim/bpf/*.c tests/shim/bpf/programs/*.c)
ALL_C     := $(CORE_SRC) $(NRT_SRC) $(VDEV_SRC) $(AGENT_SRC) $(UNIT_SRC) $(BENCH_SRC) $(WORK_SRC) \
	$(MODEL_SRC) tests/model/main.c $(wildcard tests/shim/*.c) $(BPFHOST_SRC) $(wildcard tests/btf/*.c) $(FUZZ_SRC)

CORE_O    := $(call obj,$(CORE_SRC)) $(PB_O)
MAINS_O   := $(call obj,agent/main.c runtime/vdev/main.c)

LIBNRT  := $(BUILD)/lib/libnrt.so.1
NTRACE  := $(BUILD)/bin/ntrace
VDEV    := $(BUILD)/bin/ntrace-vdev
UNIT    := $(BUILD)/tests/unit
MODEL   := $(BUILD)/tests/model
BENCHES := $(BENCH_SRC:tests/bench/%.c=$(BUILD)/bench/%)
FAULTS  := $(BUILD)/tests/faults.so # makes calls fail, see its source
LIBDUMP := $(BUILD)/tests/dump/libnrt.so.1
FAKE_DUMP := $(BUILD)/tests/fake_dump # a helper for it
REPLAYS := $(FUZZERS:%=$(BUILD)/tests/fuzz/%) # each fuzz target over files
LIBFUZZ := $(FUZZERS:%=$(BUILD)/tests/libfuzzer/%)
WORK_CXX  := $(wildcard tests/workloads/*.cpp)
CXX_WORKS := $(WORK_CXX:tests/workloads/%.cpp=$(BUILD)/workloads/%)
VM_PROGRAMS := $(patsubst tests/vm/programs/%.c,$(BUILD)/vm/programs/%,$(wildcard tests/vm/programs/*.c))
WORKS   := $(WORK_SRC:tests/workloads/%.c=$(BUILD)/workloads/%) $(CXX_WORKS)
# In a build with a sanitizer the program under test is such a twin itself.
TWINS   := $(if $(SANITIZE),,$(BUILD)/twin/O0/bin/ntrace $(BUILD)/twin/O3/bin/ntrace $(BUILD)/asan/bin/ntrace)
TWIN_O0 := OPT=-O0
TWIN_O3 := OPT='-O3 -Wno-maybe-uninitialized'
ASAN    := BUILD=$(BUILD)/asan SANITIZE=address,undefined
PROGRAMS := $(LIBNRT) $(BUILD)/lib/libnrt.so $(NTRACE) $(VDEV)

# ---- targets ------------------------------------------------------------------------------------

.PHONY: help setup all demo test test-unit test-cli test-vm lint asan tsan fuzz fuzz-programs \
	bench bench-bpf bench-trace bench-merge bench-export coverage-bpf vmlinux-check install clean test-programs FORCE

help:
	@echo 'ntrace $(VERSION)'
	@echo '  make setup    install the Debian packages that are missing (root)'
	@echo '  make all      libnrt.so.1, ntrace, ntrace-vdev'
	@echo '  make demo     record a workload on a virtual device and show the result (root)'
	@echo '  make test     all tests that this machine and user can run'
	@echo '  make test-vm  the tests in virtual machines; VM_TESTS="a b" only these, NEURON_KO=path this driver'
	@echo '  make lint     formatting, include rules, static analysis'
	@echo '  make asan     the tests under AddressSanitizer and UBSan'
	@echo '  make tsan     the tests under ThreadSanitizer'
	@echo '  make fuzz     build the fuzz targets with clang; FUZZ_SECONDS=N runs each that long'
	@echo '  make bench    benchmarks'
	@echo '  make bench-bpf    what the hooks add to an ioctl, beside a bare program, bpftrace and perf trace (root)'
	@echo '  make bench-trace  what an event costs the traced program, beside LTTng-UST and crossbeam'
	@echo '  make bench-merge  the merge at 1, 10 and 50 million events (BENCH_EVENTS), beside dd, protobuf-c, babeltrace2'
	@echo '  make bench-export  the Perfetto export at 1 and 10 million events (EXPORT_EVENTS)'
	@echo "  make vmlinux-check BTF='KERNEL MODULE...'  do they have what the BPF programs read"
	@echo '  make coverage-bpf  which branches of the BPF programs the tests take that run them on the host'
	@echo '  make install  to $$(DESTDIR)$$(PREFIX), now $(DESTDIR)$(PREFIX)'
	@echo '  make all NEURON_DUMP=PATH  the library with another helper for core dumps'
	@echo '  make clean    remove $(BUILD)/'
	@echo 'V=1 shows commands, CI=1 makes warnings errors.'

setup:
	$(Q)sh .ci/setup

all: $(PROGRAMS)

demo: all $(WORKS)
	$(Q)BUILD=$(BUILD) sh tests/demo.sh

test-programs: $(UNIT) $(PROGRAMS) $(WORKS) $(REPLAYS) $(FAULTS) $(LIBDUMP) $(FAKE_DUMP)

test: test-programs $(TWINS)
	$(Q)BUILD=$(BUILD) TWINS='$(TWINS)' sh tests/run.sh $(SUITES)

# Kernels and QEMU come from the packages of .ci/packages-vm.
test-vm: all $(BUILD)/workloads/inference $(VM_PROGRAMS)
	$(Q)BUILD=$(BUILD) NEURON_KO=$(NEURON_KO) bash tests/vm/run.sh $(VM_TESTS)

# The same program built in other ways, for the replay tests.
$(BUILD)/twin/%/bin/ntrace: FORCE
	$(Q)$(MAKE) -s --no-print-directory CI= BUILD=$(BUILD)/twin/$* $(TWIN_$*) $@
ifeq ($(SANITIZE),)
$(BUILD)/asan/bin/ntrace: FORCE
	$(Q)$(MAKE) -s --no-print-directory $(ASAN) $@
endif
FORCE:

# Without what is generated cppcheck would guess.
lint: $(PB_H) $(SKEL_H)
	$(Q)BUILD=$(BUILD) CC="$(CC)" sh .ci/lint

# The document of conformance is judged by the plain build: some of its tests cannot run under a sanitizer.
# Commands under a sanitizer run one by one: a recorder gives up on a program that gets no processor for 200 ms.
asan:
	$(Q)CLI_JOBS=1 $(MAKE) $(ASAN) SUITES='$(or $(SUITES),unit cli replay fuzz faults)' test

# The merge and the parsers have one thread: their long tests tell ThreadSanitizer nothing and take it ten minutes.
# (A filter that only leaves out would bring in the hidden tests: ~[.].)  The fault tests preload a library,
# which ThreadSanitizer does not bear.
tsan:
	$(Q)CLI_JOBS=1 UNIT_FILTER='~[merge]~[recovery]~[golden]~[perfetto]~[diff]~[canon]~[record]~[bpf-host]~[.]' \
		$(MAKE) BUILD=$(BUILD)/tsan SANITIZE=thread SUITES='unit cli' test

FUZZ_FLAGS = BUILD=$(BUILD)/fuzz CC='$(CLANG)' SANITIZE=address,undefined \
	OPT='-O2 -g -fno-omit-frame-pointer' CFLAGS='-fsanitize=fuzzer-no-link -Wno-unknown-warning-option'
fuzz:
	$(Q)$(MAKE) $(FUZZ_FLAGS) fuzz-programs
	$(Q)BUILD=$(BUILD)/fuzz FUZZ_SECONDS=$(FUZZ_SECONDS) bash tests/fuzz/fuzz.sh $(FUZZ_TARGETS)

fuzz-programs: $(LIBFUZZ) $(BUILD)/tests/frames_seed

bench: $(BENCHES) $(PROGRAMS) $(WORKS)
	$(Q)BUILD=$(BUILD) sh tests/bench/run.sh

# On a file, where the call itself is short, and over the virtual device, whose answer takes a round trip.
bench-bpf: $(BUILD)/bench/ioctl_overhead $(BUILD)/bench/bpf_load $(VDEV)
	$(Q)$(BUILD)/bench/bpf_load
	$(Q)$(BUILD)/bench/ioctl_overhead --peers
	$(Q)$(VDEV) --devices 1 -- $(BUILD)/bench/ioctl_overhead --peers

bench-trace: $(BUILD)/bench/trace_events
	$(Q)CC=$(CC) bash tests/bench/trace_peers.sh $(BUILD)/bench/trace_events

BENCH_EVENTS ?= 1000000 10000000 50000000
bench-merge: $(BUILD)/bench/merge_events $(BUILD)/bench/recording
	$(Q)$(BUILD)/bench/merge_events $(BENCH_EVENTS)
	$(Q)$(BUILD)/bench/recording
	$(Q)CC=$(CC) bash tests/bench/lttng_peer.sh $(BUILD)/bench/merge_events

EXPORT_EVENTS ?= 1000000 10000000
bench-export: $(BUILD)/bench/export_events
	$(Q)$(BUILD)/bench/export_events $(EXPORT_EVENTS)

# The library goes to a private directory: the loader must not find it by chance in place of the vendor's.
install: all
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/ntrace \
		$(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include/ntrace/nrt \
		$(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/doc/ntrace
	$(Q)install -m 755 $(NTRACE) $(VDEV) $(DESTDIR)$(PREFIX)/bin
	$(Q)install -m 755 $(LIBNRT) $(DESTDIR)$(PREFIX)/lib/ntrace/libnrt.so.1
	$(Q)ln -sf libnrt.so.1 $(DESTDIR)$(PREFIX)/lib/ntrace/libnrt.so
	$(Q)install -m 644 runtime/include/nrt/*.h $(DESTDIR)$(PREFIX)/include/ntrace/nrt
	$(Q)printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include/ntrace' \
		'libdir=$${prefix}/lib/ntrace' '' 'Name: ntrace-nrt' 'Version: $(VERSION)' \
		'Description: Neuron runtime of ntrace, in its private directory' \
		'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lnrt -Wl,-rpath,$(PREFIX)/lib/ntrace' \
		>$(DESTDIR)$(PREFIX)/lib/pkgconfig/ntrace-nrt.pc
	$(Q)install -m 644 LICENSE docs/*.md $(DESTDIR)$(PREFIX)/share/doc/ntrace
	$(Q)sed -e 's,docs/\([a-z-]*\.md\),\1,g' -e 's,man docs/man/\([a-z-]*\)\.1,man \1,g' README.md \
		>$(DESTDIR)$(PREFIX)/share/doc/ntrace/README.md
	$(Q)for page in ntrace ntrace-vdev; do sed 's,docs/\([a-z-]*\.md\),$(PREFIX)/share/doc/ntrace/\1,' \
		docs/man/$$page.1 >$(DESTDIR)$(PREFIX)/share/man/man1/$$page.1 || exit; done
	@echo 'installed in $(DESTDIR)$(PREFIX).  To compile and link a program:'
	@echo '  gcc program.c $$(PKG_CONFIG_PATH=$(DESTDIR)$(PREFIX)/lib/pkgconfig $(if $(DESTDIR),PKG_CONFIG_SYSROOT_DIR=$(DESTDIR) )pkg-config --cflags --libs ntrace-nrt) -o program'

clean:
	$(Q)rm -rf $(BUILD)

# ---- generated sources --------------------------------------------------------------------------

$(BUILD)/gen/proto/%.pb-c.c $(BUILD)/gen/proto/%.pb-c.h &: proto/%.proto
	$(call say,PROTO)
	$(Q)mkdir -p $(@D) && protoc-c --proto_path=. --c_out=$(BUILD)/gen $<

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h vmlinux/*.h vmlinux/*.def)
	$(call say,BPF)
	$(Q)mkdir -p $(@D) && $(CLANG) -target bpf -mcpu=v3 -O2 -g -D__bpf__ \
		-Wall -Werror -I. $(shell pkg-config --cflags libbpf) -c $< -o $@

# The programs of the benchmarks' peers.
$(BUILD)/bpf/bench/%.bpf.o: tests/bench/bpf/%.bpf.c vmlinux/vmlinux.h
	$(call say,BPF)
	$(Q)mkdir -p $(@D) && $(CLANG) -target bpf -mcpu=v3 -O2 -g -D__bpf__ \
		-Wall -Werror -I. $(shell pkg-config --cflags libbpf) -c $< -o $@

$(BUILD)/gen/tests/bench/bpf/%.skel.h: $(BUILD)/bpf/bench/%.bpf.o
	$(call say,SKEL)
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen skeleton $< name $(subst .,_,$*)_bpf >$@

$(BUILD)/obj/tests/bench/ioctl_overhead.o: | $(BUILD)/gen/tests/bench/bpf/bare.skel.h

$(BUILD)/gen/bpf/%.skel.h: $(BUILD)/bpf/%.bpf.o
	$(call say,SKEL)
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen skeleton $< name $(subst .,_,$*)_bpf >$@

# ---- objects ------------------------------------------------------------------------------------

$(BUILD)/obj/%.pb-c.o: $(BUILD)/gen/%.pb-c.c
	$(call say,CC)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 $(OPT) -fPIC -fvisibility=hidden $(SAN) -I$(BUILD)/gen \
		$(PKG_CFLAGS) -c $< -o $@

$(BUILD)/obj/%.o: %.c | $(PB_H) $(SKEL_H)
	$(call say,CC)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(PKG_CFLAGS) -MMD -MP -c $< -o $@

# Without const: what the loader sets before a program is verified, a test sets.  Programs load what is not aligned, as
# x86 does.
$(BUILD)/obj/tests/shim/bpf/programs/%.o: CPPFLAGS_ALL += -Itests/shim/bpf -D__bpf__ -Dconst=
$(BUILD)/obj/tests/shim/bpf/programs/%.o: CFLAGS_ALL += -Wno-unknown-pragmas -Wno-missing-prototypes \
	-Wno-conversion -Wno-unused-parameter -Wno-sign-compare -Wno-shadow $(if $(SANITIZE),-fno-sanitize=alignment)

# Where the helper for core dumps lies.  The file changes with it.
NEURON_DUMP ?= /opt/aws/neuron/bin/neuron-dump
$(BUILD)/gen/neuron-dump: FORCE
	$(Q)mkdir -p $(@D) && echo '$(NEURON_DUMP)' | cmp -s - $@ || echo '$(NEURON_DUMP)' >$@
$(BUILD)/obj/runtime/lifecycle/core_dump.o: $(BUILD)/gen/neuron-dump
$(BUILD)/obj/runtime/lifecycle/core_dump.o: CPPFLAGS_ALL += -DNEURON_DUMP_PATH='"$(NEURON_DUMP)"'

$(BUILD)/obj/tests/shim/shim.o: tests/shim/shim.cpp tests/shim/shim.h tests/shim/watchdog.h tests/shim/workers.h
	$(call say,CXX)
	$(Q)mkdir -p $(@D) && $(CXX) -std=c++14 -O0 -g -Wall -Wextra $(if $(CI),-Werror) $(SAN) -I. -c $< -o $@

-include $(patsubst %.c,$(BUILD)/obj/%.d,$(ALL_C))

# ---- programs -----------------------------------------------------------------------------------

$(LIBNRT): $(call obj,$(NRT_SRC)) $(CORE_O) runtime/libnrt.map
	$(call say,LD)
	$(Q)mkdir -p $(@D) && $(CC) -shared -Wl,-soname,libnrt.so.1 -Wl,-z,defs,-z,nodelete \
		-Wl,--version-script=runtime/libnrt.map -o $@ $(filter %.o,$^) $(LDFLAGS_ALL) \
		$(call pkg_libs,libprotobuf-c libzstd libxxhash jansson)

# The library once more, for tests, and what the unit tests link: the helper for core dumps is where the program's
# working directory is.
DUMP_O := $(BUILD)/obj/runtime/lifecycle/core_dump.o
$(BUILD)/obj/tests/core_dump.o: runtime/lifecycle/core_dump.c $(DUMP_O)
	$(call say,CC)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS_ALL) -DNEURON_DUMP_PATH='"./neuron-dump"' $(CFLAGS_ALL) $(PKG_CFLAGS) -c $< -o $@

$(LIBDUMP): $(LIBNRT) $(BUILD)/obj/tests/core_dump.o
	$(call say,LD)
	$(Q)mkdir -p $(@D) && $(CC) -shared -Wl,-soname,libnrt.so.1 -Wl,-z,defs,-z,nodelete \
		-Wl,--version-script=runtime/libnrt.map -o $@ $(BUILD)/obj/tests/core_dump.o \
		$(filter-out $(DUMP_O),$(call obj,$(NRT_SRC)) $(CORE_O)) $(LDFLAGS_ALL) \
		$(call pkg_libs,libprotobuf-c libzstd libxxhash jansson)

$(FAKE_DUMP): tests/shim/fake_dump.c
	$(call say,CC)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE -o $@ $<

$(BUILD)/lib/libnrt.so: $(LIBNRT)
	$(Q)ln -sf libnrt.so.1 $@

$(NTRACE): $(call obj,$(AGENT_SRC)) $(CORE_O)
	$(call say,LD)
	$(Q)mkdir -p $(@D) && $(CC) -o $@ $^ $(LDFLAGS_ALL) \
		$(call pkg_libs,libbpf libelf libprotobuf-c libzstd libxxhash jansson)

$(VDEV): $(call obj,$(VDEV_SRC)) $(CORE_O)
	$(call say,LD)
	$(Q)mkdir -p $(@D) && $(CC) -o $@ $^ $(LDFLAGS_ALL) \
		$(call pkg_libs,fuse3 libprotobuf-c libzstd libxxhash jansson)

# Tests link everything but the two main.c; the public ABI is tested through the shared library.
$(UNIT): $(call obj,$(UNIT_SRC) $(MODEL_SRC) tests/shim/watchdog.c tests/shim/workers.c tests/btf/check.c $(BPFHOST_SRC)) $(BUILD)/obj/tests/shim/shim.o $(CORE_O) \
		$(BUILD)/obj/tests/core_dump.o $(filter-out $(MAINS_O) $(DUMP_O),$(call obj,$(NRT_SRC) $(VDEV_SRC) $(AGENT_SRC)))
	$(call say,LD)
	$(Q)mkdir -p $(@D) && $(CXX) -o $@ $^ $(LDFLAGS_ALL) \
		$(call pkg_libs,libbpf libelf fuse3 libprotobuf-c libzstd libxxhash jansson) -ldl

$(BUILD)/tests/vmlinux_check: $(call obj,tests/btf/main.c tests/btf/check.c) $(CORE_O)
	$(call say,LD)
	$(Q)mkdir -p $(@D) && $(CC) -o $@ $^ $(LDFLAGS_ALL) \
		$(call pkg_libs,libbpf libelf libprotobuf-c libzstd libxxhash jansson)

# One machine: its kernel, then its modules.  Those that are kept in the tree are looked at in `make test`.
BTF ?= /sys/kernel/btf/vmlinux $(wildcard /sys/kernel/btf/neuron)
vmlinux-check: $(BUILD)/tests/vmlinux_check
	$(Q)$(BUILD)/tests/vmlinux_check $(BTF)

# Which branches of the BPF programs the tests take that run them on the host.
BPFCOV_O := $(patsubst tests/shim/bpf/programs/%.c,$(BUILD)/bpfcov/%.o,$(wildcard tests/shim/bpf/programs/*.c))
$(BUILD)/bpfcov/%.o: tests/shim/bpf/programs/%.c $(wildcard bpf/*.[ch] vmlinux/*.h tests/shim/bpf/*.h tests/shim/bpf/bpf/*.h)
	$(call say,CC)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS_ALL) -Itests/shim/bpf -D__bpf__ -Dconst= -D__always_inline=inline \
		-std=gnu11 -O0 -g --coverage -w -fvisibility=hidden $(SAN) $(if $(SANITIZE),-fno-sanitize=alignment) -c $< -o $@

$(BUILD)/bpfcov/unit: $(call obj,$(wildcard tests/unit/bpf_*_test.c) tests/shim/watchdog.c tests/shim/workers.c tests/btf/check.c $(wildcard tests/shim/bpf/*.c)) \
		$(BPFCOV_O) $(BUILD)/obj/tests/shim/shim.o $(CORE_O) \
		$(filter-out $(MAINS_O),$(call obj,$(NRT_SRC) $(AGENT_SRC)))
	$(call say,LD)
	$(Q)mkdir -p $(@D) && $(CXX) --coverage -o $@ $^ $(LDFLAGS_ALL) \
		$(call pkg_libs,libbpf libelf libprotobuf-c libzstd libxxhash jansson)

coverage-bpf: $(BUILD)/bpfcov/unit
	$(Q)BUILD=$(BUILD) sh tests/shim/bpf/coverage.sh

# Preloaded below the sanitizers, so it has none itself.
$(FAULTS): tests/shim/faults.c
	$(call say,LD)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE -fPIC -fvisibility=hidden \
		-fno-builtin -shared -o $@ $< -ldl

$(MODEL): $(call obj,tests/model/main.c $(MODEL_SRC)) $(CORE_O)
	$(call say,LD)
	$(Q)mkdir -p $(@D) && $(CC) -o $@ $^ $(LDFLAGS_ALL) \
		$(call pkg_libs,libprotobuf-c libzstd libxxhash jansson)

# Fuzz targets need the parsers, and what prints what they parsed.
FUZZ_O := $(CORE_O) $(call obj,$(wildcard agent/output/*.c) $(wildcard runtime/exec/model_*.c))
FUZZ_LIBS = $(call pkg_libs,libprotobuf-c libzstd libxxhash jansson) -lm

$(BUILD)/tests/fuzz/frames $(BUILD)/tests/libfuzzer/frames: $(call obj,tests/fuzz/frames_input.c)
$(BUILD)/tests/libfuzzer/frames: $(call obj,tests/fuzz/frames_mutate.c)

# The cores of the virtual device, without its file system and its sockets.
$(BUILD)/tests/fuzz/vdev_program $(BUILD)/tests/libfuzzer/vdev_program: $(call obj,$(addprefix runtime/vdev/,\
	arithmetic.c core_faults.c core_marks.c device.c device_clock.c exec.c launch_run.c meeting.c \
	memory.c program.c rings.c rules.c schedule.c shapes.c))

$(BUILD)/tests/fuzz/path_template $(BUILD)/tests/libfuzzer/path_template: \
	$(call obj,runtime/lifecycle/path_template.c)

$(BUILD)/tests/fuzz/notification $(BUILD)/tests/libfuzzer/notification: \
	$(call obj,runtime/device/notify.c runtime/profile/profile_ring.c)

$(BUILD)/tests/fuzz/%: $(call obj,tests/fuzz/replay_main.c) $(BUILD)/obj/tests/fuzz/%_fuzz.o $(FUZZ_O)
	$(call say,LD)
	$(Q)mkdir -p $(@D) && $(CC) -o $@ $^ $(LDFLAGS_ALL) $(FUZZ_LIBS)

$(BUILD)/tests/libfuzzer/%: $(BUILD)/obj/tests/fuzz/%_fuzz.o $(FUZZ_O)
	$(call say,LD)
	$(Q)mkdir -p $(@D) && $(CC) -o $@ $^ $(LDFLAGS_ALL) -fsanitize=fuzzer $(FUZZ_LIBS)

$(BUILD)/tests/frames_seed: $(call obj,tests/fuzz/frames_seed.c) $(FUZZ_O)
	$(call say,LD)
	$(Q)mkdir -p $(@D) && $(CC) -o $@ $^ $(LDFLAGS_ALL) $(FUZZ_LIBS)

$(BUILD)/bench/%: $(BUILD)/obj/tests/bench/%.o $(CORE_O) \
		$(filter-out $(MAINS_O),$(call obj,$(NRT_SRC) $(AGENT_SRC)))
	$(call say,LD)
	$(Q)mkdir -p $(@D) && $(CC) -o $@ $^ $(LDFLAGS_ALL) \
		$(call pkg_libs,libbpf libelf libprotobuf-c libzstd libxxhash jansson)

$(BUILD)/workloads/%: $(BUILD)/obj/tests/workloads/%.o $(LIBNRT) $(BUILD)/lib/libnrt.so
	$(call say,LD)
	$(Q)mkdir -p $(@D) && $(CC) -o $@ $< $(LDFLAGS_ALL) -L$(BUILD)/lib -lnrt \
		-Wl,-rpath,'$$ORIGIN/../lib'

# For guests of QEMU: they have no libraries to find.
$(BUILD)/vm/programs/%: tests/vm/programs/%.c $(wildcard tests/vm/programs/*.h vmlinux/*.h vmlinux/*.def)
	$(call say,CC)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE -I. -static -pthread -o $@ $<

# The public headers, and the library, as C++ has them.
$(CXX_WORKS): $(BUILD)/workloads/%: tests/workloads/%.cpp $(wildcard runtime/include/nrt/*.h) \
		$(wildcard tests/workloads/*.hpp) $(LIBNRT) $(BUILD)/lib/libnrt.so
	$(call say,CXX)
	$(Q)mkdir -p $(@D) && $(CXX) -std=c++14 $(OPT) -Wall -Wextra $(if $(CI),-Werror) $(SAN) \
		-I. -Iruntime/include -o $@ $< $(LDFLAGS_ALL) -L$(BUILD)/lib -lnrt -Wl,-rpath,'$$ORIGIN/../lib' \
		$(call pkg_libs,jansson)
