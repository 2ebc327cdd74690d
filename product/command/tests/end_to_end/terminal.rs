//! A key for `afflux top` that comes together with a change of size.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::sync::{Arc, Mutex};

use rustix::fs::OFlags;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::scratch::Scratch;
use crate::server::{Server, afflux, eventually};

/// The number of the call that the process waits in; none if it runs.
fn waits_in(process: u32) -> Option<u32> {
    let call = fs::read_to_string(format!("/proc/{process}/syscall")).unwrap();
    call.split(' ').next()?.parse().ok()
}

/// Whether the process has still to be notified of a change of size.
fn is_still_to_be_told(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
    u64::from_str_radix(pending.trim(), 16).unwrap() & 1 << (Signal::WINCH.as_raw() - 1) != 0
}

/// The number of write(2).
const WRITE: u32 = if cfg!(target_arch = "x86_64") { 1 } else { 64 };

/// While the terminal takes no more output, its size changes and then a key comes: the program finds both at once.
#[test]
fn top_takes_a_key_that_comes_together_with_a_change_of_size() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    let mut master: File = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap().into();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal =
        OpenOptions::new().read(true).write(true).custom_flags(OFlags::NOCTTY.bits() as i32).open(name).unwrap();
    let mut rows = 50;
    let mut resize = |master: &File| {
        rows = if rows == 50 { 51 } else { 50 };
        tcsetwinsize(master, Winsize { ws_row: rows, ws_col: 500, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    };
    resize(&master);
    let mut command = Command::new("setsid");
    for (name, value) in afflux(scratch.path()).get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command.args(["-c", env!("CARGO_BIN_EXE_afflux"), "top", "--control"]).arg(&server.control).env("TERM", "xterm");
    command.stdin(terminal.try_clone().unwrap()).stdout(terminal);
    let mut top = match command.spawn() {
        Ok(top) => top,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            afflux_scratch::skipped!("setsid (Debian's util-linux): {error}");
            server.stop();
            return;
        }
        Err(error) => panic!("{error}"),
    };
    drop(command);
    // Each change of size has the whole picture drawn.
    eventually("it waits for the terminal", || {
        resize(&master);
        waits_in(top.id()) == Some(WRITE)
    });
    resize(&master);
    eventually("it was told of the size", || !is_still_to_be_told(top.id()));
    assert_eq!(waits_in(top.id()), Some(WRITE));
    master.write_all(b"?").unwrap();
    let (shown, mut output) = (Arc::<Mutex<String>>::default(), master.try_clone().unwrap());
    let keeping = Arc::clone(&shown);
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = output.read(&mut bytes) {
            keeping.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    });
    // A change of size has all words drawn again, not only changed letters.
    eventually("the keys are explained", || {
        resize(&master);
        shown.lock().unwrap().contains("picture")
    });
    master.write_all(b"?q").unwrap();
    assert_eq!(top.wait().unwrap().code(), Some(0));
    server.stop();
}
