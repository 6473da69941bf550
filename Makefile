# The ways in. Every target works from a fresh Debian 12 machine as root: what is missing is installed first.
PYTHON ?= /usr/bin/python3
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
TIDEMARK = PYTHON="$(PYTHON)" ./tidemark
BUILD = build/release
export PYTHON

.PHONY: all setup build bench test gate compare install clean

all: build

# Packages that building, measuring and testing need; does nothing where all are there.
setup:
	@sh harness/setup/install

build: setup
	@cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=Release >$(BUILD).configure.log 2>&1 || { cat $(BUILD).configure.log; exit 2; }
	@cmake --build $(BUILD) -j $(JOBS)

$(shell mkdir -p build)

# The main job. QUICK=1: under two minutes of measuring on two cores.
bench: build
	@$(TIDEMARK) bench $(if $(QUICK),--quick)

# Every C++ and Python test; the last line is `N passed, N failed`.
test: build
	@$(PYTHON) tests/run.py

# The gated set against the pin: 0 pass, 1 regression, 2 could not measure.
gate: build
	@$(TIDEMARK) gate $(if $(QUICK),--quick) $(GATE_ARGUMENTS)

# make compare A=<rev> B=<rev>
compare: build
	@test -n "$(A)" && test -n "$(B)" || { echo "make compare needs two revisions: make compare A=<rev> B=<rev>" >&2; exit 2; }
	@$(TIDEMARK) compare $(if $(QUICK),--quick) "$(A)" "$(B)"

install: build
	@cmake --install $(BUILD) --prefix "$(PREFIX)"

clean:
	rm -rf build
