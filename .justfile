# Recipes for people; CI runs `tests/run`, which `check` is.

# Lists the recipes.
default:
    @just --list

# Everything that must hold before a change is taken.
check:
    tests/run

# Formats.
fmt:
    cargo fmt --all

# Formatting, clippy, rustdoc.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps

# Tests; takes arguments of `cargo test`.
test *arguments='--workspace':
    cargo test {{ arguments }}

# The benchmark.
bench *arguments:
    cargo run --release -p tests --bin bench -- {{ arguments }}

# Runs the service; takes arguments of `sluice serve`.
run *arguments:
    cargo run -- serve {{ arguments }}

# Prints the description of the interface.
openapi:
    @cargo run --quiet -- openapi

# Removes the local data.
fresh:
    rm -rf data
