# The two commands of the README are `make demo` and `make test`; everything else is in `make help`.
# Nothing here needs root, and nothing is written outside of this tree but by `make install`.

CARGO ?= cargo
PREFIX ?= /usr/local
DESTDIR ?=
TOOLS := nt-extract nt-probec nt-inject nt-run nt-map
# The pinned assembler and compilers of `make deps` come first.
export PATH := $(CURDIR)/.tools/bin:$(PATH)

.DEFAULT_GOAL := help

.PHONY: help
help: ## What can be made
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | sort | awk -F'\t' '{ printf "  make %-14s %s\n", $$1, $$2 }'

.PHONY: deps
deps: ## Pinned external tools (nvcc, ptxas, cuobjdump, nvdisasm) into .tools/
	@deps/install.sh

.PHONY: build
build: ## All programs, optimised, into target/release/
	$(CARGO) build --release --workspace

.PHONY: demo
demo: deps build ## The main job, start to end, with its result
	@bench/demo.sh

# Formatting, lints and documentation first, then every test; the last lines are the test runner's own summary.
.PHONY: test
test: deps lint ## Everything that needs no GPU
	$(CARGO) build --workspace --bins --lib
	$(CARGO) test --quiet --workspace --doc
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		$(CARGO) nextest run --workspace; \
	else \
		$(CARGO) test --workspace --lib --bins --tests; \
	fi

.PHONY: lint
lint: ## Formatting, clippy, rustdoc; warnings are errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" $(CARGO) doc --workspace --no-deps --document-private-items --quiet

.PHONY: bless
bless: deps ## Take what the file tests print as right; review the diff
	$(CARGO) build --workspace --bins --lib
	BLESS=1 $(CARGO) test --workspace --tests

.PHONY: fuzz-differ
fuzz-differ: ## Kernels and probes by chance on the software GPU, for FUZZ_SECONDS (600), from seed FUZZ_SEED (the time)
	FUZZ_SECONDS=$${FUZZ_SECONDS:-600} FUZZ_SEED=$${FUZZ_SEED:-$$(date +%s)00000} \
		$(CARGO) test --release -p nt-differ --test fuzz -- --nocapture

.PHONY: bench
bench: deps ## Speed of reading, weaving and verifying
	$(CARGO) bench --workspace --benches

.PHONY: bench-extract
bench-extract: deps ## nt-extract against cuobjdump, on public wheels that it fetches
	$(CARGO) build --release --quiet -p nt-extract
	@bench/extract.sh

# What reads PTX, over the corpora and the test files of accepted constructs.
PTX = $(shell find testdata/ptx lang/nt-ptx/tests/accepted -name '*.ptx' | LC_ALL=C sort)
EXAMPLE := $(CARGO) run --release --quiet -p nt-ptx --example

