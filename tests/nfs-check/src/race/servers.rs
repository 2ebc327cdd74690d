//! The servers, all on one CPU and over one directory.
//!
//! Owns: their processes and configuration, their addresses, their CPU time.
//! Does not own: the network namespace and their privileges.
//! Invariants: the servers end when this value is dropped.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use afflux_nfs_client::sessions::{Compound, Session};
use afflux_nfs_client::{Client, Error, Handle};

use super::cases::Case;
use super::{Failure, Options, host};

const PATIENCE: Duration = Duration::from_secs(60);
const CACHE: &str = "2GiB";
const GANESHA: (&str, &str) = ("127.0.0.1:2049", "127.0.0.1:20048");
/// An option of ours that some versions do not have.
const UNSYNCED: &str = "--async-metadata";
/// Two servers serve one directory. Each has files of its own there.
const SHARED: &str = "--shared";

/// The participants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Running {
    Ganesha,
    Afflux,
    /// Ours, with names that are not durable at the answer, like ganesha's.
    AffluxUnsynced,
    /// A program on the host.
    Host,
}

impl Running {
    pub(super) const COUNT: usize = 4;

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ganesha => "ganesha",
            Self::Afflux => "afflux",
            Self::AffluxUnsynced => "afflux-async",
            Self::Host => "host",
        }
    }
}

struct Server {
    child: Child,
    nfs: SocketAddr,
    mount: SocketAddr,
    path: String,
}

pub(super) struct Servers {
    port_mapper: Child,
    ganesha: Server,
    afflux: Server,
    unsynced: Server,
    export: PathBuf,
    /// The program that mounts a server.
    bridge: Option<PathBuf>,
    /// The program of the bare loop.
    bare: Option<PathBuf>,
}

