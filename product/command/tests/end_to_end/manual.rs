//! `afflux completions` and `afflux man`.

use std::fs;
use std::process::Command;

use crate::scratch::Scratch;
use crate::server::{run, text};

#[test]
fn completions_and_manual_pages_are_about_every_command() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&run(scratch.path(), &["completions", shell]));
        assert!(["serve", "man", "async-metadata"].iter().all(|part| script.contains(part)), "{shell}: {script}");
        assert!(script.contains("dirty_expire_centisecs"), "{shell} offers no knobs: {script}");
        assert!(script.matches("/sys/class/block").count() >= 3, "{shell} offers no devices: {script}");
        let path = scratch.path().join(shell);
        fs::write(&path, script).unwrap();
        if shell == "bash" {
            assert!(Command::new("bash").arg("-n").arg(&path).status().unwrap().success());
        }
    }
    let output = run(scratch.path(), &["completions", "cmd"]);
    assert!(output.status.code() == Some(2) && text(&output).contains("fish"), "{}", text(&output));
    let pages = scratch.path().join("share/man1");
    let output = run(scratch.path(), &["man", pages.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output));
    for (page, part) in [
        ("afflux.1", "afflux\\-serve(1)"),
        ("afflux-serve.1", "async\\-metadata"),
        ("afflux-trace-record.1", ".SH EXAMPLE"),
    ] {
        let text = fs::read_to_string(pages.join(page)).unwrap();
        assert!(text.contains(".TH ") && text.contains(part), "{page}: {text}");
    }
    assert!(text(&run(scratch.path(), &["man"])) == fs::read_to_string(pages.join("afflux.1")).unwrap());
    let output = run(scratch.path(), &["man", scratch.path().join("bash").to_str().unwrap()]);
    assert!(output.status.code() == Some(1) && text(&output).contains("/bash: "), "{}", text(&output));
}
