# Every target is one script or one swift call, so that CI and people run the same.
.DEFAULT_GOAL := help
.PHONY: help demo test test-postgres test-image test-compose faults hostile sanitize kill-sweep kill-storm scale-storm cluster fuzz soak bench lint build docs up down clean

SECONDS := 60

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Play a room through on a broker of its own, and check what happened
	@scripts/install-deps
	swift build -c release --product overtime
	@scripts/demo

test: ## Run every test against a real broker of its own
	@scripts/install-deps
	@scripts/test

test-postgres: ## Run the tests of processes, long ones too, with their rooms on a PostgreSQL of their own
	@scripts/install-deps
	@OVERTIME_TEST_STORE=postgresql scripts/test

test-image: ## Run the tests against the RabbitMQ of a container image (BROKER_IMAGE=docker.io/library/rabbitmq:4-management)
	@scripts/install-deps
	@OVERTIME_BROKER=scripts/broker-container scripts/test

test-compose: ## Play docker/compose.yaml through, crashes included; skipped where no container engine is
	@scripts/test-compose

faults: ## Run the tests of faults, crashes and hostile input: some take long
	@scripts/install-deps
	@scripts/faults all

hostile: ## Send mutated commands through a running worker (MESSAGES=1000000 SEED=n)
	@scripts/install-deps
	@MESSAGES=$(MESSAGES) SEED=$(SEED) scripts/faults hostile

sanitize: ## Run the unit tests under the thread and the address sanitizer
	@scripts/install-deps
	@scripts/sanitize

kill-sweep: ## Kill worker and scheduler at every step, one at a time (EVERY=k for each k-th)
	@scripts/install-deps
	@EVERY=$(EVERY) FIRST=$(FIRST) scripts/faults kill-sweep

kill-storm: ## Kill worker, scheduler and broker at random under load (COMMANDS=200000 KILLS=200 SEED=n)
	@scripts/install-deps
	@COMMANDS=$(COMMANDS) KILLS=$(KILLS) SEED=$(SEED) scripts/faults kill-storm

cluster: ## Kill each node of a cluster of three, and all leaders, under load (COMMANDS=10000 SEED=n)
	@scripts/install-deps
	@COMMANDS=$(COMMANDS) SEED=$(SEED) scripts/faults cluster

scale-storm: ## Many workers on one PostgreSQL under faults (COMMANDS=100000 FAULTS=60 WORKERS=4 SHARDS=16 SCHEDULERS=3 SEED=n)
	@scripts/install-deps
	@COMMANDS=$(COMMANDS) FAULTS=$(FAULTS) WORKERS=$(WORKERS) SHARDS=$(SHARDS) SCHEDULERS=$(SCHEDULERS) \
		SEED=$(SEED) scripts/faults scale-storm

fuzz: ## Feed decoders and channel machine with hostile bytes, SECONDS=60 for each target
	@scripts/install-deps
	@scripts/fuzz $(SECONDS)

soak: ## Run SEEDS=n simulations [FIRST=seed], or one with its last steps: SEED=n
	@scripts/install-deps
	@scripts/soak $(if $(SEED),replay $(SEED),$(or $(SEEDS),1000) $(or $(FIRST),1))

bench: ## Measure against the broker's floor and against rivals (ONLY=throughput,… ROUNDS=7 QUICK=1 PLOTS=1)
	@scripts/install-deps
	swift build -c release --product overtime
	@Benchmarks/bench.py $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(QUICK),--quick) \
		$(if $(PLOTS),--plots)

lint: ## Check formatting and scripts
	@scripts/lint

build: ## Build overtime for release
	@scripts/install-deps
	swift build -c release --product overtime

docs: ## Build the library's documentation into .build/docs
	@scripts/install-deps
	@scripts/docs

up: ## Start broker, worker and scheduler in the background
	@scripts/install-deps
	swift build -c release --product overtime
	@scripts/up

down: ## End what `make up` started, and remove its files
	@scripts/down

clean: ## Remove everything that was built
	@if [ -d .run ]; then scripts/down; fi
	rm -rf .build
