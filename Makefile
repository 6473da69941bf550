# The ways in. Every target works from a fresh Debian 12 machine as root: what is missing is installed first.
# Exit codes of bench, test, gate and compare: 0 fine, 1 a failed test or judged regression, 2 could not be done.
PYTHON ?= /usr/bin/python3
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
TIDEMARK = PYTHON="$(PYTHON)" ./tidemark
BUILD = build/release
QUICK_FLAG = $(if $(QUICK),--quick)
export PYTHON
MAKEFLAGS += --no-print-directory

.PHONY: all setup build bench test gate compare install clean

all: build

# Packages that building, measuring and testing need; does nothing where all are there.
setup:
	@sh harness/setup/install

build: setup
	@mkdir -p build
	@cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=Release >build/configure.log 2>&1 || { cat build/configure.log; exit 2; }
	@cmake --build $(BUILD) -j $(JOBS)

# ---- targets whose exit code says more than "failed" ----
# make would report 2 for all of them: $(exit-with CODE) comes from a plugin, and where that cannot be loaded the
# last line still fails. `.run-x` leaves the code in build/exit/x.
JUDGED = bench test gate compare
ifneq ($(filter $(JUDGED),$(MAKECMDGOALS)),)
-load build/make_exit.so
endif
build/make_exit.so: harness/setup/make_exit.c | setup
	@mkdir -p build && cc -O1 -shared -fPIC -o $@ $<

.PHONY: $(addprefix .run-,$(JUDGED))
$(JUDGED): %: .run-%
	@$(exit-with $(file <build/exit/$@))true
	@exit "$$(cat build/exit/$@)"

# The main job. QUICK=1: under two minutes of measuring on two cores.
.run-bench: build
	@$(TIDEMARK) bench $(QUICK_FLAG) $(BENCH_ARGUMENTS)$(call record,$@)

# Every C++ and Python test; the last line is `N passed, N failed`.
.run-test: build
	@$(PYTHON) tests/run.py $(TEST_ARGUMENTS)$(call record,$@)

# The gated set against the pin.
.run-gate: build
	@$(TIDEMARK) gate $(QUICK_FLAG) $(GATE_ARGUMENTS)$(call record,$@)

# make compare A=<rev> B=<rev>
.run-compare: build
	@test -n "$(A)" && test -n "$(B)" || { echo "make compare needs two revisions: make compare A=<rev> B=<rev>" >&2; exit 2; }
	@$(TIDEMARK) compare $(QUICK_FLAG) $(COMPARE_ARGUMENTS) "$(A)" "$(B)"$(call record,$@)

record = ; code=$$?; mkdir -p build/exit; echo $$code >build/exit/$(1:.run-%=%)

install: build
	@cmake --install $(BUILD) --prefix "$(PREFIX)"

clean:
	rm -rf build
