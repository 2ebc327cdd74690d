//! A server of files that copies nothing: `serve_files DIRECTORY ADDRESS`.
//!
//! A client sends lines `NAME OFFSET LENGTH`. For each it gets a line with the number of bytes, and the bytes, or a
//! line `error` with the reason. The bytes go from the pages of the cache to the socket; meanwhile, writers of the same
//! bytes write to other pages. A hit makes one system call: the send.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command")]

use std::io::{self, BufRead, BufReader, ErrorKind, IoSlice, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};

use afflux::{Cache, Pages};

/// Most bytes of one reply.
const REPLY_BYTES_MAX: u64 = 4 << 20;
/// Most slices that one call to the host takes.
const SLICES_MAX: usize = 1024;

/// Serves connections until accepting one fails.
pub fn serve(cache: &Cache, directory: &Path, listener: &TcpListener) -> io::Result<()> {
    for stream in listener.incoming() {
        let (stream, cache, directory) = (stream?, cache.clone(), directory.to_owned());
        std::thread::spawn(move || {
            if let Err(error) = serve_client(&cache, &directory, &stream) {
                eprintln!("a client: {error}");
            }
        });
    }
    Ok(())
}

fn serve_client(cache: &Cache, directory: &Path, stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut out = stream;
    for line in BufReader::new(stream).lines() {
        match asked(cache, directory, &line?) {
            Ok(pages) => send(&mut out, &pages)?,
            Err(error) => writeln!(out, "error {error}")?,
        }
    }
    Ok(())
}

/// The bytes that a line asks for, shown in the cache.
fn asked(cache: &Cache, directory: &Path, line: &str) -> io::Result<Pages> {
    let bad = || io::Error::new(ErrorKind::InvalidInput, "a line is NAME OFFSET LENGTH");
    let mut words = line.rsplitn(3, ' ');
    let (len, offset, name) = (words.next(), words.next(), words.next());
    let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok()).ok_or_else(bad);
    let (len, offset, name) = (number(len)?.min(REPLY_BYTES_MAX), number(offset)?, name.ok_or_else(bad)?);
    // The name must not lead outside the directory.
    if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(bad());
    }
    // Opening a cached file costs two system calls, and a descriptor only for a short time.
    let file = cache.open_read(directory.join(name))?;
    file.read_pinned(offset..offset.saturating_add(len))
}

fn send(out: &mut impl Write, pages: &Pages) -> io::Result<()> {
    let head = format!("{}\n", pages.len());
    let mut slices: Vec<IoSlice<'_>> = vec![IoSlice::new(head.as_bytes())];
    slices.extend(pages.slices().map(IoSlice::new));
    let mut left = slices.as_mut_slice();
    while !left.is_empty() {
        let count = out.write_vectored(&left[..left.len().min(SLICES_MAX)])?;
        if count == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
        IoSlice::advance_slices(&mut left, count);
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, address] = arguments.as_slice() else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "serve_files DIRECTORY ADDRESS"));
    };
    let cache = Cache::builder().memory(256 << 20).build()?;
    let listener = TcpListener::bind(address)?;
    println!("serving {directory} on {}", listener.local_addr()?);
    serve(&cache, &PathBuf::from(directory), &listener)
}
