//! A program of the host that writes the servers' disk during a measurement.
//!
//! Owns: the program's rate, file, start and end.
//! Does not own: the measurement (`cases`).
//! Invariants: the program writes past every cache. A drop ends the program with its jobs and removes its file
//! (`the_other_program_ends_with_its_case`). If the thread that started the program ends first, so does the program.
//! The program holds no pipe of its starter.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

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
        let mut fio = Command::new("setpriv");
        fio.args(["--pdeathsig", "TERM", "fio"]);
        fio.args(["--name=other", "--rw=write", "--bs=1m", "--direct=1", "--ioengine=io_uring", "--iodepth=4"]);
        // A job that is a process is the leader of a session, so it would go on if something else killed fio.
        fio.args(["--thread", RATE, FILE_BYTES, "--time_based", "--runtime=3600", "--output=/dev/null"]);
        fio.arg(format!("--filename={}", file.display()));
        let program = fio.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self { program, file })
    }
}

impl Drop for OtherProgram {
    fn drop(&mut self) {
        // fio ends its jobs on this signal, and waits for them.
        let _ = kill_process(Pid::from_child(&self.program), Signal::TERM);
        let _ = self.program.wait();
        let _ = fs::remove_file(&self.file);
    }
}
