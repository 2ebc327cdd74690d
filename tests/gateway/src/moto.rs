//! A moto, which is a small S3 in Python.
//!
//! Owns: its process, its bucket.
//! Does not own: the program (PyPI's moto with its extras s3 and server).
//! Invariants: it is killed when the value is dropped. It checks no keys.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use afflux_scratch::within;

const PROGRAM: &str = "moto_server";
/// A guard against hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running moto.
#[derive(Debug)]
pub struct Moto {
    child: Child,
    address: SocketAddr,
}

impl Moto {
    /// The reason why none can run here, if there is one.
    pub fn obstacle() -> Option<String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = std::env::split_paths(&path).any(|folder| folder.join(PROGRAM).exists());
        (!is_there).then(|| format!("{PROGRAM} is not on the path (pip install 'moto[s3,server]')"))
    }

    /// Starts one.
    pub fn start() -> io::Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = Command::new(PROGRAM);
        command.args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let moto = Self { child, address };
        let listens = within(PATIENCE, || TcpStream::connect(address).is_ok());
        if listens { Ok(moto) } else { Err(io::Error::other("moto does not listen")) }
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes a bucket.
    pub fn make_bucket(&self, name: &str) -> io::Result<()> {
        let mut stream = TcpStream::connect(self.address)?;
        let host = self.address;
        write!(stream, "PUT /{name} HTTP/1.0\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let is_made = answer.split(' ').nth(1) == Some("200");
        if is_made { Ok(()) } else { Err(io::Error::other(answer)) }
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
