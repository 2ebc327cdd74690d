//! Plain requests of a store, without keys.
//!
//! Owns: one connection, PUT and GET.
//! Does not own: relays, buckets; any other method.
//! Invariants: an answer other than 2xx is an error. A body is read to its end.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

/// Others than the owner, who has keys, may read the object.
const OPEN: &str = "x-amz-acl: public-read\r\n";

pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

impl Connection {
    pub(super) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::with_capacity(256 << 10, stream), address })
    }

    pub(super) fn put(&mut self, path: &str, body: &[u8]) -> io::Result<()> {
        let head =
            format!("PUT /{path} HTTP/1.1\r\nHost: {}\r\n{OPEN}Content-Length: {}\r\n\r\n", self.address, body.len());
        self.stream.get_mut().write_all(head.as_bytes())?;
        self.stream.get_mut().write_all(body)?;
        self.answer(path).map(drop)
    }

    /// Reads an object; returns its length.
    pub(super) fn get(&mut self, path: &str) -> io::Result<u64> {
        let head = format!("GET /{path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        self.stream.get_mut().write_all(head.as_bytes())?;
        self.answer(path)
    }

    fn answer(&mut self, path: &str) -> io::Result<u64> {
        let (mut line, mut length) = (String::new(), 0);
        self.stream.read_line(&mut line)?;
        let is_good = line.split(' ').nth(1).is_some_and(|status| status.starts_with('2'));
        let status = line.trim_end().to_owned();
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? <= 2 {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut read = 0;
        while read < length {
            let piece = (self.stream.fill_buf()?.len() as u64).min(length - read);
            if piece == 0 {
                break;
            }
            self.stream.consume(piece as usize);
            read += piece;
        }
        if is_good && read == length { Ok(read) } else { Err(io::Error::other(format!("{path}: {status}"))) }
    }
}
