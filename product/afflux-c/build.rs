//! Links the shared library.
//!
//! Owns: the name by which programs find the library, which changes when its interface changes its meaning; the rule
//! that it is never unloaded. Threads and their destructors may need it until the end.
//! Does not own: where the library is installed.
//! Invariants: the install script makes a link with this name.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libafflux.so.0");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