impl Drop for Servers {
    fn drop(&mut self) {
        let servers = [&mut self.ganesha, &mut self.afflux, &mut self.unsynced];
        let children = servers.into_iter().map(|server| &mut server.child).chain([&mut self.port_mapper]);
        for child in children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Servers {
    pub(super) fn start(options: &Options, export: &Path) -> Result<Self, Failure> {
        let directory = &options.directory;
        let log = |name: &str| fs::File::create(directory.join(name)).map_err(host(name));
        let port_mapper =
            Command::new("rpcbind").arg("-f").stderr(log("rpcbind.log")?).spawn().map_err(host("rpcbind"))?;
        sleep(Duration::from_secs(1));
        let configuration = directory.join("ganesha.conf");
        fs::write(&configuration, ganesha_configuration(export, "3, 4") + GANESHA_4).map_err(host("ganesha.conf"))?;
        let mut ganesha = on_first_cpu("ganesha.nfsd");
        ganesha.arg("-F").arg("-f").arg(&configuration).arg("-L").arg(directory.join("ganesha.log"));
        ganesha.arg("-p").arg(directory.join("ganesha.pid"));
        let child = ganesha.stdout(log("ganesha.out")?).stderr(log("ganesha.err")?).spawn().map_err(host("ganesha"))?;
        let address = |text: &str| text.parse().map_err(|_| Failure::Server(text.to_owned()));
        let path = export.display().to_string();
        let ganesha = Server { child, nfs: address(GANESHA.0)?, mount: address(GANESHA.1)?, path };
        let afflux = start_afflux(options, export, "afflux", &[SHARED])?;
        let unsynced = start_afflux(options, export, "afflux-async", &[SHARED, UNSYNCED])?;
        let mut servers = Self {
            port_mapper,
            ganesha,
            afflux,
            unsynced,
            export: export.to_path_buf(),
            bridge: options.bridge.clone(),
            bare: options.bare.clone(),
        };
        servers.wait_for_ganesha()?;
        Ok(servers)
    }

    fn wait_for_ganesha(&mut self) -> Result<(), Failure> {
        let begin = Instant::now();
        loop {
            match self.connect(Running::Ganesha) {
                Ok(_) => return Ok(()),
                Err(error) if begin.elapsed() > PATIENCE => {
                    return Err(Failure::Server(format!("nfs-ganesha does not answer: {error}")));
                }
                Err(_) => sleep(Duration::from_millis(200)),
            }
        }
    }

    pub(super) fn export(&self) -> &Path {
        &self.export
    }

    /// The participants of a case, in the order of their turns.
    pub(super) fn taking_part(&self, case: &Case) -> Vec<Running> {
        let mut all = vec![Running::Ganesha, Running::Afflux];
        if case.changes_names() {
            all.push(Running::AffluxUnsynced);
        }
        if case.has_host() {
            all.push(Running::Host);
        }
        all
    }

    /// Whether servers can be mounted here.
    pub(super) fn can_mount(&self) -> bool {
        self.bridge.is_some()
    }

    pub(super) fn bare(&self) -> Option<&Path> {
        self.bare.as_deref()
    }

    /// The command that mounts a server.
    pub(super) fn bridge(&self, which: Running, point: &Path) -> io::Result<Command> {
        let bridge = self.bridge.as_ref().ok_or_else(|| io::Error::other("there is no bridge"))?;
        let server = self.server(which);
        let mut command = Command::new(bridge);
        command.arg(server.nfs.to_string()).arg(&server.path).arg(point).arg(server.mount.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }

    fn server(&self, which: Running) -> &Server {
        match which {
            Running::Ganesha => &self.ganesha,
            Running::AffluxUnsynced => &self.unsynced,
            _ => &self.afflux,
        }
    }

    /// A new connection, and the handle of the exported directory.
    pub(super) fn connect(&mut self, which: Running) -> Result<(Client, Handle), Error> {
        let server = self.server(which);
        let root = Client::connect(server.mount)?.mount(&server.path)?;
        let mut client = Client::connect(server.nfs)?;
        client.set_timeout(Some(PATIENCE))?;
        Ok((client, root))
    }

    /// A session of version 4.1 with this number of slots over a new connection, and the handle of the exported directory.
    pub(super) fn begin_session(&mut self, which: Running, slots: u32) -> Result<(Session, Handle), Error> {
        let mut client = Client::connect(self.server(which).nfs)?;
        client.set_timeout(Some(PATIENCE))?;
        // Another client each time: the first numbers of calls are random.
        let owner = format!("race-{}", client.next_xid());
        let mut session = Session::begin_with_slots(client, owner.as_bytes(), 1, slots)?;
        session.must(Compound::default().reclaim_complete())?;
        let root = Compound::default().put_root();
        let root = if which == Running::Ganesha { root.lookup(GANESHA_EXPORT) } else { root };
        let handle = session.walk(root)?;
        Ok((session, handle))
    }

    /// The number of a server's process.
    pub(super) fn process(&self, which: Running) -> u32 {
        self.server(which).child.id()
    }
}

/// CPU time used by all threads of a process.
pub(super) fn cpu_ns(process: u32) -> io::Result<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread that ends meanwhile has no file any more.
        let text = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        sum += text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

/// A command on the servers' CPU. It execs the program, so its process number is the server's.
pub(super) fn on_first_cpu(program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", "0", program]).stdin(Stdio::null());
    command
}

fn start_afflux(options: &Options, export: &Path, name: &str, further: &[&str]) -> Result<Server, Failure> {
    let home = options.directory.join(name);
    fs::create_dir_all(&home).map_err(host(name))?;
    let log = fs::File::create(home.join("log")).map_err(host(name))?;
    let program = options.afflux.display().to_string();
    let mut command = on_first_cpu(&program);
    command.arg("serve").arg(export).args(["--listen", "127.0.0.1:0", "--json", "--cache", CACHE]);
    command.arg("--control").arg(home.join("control.sock")).arg("--state").arg(home.join("state")).args(further);
    let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().map_err(host(program))?;
    let mut ready = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut ready).map_err(host(name))?;
    }
    let _ = io::stdout().flush();
    let port = field(&ready, "\"port\":").and_then(|text| text.parse::<u16>().ok());
    let path = field(&ready, "\"export\":\"");
    let (Some(port), Some(path)) = (port, path) else {
        let said = fs::read_to_string(home.join("log")).unwrap_or_default();
        return Err(Failure::Server(format!("{name} does not start: {ready}{said}")));
    };
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    Ok(Server { child, nfs: address, mount: address, path: path.to_owned() })
}

/// The text after a key in a line of JSON, up to the end of the value.
pub(crate) fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = line.split_once(key)?.1;
    Some(rest.split(['"', ',', '}']).next()?.trim())
}

/// Without it no client may open a file for 90 s, and names of users are looked for elsewhere.
const GANESHA_4: &str = "NFSv4 { Graceless = true; UseGetpwnam = true; Minor_Versions = 1, 2; }\n";
/// The name of ganesha's export in version 4.
const GANESHA_EXPORT: &[u8] = b"exp";

/// The configuration of one export over these versions.
pub(crate) fn ganesha_configuration(export: &Path, protocols: &str) -> String {
    format!(
        "NFS_CORE_PARAM {{ Protocols = {protocols}; NFS_Port = 2049; MNT_Port = 20048; Enable_NLM = false; Enable_RQUOTA = false;
  Bind_addr = 127.0.0.1; mount_path_pseudo = false; }}
NFS_KRB5 {{ Active_krb5 = false; }}
EXPORT {{ Export_Id = 77; Path = {}; Pseudo = /exp; Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
  Protocols = {protocols}; PrivilegedPort = false; FSAL {{ Name = VFS; }} }}
LOG {{ Default_Log_Level = EVENT; }}
",
        export.display()
    )
}
