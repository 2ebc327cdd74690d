//! A Ceph of one monitor and one OSD in memory, with an S3 gateway.
//!
//! Owns: its configuration, programs, buckets and their removal.
//! Does not own: the packages (Debian's ceph-mon, ceph-osd, radosgw).
//! Invariants: the programs are killed when the value is dropped. Other clusters of this machine are not touched.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use afflux_scratch::{Scratch, within};

/// The key of the gateway's only user.
pub const KEY: &str = "TESTKEY";
/// Its secret.
pub const SECRET: &str = "TESTSECRET";
const PROGRAMS: [&str; 7] = ["ceph", "ceph-mon", "ceph-osd", "curl", "monmaptool", "radosgw", "radosgw-admin"];
const CLUSTER: &str = "5c0f4a3e-6c57-4d3e-9f0e-0d9a8a2e7c11";
const OSD: &str = "0a8b1f7e-31a4-4e0f-8f15-2f4f1f0a7d22";
/// The checksum of a request without a body, which a signed request names.
const OF_NOTHING: &str = "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// A guard against hangs.
const PATIENCE: Duration = Duration::from_secs(120);

const CONFIGURATION: &str = "
[global]
fsid = CLUSTER
mon host = [v1:127.0.0.1:MON]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon data avail crit = 1
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = BYTES
mon data = DIR/mon
osd data = DIR/osd
run dir = DIR
admin socket = DIR/$name.asok
pid file =
log file = DIR/$name.log
rgw dynamic resharding = false
[client.rgw.a]
rgw frontends = beast endpoint=127.0.0.1:GATEWAY tcp_nodelay=1
";

/// A running cluster of one.
#[derive(Debug)]
pub struct Gateway {
    /// The monitor, the OSD and, unless it was stopped, the gateway.
    programs: Vec<Child>,
    configuration: PathBuf,
    address: SocketAddr,
    directory: Scratch,
}

impl Gateway {
    /// The reason why no cluster can run here, if there is one.
    pub fn obstacle() -> Option<String> {
        let is_there = |program: &&str| {
            ["/usr/bin", "/usr/local/bin"].iter().any(|folder| PathBuf::from(folder).join(program).exists())
        };
        if let Some(missing) = PROGRAMS.iter().find(|program| !is_there(program)) {
            return Some(format!("{missing} is not installed (Debian packages ceph-mon, ceph-osd, radosgw)"));
        }
        (!rustix::process::geteuid().is_root()).then(|| "a Ceph takes root".to_owned())
    }

    /// Starts a cluster that keeps up to this many bytes in memory. An OSD sometimes ends at its start without a word,
    /// so there is a second try.
    pub fn start(bytes: u64) -> io::Result<Self> {
        Self::try_start(bytes).or_else(|_| Self::try_start(bytes))
    }

    fn try_start(bytes: u64) -> io::Result<Self> {
        let directory = Scratch::guarded(&std::env::temp_dir(), "ceph")?;
        let [monitor, gateway] = free_ports()?;
        let place = directory.path().display().to_string();
        for folder in ["mon", "osd"] {
            fs::create_dir(directory.path().join(folder))?;
        }
        let configuration = directory.path().join("ceph.conf");
        let values = [
            ("DIR", place.clone()),
            ("CLUSTER", CLUSTER.to_owned()),
            ("MON", monitor.port().to_string()),
            ("GATEWAY", gateway.port().to_string()),
            ("BYTES", bytes.to_string()),
        ];
        let text = values.iter().fold(CONFIGURATION.to_owned(), |text, (name, value)| text.replace(name, value));
        fs::write(&configuration, text)?;
        let mut ceph = Self { programs: Vec::new(), configuration, address: gateway, directory };
        ceph.start_cluster(&place, monitor)?;
        ceph.start_gateway()?;
        Ok(ceph)
    }

