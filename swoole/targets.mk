# Measurements of programs; included by the Makefile.

.PHONY: swoole swoole-tcp

swoole-tcp: setup build ## 10,000 connections to a Swoole program whose workers are killed every 100 ms.
	OUTBOARD_BIN=$(CURDIR)/target/release/outboard \
		$(CARGO) test -p outboard-swoole-tests --test swoole_tcp -- --ignored --nocapture

swoole: setup build ## What coroutines, channels and tables cost, as tables; a table under killed writers for 10 s.
	OUTBOARD_BIN=$(CURDIR)/target/release/outboard \
		$(CARGO) test -p outboard-swoole-tests --test swoole_costs -- --ignored --nocapture --test-threads 1 2>&1 | \
		grep -oE '\| .*|\|-.*|thread .*panicked.*|^error.*|^test result.*'
