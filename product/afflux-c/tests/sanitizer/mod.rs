//! The sanitizer that the library was built with, if any (see `docs/develop/concurrency.md`), and its demands on
//! programs that use the library. Their C code is compiled for the same sanitizer, and uses the C compiler's runtime.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::Path;
use std::process::Command;

pub(crate) const NAME: Option<&str> = if cfg!(afflux_sanitizer = "address") {
    Some("address")
} else if cfg!(afflux_sanitizer = "thread") {
    Some("thread")
} else {
    None
};

/// `ThreadSanitizer` supports no new threads in a child of a process with threads.
pub(crate) const MAY_FORK: bool = !cfg!(afflux_sanitizer = "thread");

/// Flags for the C compiler.
pub(crate) fn flags() -> Vec<String> {
    let Some(name) = NAME else { return Vec::new() };
    let missing = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/tsan_memory.c");
    let missing = (name == "thread").then(|| missing.display().to_string());
    [format!("-fsanitize={name}")].into_iter().chain(missing).collect()
}

/// Arguments of `env` for a program that was built without the sanitizer: the test ignores that program's own leaks and
/// races.
pub(crate) fn around() -> Vec<String> {
    let Some(name) = NAME else { return Vec::new() };
    let (library, left_out) = match name {
        "address" => ("libasan.so", "ASAN_OPTIONS=detect_leaks=0".to_owned()),
        _ => ("libtsan.so", format!("TSAN_OPTIONS={}:ignore_noninstrumented_modules=1", suppressions())),
    };
    let told = Command::new("cc").arg(format!("-print-file-name={library}")).output().unwrap();
    let library = std::fs::canonicalize(String::from_utf8(told.stdout).unwrap().trim()).unwrap();
    vec![format!("LD_PRELOAD={}", library.display()), left_out]
}

/// Options of the sanitizer for a program that was built with it.
pub(crate) fn options() -> [(&'static str, String); 2] {
    [("ASAN_OPTIONS", "detect_leaks=1".to_owned()), ("TSAN_OPTIONS", suppressions())]
}

fn suppressions() -> String {
    format!("suppressions={}", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tsan.supp").display())
}

/// The defect that `planted.c` has, and the sanitizer's report of it.
pub(crate) fn planted() -> Option<(&'static str, &'static str)> {
    Some(if NAME? == "address" { ("freed", "heap-use-after-free") } else { ("raced", "data race") })
}