    fn start_cluster(&mut self, place: &str, monitor: SocketAddr) -> io::Result<()> {
        let (map, at) = (format!("{place}/monmap"), monitor.to_string());
        self.run("monmaptool", &["--create", "--fsid", CLUSTER, "--addv", "a", &format!("[v1:{at}]"), &map])?;
        self.run("ceph-mon", &["-i", "a", "--mkfs", "--monmap", &map])?;
        self.background("ceph-mon", &["-f", "-i", "a", "--public-addr", &at])?;
        // A monitor refuses commands until it leads. The command may be repeated.
        let mut made = Ok(());
        within(PATIENCE, || {
            made = self.run("ceph", &["osd", "new", OSD]);
            made.is_ok()
        });
        made?;
        self.run("ceph-osd", &["-i", "0", "--mkfs", "--osd-uuid", OSD])?;
        self.run("ceph", &["osd", "crush", "add", "osd.0", "1.0", "root=default", "host=local"])?;
        self.background("ceph-osd", &["-f", "-i", "0"])?;
        // Each look is a program of half a second.
        let mut is_ended = false;
        let mut osd = self.programs.pop();
        let is_up = || {
            is_ended = osd.as_mut().is_none_or(|osd| !matches!(osd.try_wait(), Ok(None)));
            let state = self.output("ceph", &["osd", "stat"]).map(|output| output.stdout).unwrap_or_default();
            is_ended || String::from_utf8_lossy(&state).contains("1 up")
        };
        let is_up = within(PATIENCE, is_up) && !is_ended;
        self.programs.extend(osd);
        if !is_up {
            return Err(io::Error::other("the OSD does not come up"));
        }
        let user = ["-n", "client.rgw.a", "user", "create", "--uid", "test", "--display-name", "test"];
        self.run("radosgw-admin", &[&user[..], &["--access-key", KEY, "--secret", SECRET]].concat())
    }

    /// Starts the gateway, which answers once this returns.
    pub fn start_gateway(&mut self) -> io::Result<()> {
        self.background("radosgw", &["-f", "-n", "client.rgw.a"])?;
        let listens = within(PATIENCE, || TcpStream::connect(self.address).is_ok());
        if listens { Ok(()) } else { Err(io::Error::other("the gateway does not listen")) }
    }

    /// Kills the gateway. The cluster behind it goes on.
    pub fn kill_gateway(&mut self) {
        if let Some(mut gateway) = self.programs.pop() {
            let _ = gateway.kill();
            let _ = gateway.wait();
        }
    }

    /// The address that the gateway listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as a URL.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes a bucket. Others may read and write it without keys if it is `open`.
    pub fn make_bucket(&self, name: &str, open: bool) -> io::Result<()> {
        let (keys, url) = (format!("{KEY}:{SECRET}"), format!("{}/{name}", self.endpoint()));
        let acl = if open { "x-amz-acl: public-read-write" } else { "x-amz-acl: private" };
        let signed = ["--silent", "--fail", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", &keys];
        self.run("curl", &[&signed[..], &["-H", OF_NOTHING, "-H", acl, "-X", "PUT", &url]].concat())
    }

    /// Removes a bucket and its memory.
    pub fn remove_bucket(&self, name: &str) -> io::Result<()> {
        let bucket = ["-n", "client.rgw.a", "bucket", "rm", "--bucket", name, "--purge-objects", "--bypass-gc"];
        self.run("radosgw-admin", &bucket)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env("CEPH_CONF", &self.configuration).stdin(Stdio::null());
        command
    }

    fn output(&self, program: &str, arguments: &[&str]) -> io::Result<Output> {
        self.command(program, arguments).output()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<()> {
        let output = self.output(program, arguments)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(io::Error::other(format!("{program} {arguments:?}: {said}"))) }
    }

    fn background(&mut self, program: &str, arguments: &[&str]) -> io::Result<()> {
        let said = File::create(self.directory.path().join(format!("{program}.said")))?;
        let mut command = self.command(program, arguments);
        self.programs.push(command.stdout(Stdio::null()).stderr(said).spawn()?);
        Ok(())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        for program in self.programs.iter_mut().rev() {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

fn free_ports() -> io::Result<[SocketAddr; 2]> {
    let bind = || TcpListener::bind("127.0.0.1:0");
    let listeners = [bind()?, bind()?];
    Ok([listeners[0].local_addr()?, listeners[1].local_addr()?])
}
