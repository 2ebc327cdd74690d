//! How the shared library is linked.
//!
//! Owns: the name that programs look for it by, which changes when what is there changes its meaning; that it stays once it
//! was loaded, since threads and a thread's last words may need it to the end.
//! Does not own: where the library is installed.
//! Invariants: it is the one that the recipe for installing makes a link of.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libafflux.so.0");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