.PHONY: judges
judges: deps ## Four versions of ptxas: none sees an edit that changes nothing, all agree with what the tables say
	@deps/folders.sh deps/judges.txt
	@$(EXAMPLE) judge -- --ptxas .tools/bin/ptxas \
		$$(printf -- '--ptxas %s ' .tools/ptxas-*/nvidia/*/bin/ptxas) $(PTX)
	@for ptxas in .tools/bin/ptxas .tools/ptxas-*/nvidia/*/bin/ptxas; do \
		PATH=$(CURDIR)/$$(dirname $$ptxas):$$PATH $(CARGO) test -q -p nt-ptx --test needs --test files -- --nocapture \
			>.tools/judges.log 2>&1 || { cat .tools/judges.log; exit 1; }; \
		grep -ho 'ptxas [0-9.]*[;:].*\|[0-9]* of [0-9]* statements.*' .tools/judges.log; \
	done

# Answers are kept in .tools/judged by what they depend on, so that only what changed is assembled again.
.PHONY: judges-woven
judges-woven: deps ## What four versions of ptxas say of the corpora with every probe in them: notices, registers, spills
	@deps/folders.sh deps/judges.txt
	@$(CARGO) run --release --quiet -p nt-differ --example woven -- --cache .tools/judged --jobs 2 \
		--ptxas .tools/bin/ptxas $$(printf -- '--ptxas %s ' .tools/ptxas-*/nvidia/*/bin/ptxas) \
		$$(printf -- '--probe %s ' tests/gpu/every.nt testdata/probes/*.nt) $(filter testdata/ptx/%,$(PTX))

.PHONY: opcodes
opcodes: ## Opcodes of the corpora that have no entry in the table: there is none
	@$(EXAMPLE) opcodes -- --missing $(PTX)

# A nightly compiler and cargo-fuzz, which it installs into .tools/; `cargo test -p nt-fuzz` runs the kept inputs on any.
TARGET ?= ptx
TIME ?= 60
.PHONY: fuzz
fuzz: ## libFuzzer on a law, for a while: TARGET=ptx|weave|verify|probe|ir|object|wire TIME=60
	tools/nt-fuzz/fuzz.sh $(TARGET) $(TIME)

.PHONY: wheels
wheels: deps ## The reader, its laws and ptxas over the PTX of public wheels, which it fetches (120 MB)
	$(CARGO) build --release --quiet -p nt-extract
	@deps/ptx.sh
	@find .tools/wheels-ptx -name '*.ptx' | LC_ALL=C sort | xargs $(EXAMPLE) judge -- --ptxas .tools/bin/ptxas --below 30000

.PHONY: abi
abi: deps ## The driver's functions as its headers have them, for the hook, from four releases that it fetches (10 MB)
	@deps/folders.sh deps/headers.txt
	deps/abi.py .tools/cuda-* >tools/nt-hook/abi.tsv

.PHONY: gpu
gpu: deps build ## On a machine with an NVIDIA GPU: known answers and costs
	tests/gpu/run.sh

.PHONY: recorded
recorded: deps build ## Without one: memory traces against kernels that note their own accesses, on the software GPU
	@deps/folders.sh deps/recorded.txt
	@mkdir -p target/gpu
	PATH="$(CURDIR)/target/release:$$PATH" PYTHONPATH="$(CURDIR)/.tools/numpy" SOFTWARE=1 python3 tests/gpu/memory_trace.py

.PHONY: corpora
corpora: deps ## The committed PTX of testdata/ptx anew, through a dozen compilers that it fetches (4.5 GB)
	@deps/folders.sh deps/corpora.txt
	testdata/ptx/generate.sh

# Where `install` takes the programs from; `dist` has its own.
BUILT = target/release

.PHONY: install
install: build install-built ## Programs, hook, software GPU, man pages and completions under $(DESTDIR)$(PREFIX)

.PHONY: install-built
install-built:
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/nt/vgpu $(DESTDIR)$(PREFIX)/share/man/man1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d $(DESTDIR)$(PREFIX)/share/doc/nt
	install -m 755 $(TOOLS:%=$(BUILT)/%) $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(BUILT)/libnt_hook.so $(DESTDIR)$(PREFIX)/lib/nt
	install -m 755 $(BUILT)/libnt_vgpu_cuda.so $(DESTDIR)$(PREFIX)/lib/nt/vgpu/libcuda.so.1
	install -m 644 README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE $(DESTDIR)$(PREFIX)/share/doc/nt
	for tool in $(TOOLS); do \
		$(BUILT)/$$tool --generate man >$(DESTDIR)$(PREFIX)/share/man/man1/$$tool.1 && \
		$(BUILT)/$$tool --generate bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$tool && \
		$(BUILT)/$$tool --generate zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$tool && \
		$(BUILT)/$$tool --generate fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$tool.fish || exit 1; \
	done

# What an older machine can run as well: linked against glibc 2.17 (2012), which is what Rust's own library asks for.
DIST := nt-$(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)-linux-x86_64

.PHONY: dist
dist: deps ## A tarball that runs on Linux with glibc 2.17 or newer, dist/NAME.tar.gz
	@deps/folders.sh deps/dist.txt
	PATH="$(CURDIR)/.tools/zig/bin:$$PATH" CARGO_ZIGBUILD_ZIG_PATH="$(CURDIR)/.tools/zig/ziglang/zig" CARGO_PROFILE_RELEASE_DEBUG=none \
		CARGO_PROFILE_RELEASE_STRIP=debuginfo CARGO_TARGET_DIR="$(CURDIR)/target" \
		$(CARGO) zigbuild --release --target x86_64-unknown-linux-gnu.2.17 $(TOOLS:%=-p %) -p nt-hook -p nt-vgpu-cuda
	rm -rf dist/$(DIST)
	$(MAKE) --no-print-directory install-built BUILT=target/x86_64-unknown-linux-gnu/release PREFIX=/$(DIST) DESTDIR=dist
	@deps/glibc.sh 2.17 dist/$(DIST)/bin/* dist/$(DIST)/lib/nt/*.so dist/$(DIST)/lib/nt/vgpu/*
	tar -C dist -czf dist/$(DIST).tar.gz $(DIST)
	@ls -l dist/$(DIST).tar.gz

.PHONY: clean
clean: ## Build results; `rm -r .tools` for the external tools
	$(CARGO) clean
