# Hive: `make run` starts one, `make demo` shows one, `make test` tests all of it.

CARGO ?= cargo
# Which hive `make run` starts, and which claude `make demo` uses (CLAUDE=claude for the real one).
CONFIG ?= examples/duo/hive.toml
CLAUDE ?= target/debug/scripted-claude
# The packages of the shipped programs.
PROGRAMS := $(addprefix --package ,hive-broker hive-harness hive-mcp-bridge hivectl)

.DEFAULT_GOAL := help
.PHONY: disks torture fuzz sim help build dist run demo test bench soak gen docs fmt lint clean-hive

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build all programs (hived, hive, hive-mcp, hivectl and the scripted claude)
	$(CARGO) build --locked $(PROGRAMS) --package hive-scripted --bins

run: build ## Start the hive of examples/duo in ./.hive, in the foreground; Ctrl-C drains it
	target/debug/hivectl up --config $(CONFIG) --fallback-claude target/debug/scripted-claude

dist: ## Build what is shipped into target/shipped: the programs without symbols, and each one's symbols in PROGRAM.debug
	CARGO="$(CARGO)" tests/dist.sh $(PROGRAMS)

demo: build ## Send one message to an agent and print its journey; leaves nothing behind
	CLAUDE="$(CLAUDE)" examples/duo/demo.sh

test: ## Install what the tests need, lint, and run every test; names what it had to skip
	CARGO="$(CARGO)" tests/run.sh

bench: ## Measure against the floors of this machine and print ratios (takes minutes)
	$(CARGO) bench --locked --package hive-tests

fuzz: ## Look for inputs that break what has to hold for any bytes: MINUTES=n in all (5), on from where the last run stopped
	CARGO="$(CARGO)" tests/fuzz/run.sh $(or $(MINUTES),5)

torture: ## Kill the programs of a hive KILLS=n times (200), and hold the delivery contract against what everybody saw
	CARGO="$(CARGO)" PROFILE=campaign tests/build-faults.sh
	$(CARGO) run --locked --profile campaign --package hive-campaigns --bin torture -- --kills $(or $(KILLS),200)

disks: ## Let the files fail under the broker RUNS=n times (1000): faults, full disks, lost syncs, power cuts; runs add up in target/campaigns
	$(CARGO) build --locked --profile campaign --package hive-broker --bins
	$(CARGO) run --locked --quiet --profile campaign --package hive-campaigns --bin disks -- --runs $(or $(RUNS),1000)

soak: ## Keep a hive of 200 agents busy for MINUTES=10, and see that it stays as it was; runs add up in target/campaigns
	$(CARGO) build --locked --bins
	HIVE_TEST_BIN_DIR=target/debug target/debug/soak --minutes $(or $(MINUTES),10)

sim: ## Simulate SEEDS hives (default 1000) behind the last of the ledger; a seed that breaks a promise is shrunk and printed
	$(CARGO) run --locked --profile campaign --package hive-sim -- --seeds $(or $(SEEDS),1000)

gen: ## Generate the Rust of the contract anew from proto/hive/v1
	HIVE_REGENERATE=1 $(CARGO) test --locked --package hive-tests --test generated

docs: ## Generate the man pages, the command reference and the JSON schemas anew from the programs
	HIVE_REGENERATE=1 $(CARGO) test --locked --package hive-tests --test docs

fmt: ## Format the Rust sources
	$(CARGO) fmt --all

lint: ## rustfmt, clippy, buf lint, Nix syntax and shellcheck, as far as the tools are there
	CARGO="$(CARGO)" tests/lint.sh

clean-hive: ## Forget the hive of `make run`: its database, mail and agents' directories (asks first)
	@printf 'This deletes ./.hive with all its mail. Type yes to go on: '; read -r answer; [ "$$answer" = yes ]
	rm -rf .hive
