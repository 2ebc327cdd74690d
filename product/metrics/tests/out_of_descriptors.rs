//! A process without a free descriptor answers scrapers. This is the only test of its process, since it lowers the
//! process's limit.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::OwnedFd;

use afflux_metrics::MetricsListener;
use rustix::fs::{Mode, OFlags, open};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than the numbers of the reserve, and fewer than the connections that the listener keeps.
const SILENT: usize = 12;

/// Takes all free numbers.
fn take_all(taken: &mut Vec<OwnedFd>) {
    while let Ok(one) = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        taken.push(one);
    }
}

// rule: a process without a free descriptor answers scrapers: the connection goes that has been open longest
#[test]
fn a_scraper_is_answered_while_others_take_each_free_descriptor() {
    let listener = MetricsListener::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = listener.address().unwrap();
    listener.start(|| "t 1\n".to_owned()).unwrap();
    let socket = || socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    let silent: Vec<OwnedFd> = (0..SILENT).map(|_| socket()).collect();
    let scrapers: Vec<OwnedFd> = (0..SILENT).map(|_| socket()).collect();
    let all = getrlimit(Resource::Nofile);
    let numbers = fs::read_dir("/proc/self/fd").unwrap();
    let numbers = numbers.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse::<u64>().unwrap());
    let highest = numbers.max().unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(highest + 16), maximum: all.maximum }).unwrap();
    let mut taken = Vec::new();
    take_all(&mut taken);
    silent.iter().for_each(|socket| connect(socket, &address).unwrap());
    for scraper in scrapers {
        connect(&scraper, &address).unwrap();
        let mut stream = TcpStream::from(scraper);
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("\r\n\r\nt 1\n"), "{text}");
        // A number that a closed connection had left would be gone.
        take_all(&mut taken);
    }
    setrlimit(Resource::Nofile, all).unwrap();
}
