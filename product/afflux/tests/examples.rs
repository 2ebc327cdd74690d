//! The examples do what they say.
#![allow(clippy::unwrap_used, dead_code, missing_docs, unreachable_pub, reason = "a test")]

#[path = "../examples/append_lines.rs"]
mod append_lines;
#[path = "../examples/copy.rs"]
mod copy;
#[path = "../examples/serve_files.rs"]
mod serve_files;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use afflux::{Cache, DeviceError, Faults, RequestKind};

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 253) as u8).collect()
}

#[test]
fn a_copy_is_the_same_and_tells_how_far_it_is() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(4 << 20).build().unwrap();
    for len in [0, 1, 4096, 9_000_001] {
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        std::fs::write(&from, bytes(len)).unwrap();
        let mut told = Vec::new();
        assert_eq!(copy::copy(&cache, &from, &to, &mut |progress| told.push(progress)).unwrap(), len as u64);
        assert!(std::fs::read(&to).unwrap() == bytes(len));
        assert!(told.is_sorted_by_key(|progress| progress.copied));
        let last = told.last().unwrap();
        assert_eq!((last.copied, last.unwritten, last.total), (len as u64, 0, len as u64));
    }
    let one = place.path().join("from");
    std::fs::hard_link(&one, place.path().join("same")).unwrap();
    assert!(copy::copy(&cache, &one, &place.path().join("same"), &mut |_| ()).is_err(), "it would cut what it copies");
    assert!(std::fs::read(&one).unwrap() == bytes(9_000_001));
    assert!(copy::copy(&cache, &place.path().join("absent"), &one, &mut |_| ()).is_err());
}

#[test]
fn a_server_sends_what_is_asked_for_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("files");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("a file"), bytes(100_000)).unwrap();
    std::fs::write(place.path().join("secret"), b"secret").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let cache = Cache::builder().memory(4 << 20).build().unwrap();
    let serving = cache.clone();
    std::thread::spawn(move || serve_files::serve(&serving, &directory, &listener));
    let mut out = TcpStream::connect(address).unwrap();
    let mut replies = BufReader::new(out.try_clone().unwrap());
    let mut ask = |line: &str| {
        out.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut head = String::new();
        replies.read_line(&mut head).unwrap();
        let Ok(len) = head.trim().parse() else { return Err(head) };
        let mut body = vec![0; len];
        replies.read_exact(&mut body).unwrap();
        Ok(body)
    };
    assert_eq!(ask("a file 0 100").unwrap(), bytes(100));
    assert_eq!(ask("a file 5000 90000").unwrap(), bytes(100_000)[5_000..95_000]);
    assert_eq!(ask("a file 99999 500").unwrap(), bytes(100_000)[99_999..]);
    assert_eq!(ask("a file 200000 500").unwrap(), []);
    assert!(ask("absent 0 1").unwrap_err().starts_with("error "));
    assert!(ask("../secret 0 6").unwrap_err().contains("NAME OFFSET LENGTH"));
    assert!(ask("nonsense").is_err());
    assert_eq!(ask("a file 1 2").unwrap(), bytes(3)[1..], "it goes on after errors");
}

#[test]
fn a_line_that_the_disk_refuses_is_answered_with_the_error_and_is_there_later() {
    let (place, faults) = (tempfile::tempdir().unwrap(), Faults::new());
    let path = place.path().join("lines");
    let cache = Cache::builder().memory(4 << 20).faults(&faults).build().unwrap();
    let file = cache.create(&path).unwrap();
    let answer = |line: &str| {
        let mut answers = Vec::new();
        append_lines::append_lines(&file, line.as_bytes(), &mut answers).unwrap();
        String::from_utf8(answers).unwrap()
    };
    assert_eq!(answer("one\n"), "durable\n");
    faults.fail(RequestKind::Write, 0, u64::MAX, DeviceError::Io { errno: 5 });
    assert!(answer("two\n").contains("input/output error"));
    assert_eq!(std::fs::read(&path).unwrap(), b"one\n");
    faults.heal();
    assert_eq!(answer("three\n"), "durable\n");
    assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\nthree\n");
}
