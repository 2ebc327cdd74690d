//! The command, and directories for its files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) use afflux_scratch::eventually;

/// A directory that is removed at the end of its test.
pub(crate) struct Scratch(afflux_scratch::Scratch);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(afflux_scratch::Scratch::new(Path::new(env!("CARGO_TARGET_TMPDIR")), "lab").unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Makes a directory in it.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Writes a file in it, and gives its path.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// The command, with no settings from the environment of its caller.
pub(crate) fn afflux_lab(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_afflux-lab"));
    command.env("XDG_CONFIG_HOME", home).env("XDG_RUNTIME_DIR", home).env("XDG_STATE_HOME", home).env("HOME", home);
    command.stdin(Stdio::null());
    command
}

/// Runs the command to its end.
pub(crate) fn run(home: &Path, arguments: &[&str]) -> Output {
    afflux_lab(home).args(arguments).output().unwrap()
}

/// All that a command printed.
pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}
