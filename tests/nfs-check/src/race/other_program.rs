//! A program of the host that writes the servers' disk during a measurement.
//!
//! Owns: the program's rate, file, start and end.
//! Does not own: the measurement (`cases`).
//! Invariants: the program writes past every cache. A drop ends the program and removes its file; its job is a thread
//! of the process that is killed (`the_other_program_ends_with_its_case`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Of 1,300 MB/s that a good disk writes, so that it has room for the server too.
const RATE: &str = "--rate=300m";
const FILE_BYTES: &str = "--size=1g";

/// The running program.
pub(super) struct OtherProgram {
    program: Child,
    file: PathBuf,
}

impl OtherProgram {
    /// Starts the program; its file is in a directory of the servers' disk.
    pub(super) fn start(directory: &Path) -> io::Result<Self> {
        let file = directory.join("other-program");
        let mut fio = Command::new("fio");
        fio.args(["--name=other", "--rw=write", "--bs=1m", "--direct=1", "--ioengine=io_uring", "--iodepth=4"]);
        // As a process of its own the job would go on after its parent was killed.
        fio.args(["--thread", RATE, FILE_BYTES, "--time_based", "--runtime=3600", "--output=/dev/null"]);
        fio.arg(format!("--filename={}", file.display()));
        let program = fio.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self { program, file })
    }
}

impl Drop for OtherProgram {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
        let _ = fs::remove_file(&self.file);
    }
}
