mkdir -p "$1/src"
cd "$1"
# A workspace of its own: the mount may be below this one.
printf '[workspace]\n[package]\nname = "small"\nedition = "2024"\n' > Cargo.toml
echo 'fn main() { println!("ran") }' > src/main.rs
export CARGO_TARGET_DIR="$1/target"
cargo build -q --offline
[ "$(target/debug/small)" = ran ]
touch src/main.rs
cargo build -q --offline --release
[ "$(target/release/small)" = ran ]
