//! The servers, all on one CPU and over one directory.
//!
//! Owns: their processes and configuration, their addresses, their CPU time.
//! Does not own: the choice of the CPU (`cpus`), the network namespace and their privileges.
//! Invariants: the servers end when this value is dropped.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use afflux_nfs_client::sessions::{Compound, Session};
use afflux_nfs_client::{Client, Error, Handle};
use afflux_rig::{Ending, Ready, choice, ganesha};
use afflux_scratch::within;

use super::cpus::Cpus;
use super::options::Options;
use crate::failure::{Failure, host};

const PATIENCE: Duration = Duration::from_secs(60);
const CACHE: &str = "2GiB";
/// An option of ours that some versions do not have.
const UNSYNCED: &str = "--async-metadata";
/// Two servers serve one directory. Each has files of its own there.
const SHARED: &str = "--shared";

/// The result of calls to a server.
pub(super) type Called<T> = Result<T, Error>;

choice! {
    /// The participants.
    pub(super) Running {
        Ganesha = "ganesha",
        Afflux = "afflux",
        /// Ours, with names that are not durable at the answer, like ganesha's.
        AffluxUnsynced = "afflux-async",
        /// A program on the host.
        Host = "host",
    }
}

pub(super) struct Servers {
    _port_mapper: Ending,
    ganesha: Ending,
    afflux: Ready,
    unsynced: Ready,
    export: PathBuf,
    /// The program that mounts a server.
    bridge: PathBuf,
    /// The program of the bare loop.
    bare: PathBuf,
    cpus: Cpus,
}

impl Servers {
    pub(super) fn start(options: &Options, cpus: Cpus, directory: &Path, export: &Path) -> Result<Self, Failure> {
        let port_mapper =
            ganesha::port_mapper(&mut Command::new(ganesha::PORT_MAPPER), directory).map_err(host("rpcbind"))?;
        let mut command = cpus.command(Path::new(ganesha::PROGRAM));
        ganesha::serve(
            &mut command,
            directory,
            export,
            Ipv4Addr::LOCALHOST,
            ganesha::PORTS,
            "3, 4",
            ganesha::VERSION_4,
        )
        .map_err(host("ganesha.conf"))?;
        let log = fs::File::create(directory.join("ganesha.err")).map_err(host("ganesha.err"))?;
        let child = command.stdout(Stdio::null()).stderr(log).spawn().map_err(host("ganesha"))?;
        let afflux = |name: &str, further: &[&str]| {
            let home = directory.join(name);
            let mut command = cpus.command(&options.afflux);
            command.arg("serve").arg(export).args(["--listen", "127.0.0.1:0", "--cache", CACHE]).args(further);
            command.arg("--state").arg(home.join("state")).env("XDG_STATE_HOME", &home);
            Ready::start(&mut command, &home).map_err(host(name))
        };
        let mut servers = Self {
            _port_mapper: port_mapper,
            ganesha: Ending(child),
            afflux: afflux("afflux", &[SHARED])?,
            unsynced: afflux("afflux-async", &[SHARED, UNSYNCED])?,
            export: export.to_path_buf(),
            bridge: options.bridge.clone(),
            bare: options.bare.clone(),
            cpus,
        };
        servers.wait_for_ganesha()?;
        servers.wait_for_memory();
        Ok(servers)
    }

    /// Waits until ours have their memory: the thread that clears it would share the servers' CPU in the first rounds.
    fn wait_for_memory(&self) {
        let ours = [self.afflux.process(), self.unsynced.process()];
        within(PATIENCE, || !ours.into_iter().any(is_clearing_memory));
    }

    fn wait_for_ganesha(&mut self) -> Result<(), Failure> {
        let mut answer = Ok(());
        within(PATIENCE, || {
            answer = self.connect(Running::Ganesha).map(drop);
            answer.is_ok()
        });
        answer.map_err(|error| Failure::Server(format!("nfs-ganesha does not answer: {error}")))
    }

    pub(super) fn export(&self) -> &Path {
        &self.export
    }

    /// The command of the bare loop.
    pub(super) fn bare(&self) -> Command {
        self.cpus.command(&self.bare)
    }

    pub(super) fn cpus(&self) -> &Cpus {
        &self.cpus
    }

    /// The command that mounts a server.
    pub(super) fn bridge(&self, which: Running, point: &Path) -> Command {
        let (nfs, mount, path) = self.addresses(which);
        let mut command = Command::new(&self.bridge);
        command.arg(nfs.to_string()).arg(path).arg(point).arg(mount.to_string());
        command
    }

    /// The addresses of NFS and of MOUNT, and the export.
    fn addresses(&self, which: Running) -> (SocketAddr, SocketAddr, String) {
        let ours = match which {
            Running::Ganesha => {
                let [nfs, mount] = ganesha::PORTS.map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
                return (nfs, mount, self.export.display().to_string());
            }
            Running::AffluxUnsynced => &self.unsynced,
            Running::Afflux | Running::Host => &self.afflux,
        };
        (ours.address(), ours.address(), ours.export.clone())
    }

    /// A new connection, and the handle of the exported directory.
    pub(super) fn connect(&mut self, which: Running) -> Result<(Client, Handle), Error> {
        let (nfs, mount, path) = self.addresses(which);
        let root = Client::connect(mount)?.mount(&path)?;
        let mut client = Client::connect(nfs)?;
        client.set_timeout(Some(PATIENCE))?;
        Ok((client, root))
    }

    /// A session of version 4.1 with this number of slots over a new connection, and the handle of the exported
    /// directory.
    pub(super) fn begin_session(&mut self, which: Running, slots: u32) -> Result<(Session, Handle), Error> {
        let mut client = Client::connect(self.addresses(which).0)?;
        client.set_timeout(Some(PATIENCE))?;
        // Another client each time: the first numbers of calls are random.
        let owner = format!("race-{}", client.next_xid());
        let mut session = Session::begin_with_slots(client, owner.as_bytes(), 1, slots)?;
        session.must(Compound::default().reclaim_complete())?;
        let root = Compound::default().put_root();
        let root = if which == Running::Ganesha { root.lookup(ganesha::EXPORT.as_bytes()) } else { root };
        let handle = session.walk(root)?;
        Ok((session, handle))
    }

    /// The number of a server's process.
    pub(super) fn process(&self, which: Running) -> u32 {
        match which {
            Running::Ganesha => self.ganesha.0.id(),
            Running::AffluxUnsynced => self.unsynced.process(),
            Running::Afflux | Running::Host => self.afflux.process(),
        }
    }
}

fn is_clearing_memory(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok())
        .any(|name| name.trim() == "prefault")
}
