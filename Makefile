# What a developer does with this repository. `make demo` and `make test` set up all they need.

comma   := ,
PYTHON  ?= python3
PROFILE ?= release
VENV    := .venv
DOCS    := .venv-docs
TARGET  := $(or $(CARGO_TARGET_DIR),target)
PY      := $(VENV)/bin/python
OUTDIR  := $(TARGET)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))
# Test files apart, in as many processes as there are cores: most of what they do is done by one. In their order: a file of few
# tests that are long would come last, when the other processes have nothing left to do.
PYTEST  := $(PY) -m pytest -q -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
PACKAGE := frontend-py/python/aerogel
VIZ     := gui/python/aerogel_viz

# Tests of numbers: what may differ between processors shows here. The pages take long, and run at the lowest level only.
NUMERICAL := $(addprefix tests/python/test_,arithmetic.py cpu.py answers.py decisions.py linalg.py large_matrices.py matrix.py types.py)

export PYO3_PYTHON := $(abspath $(PY))

.PHONY: help setup build viz rust-tests demo gallery docs test soak levels gpu-test gpu-bench gpu-machine aarch64 differential clients bench lint examples wheel release viz-wheel clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-13s %s\n", $$1, $$2 }'

setup: ## System packages, virtual environment
	@PYTHON="$(PYTHON)" VENV="$(VENV)" scripts/setup.sh

build: setup ## The package for development, usable from .venv
	@[ -d $(OUTDIR) ] || echo "building; the first time takes some minutes"
	cargo build --quiet --profile $(PROFILE) -p aerogel-py --features extension-module
	@cp $(OUTDIR)/lib_native.so $(PACKAGE)/_native.tmp && mv $(PACKAGE)/_native.tmp $(PACKAGE)/_native.abi3.so

viz: setup ## Windows and scenes for development, and what draws and shows them where there is no desktop
	@scripts/setup_viz.sh
	cargo build --quiet --profile windows -p aerogel-viz --features extension-module
	@cp $(TARGET)/windows/lib_viz.so $(VIZ)/_viz.tmp && mv $(VIZ)/_viz.tmp $(VIZ)/_viz.abi3.so
	@$(PY) -c 'import site; open(site.getsitepackages()[0] + "/aerogel-viz-dev.pth", "w").write("$(abspath gui/python)\n")'

demo: build ## Run a simulation and write its picture
	$(PY) examples/mpm.py --out out/mpm.png

gallery: build ## Every picture of docs/gallery, and its page
	$(PY) scripts/make_gallery.py

docs: $(DOCS)/bin/mkdocs ## The documentation site, in out/site
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict

$(DOCS)/bin/mkdocs: requirements-docs.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet -r requirements-docs.txt
	@touch $@

# The crate of windows has no tests in Rust that need no device: Python's try all of it.
rust-tests: setup ## Compile the tests in Rust
	cargo test --quiet --workspace --exclude aerogel-viz --no-run

test: build viz ## Every test, Rust and Python
	cargo test --quiet --workspace --exclude aerogel-viz
	@scripts/fetch_programs.sh $(PY)
	$(PYTEST) --doctest-modules $(PACKAGE) tests/python

soak: build ## The promises of docs/promises.md at full size, for hours; ARGS="--only R7 --minutes 5 --scale 0.1"
	$(PY) scripts/soak.py $(ARGS)

levels: build ## What computes with floats, once more at each lower level of x86-64 that this processor executes
	@pages=tests/python/test_pages.py; \
	for level in $$($(PY) scripts/levels.py); do \
		echo "at $$level"; \
		AEROGEL_CPU=$$level $(PYTEST) $(NUMERICAL) $$pages || exit 1; \
		pages=; \
	done

gpu-test: ## The Python tests on an NVIDIA GPU, from a wheel in dist/ or what is built here; AEROGEL_CUDA=machine stands in for one
	scripts/gpu_test.sh $(ARGS)

gpu-bench: ## Benchmarks on an NVIDIA GPU, beside Taichi and Warp, from a wheel in dist/ or what is built here
	scripts/gpu_bench.sh $(ARGS)

gpu-machine: build ## The same, and what takes long, or TESTS, on the machine that stands in for a GPU, and N generated programs; NVIDIA's assembler takes every kernel
	AEROGEL_LONG=$(if $(TESTS),,1) scripts/assemble.sh $(TESTS)
	AEROGEL_N_PROGRAMS=$(or $(N),2000) AEROGEL_FIRST_SEED=$(or $(SEED),0) cargo test --quiet --release -p aerogel-tests --test card

aarch64: setup ## Generated programs compiled for AArch64, in an emulator; says what is missing for it
	AEROGEL_N_PROGRAMS=$(or $(N),100) AEROGEL_FIRST_SEED=$(or $(SEED),0) scripts/aarch64.sh

differential: setup ## N generated programs, interpreted and compiled
	AEROGEL_N_PROGRAMS=$(or $(N),2000) AEROGEL_FIRST_SEED=$(or $(SEED),1000) \
		cargo test --quiet --release -p aerogel-tests --test differential

clients: build ## Published packages, in environments of their own, beside Taichi: the table of docs/compatibility.md
	$(PY) scripts/clients.py $(ARGS)

bench: build ## The benchmarks, against Taichi where it is installed
	scripts/bench.sh $(ARGS)

lint: setup ## What CI checks besides the tests
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	$(VENV)/bin/ruff check --quiet frontend-py/python gui/python tests/python tests/oracle examples scripts
	$(VENV)/bin/ruff format --quiet --check frontend-py/python gui/python tests/python tests/oracle examples scripts
	$(VENV)/bin/pyright --pythonpath $(PY)

examples: ## The examples as a part of the package, as a wheel has them
	@mkdir -p $(PACKAGE)/examples && rm -f $(PACKAGE)/examples/*.py && cp examples/*.py $(PACKAGE)/examples

viz-wheel: setup ## dist/aerogel_viz-*.whl: windows and scenes
	$(VENV)/bin/maturin build --release --strip --out dist --manifest-path gui/Cargo.toml --features extension-module --compatibility linux --auditwheel skip

wheel: setup examples ## dist/*.whl for glibc 2.28: abi3, LLVM inside, and with MACHINE=1 the simulator of GPUs; tried on every Python from 3.10 to 3.13 found
	$(VENV)/bin/maturin build --release --strip --out dist --no-default-features --features static,extension-module$(if $(MACHINE),$(comma)machine) --compatibility manylinux_2_28
	scripts/try_wheel.sh dist

release: ## dist/ as a package index takes it, for URL=the address of the repository: a new wheel, absolute links, hashes
	@[ -n "$(URL)" ] || { echo "the address of the repository is needed: make release URL=https://github.com/NAME/aerogel" >&2; exit 1; }
	rm -rf dist
	$(MAKE) wheel MACHINE=
	$(PY) scripts/release.py --url $(URL) dist/*.whl

clean: ## Remove what was built
	cargo clean
	rm -rf $(VENV) dist out $(PACKAGE)/_native.abi3.so $(VIZ)/_viz.abi3.so $(PACKAGE)/examples
