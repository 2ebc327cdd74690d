//! The sanitizer that the library was built with, if any (`docs/concurrency.md` says how), and what programs that use the
//! library need then. Their code in C is compiled for the same one, and they have the C compiler's runtime.
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

/// `ThreadSanitizer` bears no new threads in a child of a process that has threads.
pub(crate) const MAY_FORK: bool = !cfg!(afflux_sanitizer = "thread");

/// What the compiler of C is given.
pub(crate) fn flags() -> Vec<String> {
    let Some(name) = NAME else { return Vec::new() };
    let missing = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/tsan_memory.c");
    let missing = (name == "thread").then(|| missing.display().to_string());
    [format!("-fsanitize={name}")].into_iter().chain(missing).collect()
}

/// What `env` is given before a program that was built without: its own leaks and races are none of ours.
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

/// What is looked for in a program that was built with it.
pub(crate) fn options() -> [(&'static str, String); 2] {
    [("ASAN_OPTIONS", "detect_leaks=1".to_owned()), ("TSAN_OPTIONS", suppressions())]
}

fn suppressions() -> String {
    format!("suppressions={}", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tsan.supp").display())
}

/// What `planted.c` is to do wrong, and what is said of it.
pub(crate) fn planted() -> Option<(&'static str, &'static str)> {
    Some(if NAME? == "address" { ("freed", "heap-use-after-free") } else { ("raced", "data race") })
}
