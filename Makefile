# Hive: `make run` starts one, `make demo` shows one, `make test` tests all of it.

CARGO ?= cargo
# The hive of `make run`, and the claude of `make demo` (CLAUDE=claude is the real one).
CONFIG ?= examples/duo/hive.toml
CLAUDE ?= target/debug/scripted-claude
# Where `make install` puts the programs.
PREFIX ?= /usr/local
# The packages of the shipped programs.
PROGRAMS := $(addprefix --package ,hive-broker hive-harness hive-mcp-bridge hivectl)

.DEFAULT_GOAL := help
.PHONY: function-order check-kits kits conformance check-release check-units deb disks install torture fuzz leaves sim instructions help build dist run demo test bench soak gen docs fmt lint clean-hive

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build all programs (hived, hive, hive-mcp, hivectl and the scripted claude)
	$(CARGO) build --locked $(PROGRAMS) --package hive-scripted --bins

run: build ## Start the hive of examples/duo in ./.hive, in the foreground; Ctrl-C drains it
	target/debug/hivectl up --config $(CONFIG) --fallback-claude target/debug/scripted-claude

dist: ## Build the shipped files into target/shipped: the programs without symbols, and their symbols in PROGRAM.debug
	CARGO="$(CARGO)" packaging/dist.sh $(PROGRAMS)

install: dist ## Install the programs, manuals, completions and units: PREFIX=/usr/local, below DESTDIR
	PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" packaging/install.sh target/shipped

deb: dist ## Make a Debian package of them in target/packages; needs cargo-deb, and DEBFULLNAME and DEBEMAIL name the maintainer
	packaging/deb.sh target/shipped target/packages

demo: build ## Send one message to an agent and print its journey; leaves nothing behind
	CLAUDE="$(CLAUDE)" examples/duo/demo.sh

test: ## Install what the tests need, lint, and run every test; lists skipped tests
	CARGO="$(CARGO)" tests/run.sh

bench: ## Measure beside rivals on this machine and print ratios (takes tens of minutes); WORKLOADS="w1 w2" runs only these, JSON=FILE writes all figures
	$(CARGO) bench --locked --package hive-tests --bench main -- $(WORKLOADS) $(if $(JSON),--json $(abspath $(JSON)))

function-order: ## Record which functions hived and hive-mcp run, and write their order in a release, functions.ld; needs qemu-user
	CARGO="$(CARGO)" tests/function-order.sh

fuzz: ## Search for inputs that break an invariant: MINUTES=n in all (5), continued from the last run
	CARGO="$(CARGO)" tests/fuzz/run.sh $(or $(MINUTES),5)

torture: ## Kill the programs of a hive KILLS=n times (200), and check the delivery contract against all recorded calls
	CARGO="$(CARGO)" PROFILE=campaign tests/build-faults.sh
	$(CARGO) run --locked --profile campaign --package hive-campaigns --bin torture -- --kills $(or $(KILLS),200)

disks: ## Run the broker on a failing disk RUNS=n times (1000): faults, full disks, lost syncs, power cuts; runs add up in target/campaigns
	$(CARGO) build --locked --profile campaign --package hive-broker --bins
	$(CARGO) run --locked --quiet --profile campaign --package hive-campaigns --bin disks -- --runs $(or $(RUNS),1000)

soak: ## Keep a hive of 200 agents busy for MINUTES=10, and check that memory, files and times stay flat; runs add up in target/campaigns
	$(CARGO) build --locked --bins
	HIVE_TEST_BIN_DIR=target/debug target/debug/soak --minutes $(or $(MINUTES),10)

leaves: ## Send mail to agents on demand TRIES=1000 times as their harnesses leave, and check that none waits; runs add up in target/campaigns
	$(CARGO) build --locked --bins
	HIVE_TEST_BIN_DIR=target/debug target/debug/leaves --tries $(or $(TRIES),1000)

sim: ## Simulate SEEDS hives (default 1000) after the last one of the ledger; a seed with a violation is shrunk and printed
	$(CARGO) run --locked --profile campaign --package hive-sim -- --seeds $(or $(SEEDS),1000)

instructions: ## Count the instructions of a message under callgrind and compare them with the stored numbers; HIVE_REGENERATE=1 stores new ones
	$(CARGO) test --locked --profile campaign --package hive-sim --test instructions -- --nocapture

gen: ## Generate the Rust code of the contract from proto/hive/v1
	HIVE_REGENERATE=1 $(CARGO) test --locked --package hive-tests --test generated

kits: ## Generate the code of the client kits in Python, TypeScript and Go from proto/hive/v1 (`make gen` has that in Rust)
	for kit in python typescript go; do clients/$$kit/generate.sh || exit 1; done

check-kits: ## Check the client kits: generated code, tests, packages, conformance, kills, examples
	CARGO="$(CARGO)" clients/check.sh

conformance: ## Run the conformance suite on the wire and through every kit; ARGS="rust --only send" as of its program
	CARGO="$(CARGO)" tests/conformance/run.sh $(or $(ARGS),--table docs/conformance.md)

docs: ## Generate the man pages, the command reference and the JSON schemas from the programs
	HIVE_REGENERATE=1 $(CARGO) test --locked --package hive-tests --test docs

check-units: ## Check the units of systemd: no fault, few rights, and what they do under a real systemd in a container (as root)
	$(CARGO) build --locked --bins
	HIVE_TEST_BIN_DIR=target/debug $(CARGO) test --locked --package hive-tests --test services

check-release: ## Make all files of a release, not optimized, twice, and try the programs of each archive; those of aarch64 under qemu
	CARGO="$(CARGO)" packaging/check-release.sh

fmt: ## Format the Rust sources
	$(CARGO) fmt --all

lint: ## rustfmt, clippy, buf lint and breaking, Nix syntax and shellcheck, as far as the tools are installed
	CARGO="$(CARGO)" tests/lint.sh

clean-hive: ## Delete the hive of `make run`: its database, mail and agents' directories (asks first)
	@printf 'This deletes ./.hive with all its mail. Type yes to go on: '; read -r answer; [ "$$answer" = yes ]
	rm -rf .hive
