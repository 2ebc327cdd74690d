//! Appends lines of standard input to a file through a cache, and answers each line: `append_lines FILE`.
//!
//! The answer is `durable`, or the error of the sync. The cache keeps bytes that a disk refused, and each sync tries
//! them again. So the answer `durable` also counts for all earlier lines.
#![allow(clippy::print_stdout, reason = "a command")]

use std::io::{self, BufRead, ErrorKind, Write};
use std::path::PathBuf;
use std::process::exit;

use afflux::{Cache, File, OpenOptions};

/// Appends each line and syncs the file. Writes one line of answer for each.
pub fn append_lines(file: &File, lines: impl BufRead, mut answers: impl Write) -> io::Result<()> {
    for line in lines.lines() {
        let appended = file.append(format!("{}\n", line?).as_bytes());
        match appended.and_then(|_| file.sync_data()) {
            Ok(()) => writeln!(answers, "durable")?,
            Err(error) => writeln!(answers, "{error}")?,
        }
        answers.flush()?;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [path] = arguments.as_slice() else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "append_lines FILE"));
    };
    let cache = Cache::builder().memory(16 << 20).build()?;
    let file = cache.open(path, OpenOptions::new().read(true).write(true).create(true))?;
    append_lines(&file, io::stdin().lock(), io::stdout().lock())?;
    if let Err(unwritten) = cache.close() {
        // It names each file with bytes that no disk has.
        println!("{unwritten}");
        exit(1);
    }
    Ok(())
}
