//! A Ceph with an S3 gateway on this machine, on loopback, in memory, for one test.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use afflux_object_store::{Access, Keys, Options, Store, StoreError};
use afflux_scratch::{Scratch, eventually, skipped};

use crate::{kills, objects, records, volume, wait};

const KEY: &str = "TESTKEY";
const SECRET: &str = "TESTSECRET";
const BUCKET: &str = "bucket";
const PROGRAMS: [&str; 7] = ["ceph", "ceph-mon", "ceph-osd", "curl", "monmaptool", "radosgw", "radosgw-admin"];

const CONFIGURATION: &str = "
[global]
fsid = 5c0f4a3e-6c57-4d3e-9f0e-0d9a8a2e7c11
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
memstore device bytes = 2147483648
mon data = DIR/mon
osd data = DIR/osd
run dir = DIR
admin socket = DIR/$name.asok
pid file =
log file = DIR/$name.log
rgw dynamic resharding = false
[client.rgw.a]
rgw frontends = beast endpoint=127.0.0.1:GATEWAY
";

/// A running cluster of one. Its programs are killed when the value is dropped.
pub(crate) struct Gateway {
    programs: Vec<Child>,
    configuration: PathBuf,
    endpoint: String,
    directory: Scratch,
}

impl Gateway {
    /// Starts one, or names what is missing.
    pub(crate) fn start() -> Option<Self> {
        let is_there = |program: &&str| {
            ["/usr/bin", "/usr/local/bin"].iter().any(|folder| PathBuf::from(folder).join(program).exists())
        };
        if let Some(missing) = PROGRAMS.iter().find(|program| !is_there(program)) {
            skipped!("{missing} is not installed (Debian packages ceph-mon, ceph-osd, radosgw)");
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            skipped!("a Ceph takes root");
            return None;
        }
        let directory = Scratch::guarded(&std::env::temp_dir(), "ceph").unwrap();
        let [monitor, gateway] = free_ports();
        let place = directory.path().display().to_string();
        for folder in ["mon", "osd"] {
            std::fs::create_dir(directory.path().join(folder)).unwrap();
        }
        let configuration = directory.path().join("ceph.conf");
        let text = CONFIGURATION.replace("DIR", &place).replace("GATEWAY", &gateway.to_string());
        std::fs::write(&configuration, text.replace("MON", &monitor.to_string())).unwrap();
        let endpoint = format!("http://127.0.0.1:{gateway}");
        let mut ceph = Self { programs: Vec::new(), configuration, endpoint, directory };
        ceph.start_programs(&place, monitor);
        Some(ceph)
    }

    fn start_programs(&mut self, place: &str, monitor: u16) {
        let (map, at) = (format!("{place}/monmap"), format!("127.0.0.1:{monitor}"));
        let id = "5c0f4a3e-6c57-4d3e-9f0e-0d9a8a2e7c11";
        self.run("monmaptool", &["--create", "--fsid", id, "--addv", "a", &format!("[v1:{at}]"), &map]);
        self.run("ceph-mon", &["-i", "a", "--mkfs", "--monmap", &map]);
        self.background("ceph-mon", &["-f", "-i", "a", "--public-addr", &at]);
        let osd = "0a8b1f7e-31a4-4e0f-8f15-2f4f1f0a7d22";
        self.run("ceph", &["osd", "new", osd]);
        self.run("ceph-osd", &["-i", "0", "--mkfs", "--osd-uuid", osd]);
        self.run("ceph", &["osd", "crush", "add", "osd.0", "1.0", "root=default", "host=local"]);
        self.background("ceph-osd", &["-f", "-i", "0"]);
        // Each look is a program of half a second.
        eventually("the OSD is up", || {
            let state = self.output("ceph", &["osd", "stat"]).stdout;
            String::from_utf8_lossy(&state).contains("1 up")
        });
        let user = ["-n", "client.rgw.a", "user", "create", "--uid", "test", "--display-name", "test"];
        self.run("radosgw-admin", &[&user[..], &["--access-key", KEY, "--secret", SECRET]].concat());
        self.background("radosgw", &["-f", "-n", "client.rgw.a"]);
        let address = self.endpoint.trim_start_matches("http://").to_owned();
        eventually("the gateway listens", || std::net::TcpStream::connect(&address).is_ok());
        self.run(
            "curl",
            &[
                "--silent",
                "--fail",
                "--aws-sigv4",
                "aws:amz:us-east-1:s3",
                "--user",
                &format!("{KEY}:{SECRET}"),
                "-H",
                "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                "-X",
                "PUT",
                &format!("{}/{BUCKET}", self.endpoint),
            ],
        );
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env("CEPH_CONF", &self.configuration).stdin(Stdio::null());
        command
    }

    fn output(&self, program: &str, arguments: &[&str]) -> Output {
        self.command(program, arguments).output().unwrap()
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let output = self.output(program, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{program} {arguments:?}: {said}");
    }

    fn background(&mut self, program: &str, arguments: &[&str]) {
        let said = std::fs::File::create(self.directory.path().join(format!("{program}.said"))).unwrap();
        let mut command = self.command(program, arguments);
        self.programs.push(command.stdout(Stdio::null()).stderr(said).spawn().unwrap());
    }

    pub(crate) fn open(&self, url: &str) -> Result<Store, StoreError> {
        let keys = Keys { id: KEY.to_owned(), secret: SECRET.to_owned() };
        self.open_with(url, keys)
    }

    fn open_with(&self, url: &str, keys: Keys) -> Result<Store, StoreError> {
        wait(Store::open(url, &Options { endpoint: Some(self.endpoint.clone()), keys: Some(keys) }))
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

fn free_ports() -> [u16; 2] {
    let listeners = [0, 0].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

// rule: Every store keeps the same contracts.
#[test]
fn a_ceph_keeps_all_contracts() {
    let Some(ceph) = Gateway::start() else { return };
    let url = |name: &str| format!("s3://{BUCKET}/{name}");
    let store = ceph.open(&url("objects")).unwrap();
    assert_eq!(store.access(), &Access::ReadWrite);
    objects::contract(&store);
    records::contract(&ceph.open(&url("records")).unwrap());
    volume::contract(&ceph.open(&url("volume")).unwrap());
    // Other processes have their keys and the address from variables.
    let variables =
        [("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_ENDPOINT_URL", &ceph.endpoint)];
    kills::rounds(&url("kills"), &variables, 16);
    let error = ceph.open("s3://absent/x").map(drop).unwrap_err();
    assert!(matches!(error, StoreError::NoBucket { .. }), "{error}");
    let wrong = Keys { id: KEY.to_owned(), secret: "wrong".to_owned() };
    let error = ceph.open_with(&url("x"), wrong).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
}
