# Hive: `make run` starts one, `make demo` shows one, `make test` tests all of it.

CARGO ?= cargo
# Which hive `make run` starts, and which claude `make demo` uses (CLAUDE=claude for the real one).
CONFIG ?= examples/duo/hive.toml
CLAUDE ?= target/debug/scripted-claude

.DEFAULT_GOAL := help
.PHONY: help build run demo test bench gen docs fmt lint clean-hive

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build all programs (hived, hive, hive-mcp, hivectl and the scripted claude)
	$(CARGO) build --locked --workspace --bins

run: build ## Start the hive of examples/duo in ./.hive, in the foreground; Ctrl-C drains it
	target/debug/hivectl up --config $(CONFIG) --fallback-claude target/debug/scripted-claude

demo: build ## Send one message to an agent and print its journey; leaves nothing behind
	CLAUDE="$(CLAUDE)" examples/duo/demo.sh

test: ## Install what the tests need, lint, and run every test; names what it had to skip
	CARGO="$(CARGO)" tests/run.sh

bench: ## Measure against the floors of this machine and print ratios (takes minutes)
	$(CARGO) bench --locked --package hive-tests

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
