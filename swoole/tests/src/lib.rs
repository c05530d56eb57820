//! The end-to-end tests of programs for Swoole, by the harness of `outboard-e2e`: see `tests/`.

#![forbid(unsafe_code)]
