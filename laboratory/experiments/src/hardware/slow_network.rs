//! A network with a bit rate: two namespaces joined by a pair of interfaces with token buckets.
//!
//! Owns: the namespaces `affluxS` (server) and `affluxC` (client), their interfaces and addresses.
//! Does not own: the programs that run in them.
//! Invariants: the names carry this process's number, so that two runs do not meet.

use std::net::Ipv4Addr;
use std::os::fd::AsFd;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::command::{HardwareError, run, run_down};

/// Two network namespaces with a slow link between them.
pub struct SlowNetwork {
    server: String,
    client: String,
}

impl SlowNetwork {
    /// The server's address.
    pub const SERVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

    /// The client's address.
    pub const CLIENT_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

    /// Makes a network whose link carries `bits_per_s` in each direction, Ethernet headers included.
    ///
    /// # Errors
    /// Without root or the programs `ip` and `tc`; the error says which.
    pub fn new(bits_per_s: u64) -> Result<Self, HardwareError> {
        let number = std::process::id();
        let network = Self { server: format!("affluxS{number}"), client: format!("affluxC{number}") };
        let (server, client) = (network.server.as_str(), network.client.as_str());
        run("ip", &["netns", "add", server])?;
        run("ip", &["netns", "add", client])?;
        let pair = ["link", "add", "vS", "netns", server, "type", "veth", "peer", "name", "vC", "netns", client];
        run("ip", &pair)?;
        let rate = format!("{bits_per_s}bit");
        for (space, interface, address) in [(server, "vS", Self::SERVER_ADDRESS), (client, "vC", Self::CLIENT_ADDRESS)]
        {
            run("ip", &["-n", space, "link", "set", "lo", "up"])?;
            run("ip", &["-n", space, "link", "set", interface, "up"])?;
            run("ip", &["-n", space, "addr", "add", &format!("{address}/24"), "dev", interface])?;
            let bucket = ["root", "tbf", "rate", &rate, "burst", "16kb", "latency", "50ms"];
            let add = ["-n", space, "qdisc", "add", "dev", interface];
            run("tc", &[&add[..], &bucket[..]].concat())?;
        }
        Ok(network)
    }

    /// A command that runs on the server's side.
    pub fn on_server(&self, program: &str) -> std::process::Command {
        Self::inside(&self.server, program)
    }

    /// A command that runs on the client's side.
    pub fn on_client(&self, program: &str) -> std::process::Command {
        Self::inside(&self.client, program)
    }

    /// Runs `work` on a thread of this process in the client's namespace, and waits for it.
    ///
    /// # Errors
    /// When the thread cannot enter the namespace, or panics.
    pub fn as_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, HardwareError> {
        let path = format!("/run/netns/{}", self.client);
        let failed = |what: String| HardwareError { what };
        let inside = || {
            let space = std::fs::File::open(&path)?;
            move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok::<T, std::io::Error>(work())
        };
        let ended = std::thread::scope(|scope| scope.spawn(inside).join());
        let ended = ended.map_err(|_| failed("the client's thread panicked".to_owned()))?;
        ended.map_err(|error| failed(format!("{path}: {error}")))
    }

    fn inside(space: &str, program: &str) -> std::process::Command {
        let mut command = std::process::Command::new("ip");
        command.args(["netns", "exec", space, program]);
        command
    }
}

impl Drop for SlowNetwork {
    fn drop(&mut self) {
        run_down("ip", &["netns", "del", &self.client]);
        run_down("ip", &["netns", "del", &self.server]);
    }
}
