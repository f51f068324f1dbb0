# The daily commands. `just` alone lists them.

_list:
    @just --list --unsorted

# what CI runs
test *arguments:
    scripts/test {{arguments}}

# format, lints and documentation, without running anything
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --document-private-items

# the crates' own tests
unit *arguments:
    cargo test --workspace {{arguments}}

# the tests from outside: just outside -k calc
outside *arguments:
    scripts/setup test
    cargo build --release --bin deskhand
    target/python/bin/python -m pytest tests {{arguments}}

demo:
    scripts/demo

bench *arguments:
    scripts/bench {{arguments}}

# the pages that are written from the definitions
docs:
    cargo run --quiet --bin deskhand -- tools --markdown > docs/tools.md

# the manual page
man:
    cargo run --quiet --bin deskhand -- man | man -l -
