//! The process that unmounts at a mount's end.
//!
//! A server gives up the rights that unmounting takes. So it starts this process before that. The
//! process waits for an order to unmount, and does nothing else.
//!
//! Owns: the process, its orders and its answers.
//! Does not own: unmounting (`afflux_linux_server`), when it is wanted (`serve`).
//! Invariants: root's process can unmount and reach the point, and has no other privilege. Without an order nothing is
//! unmounted: after a kill of the server, programs get errors from the mount and do not write below it, or they wait
//! for the next server.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use afflux_report::failure::{Failure, OrFailed, Outcome};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The hidden command of the process.
pub(crate) const COMMAND: &str = "unmount-at-end";

const ANSWER_DONE: &str = "done";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unmounting {
    /// Only if no program uses it.
    Unused,
    /// At once for new users; the kernel retains it for the others.
    Lazily,
}

impl Unmounting {
    fn word(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Lazily => "lazily",
        }
    }
}

/// The waiting process, as its server sees it.
pub(crate) struct Unmounter {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// The mount's number, once there is a mount.
    mounted: Option<u64>,
    /// A later server goes on with the mount.
    is_persistent: bool,
}

impl Unmounter {
    /// Starts it for a mount point.
    pub(crate) fn start(point: &Path) -> io::Result<Self> {
        let mut child = Command::new("/proc/self/exe")
            .arg(COMMAND)
            .arg(point)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .current_dir("/")
            // Ctrl-C is for the server alone.
            .process_group(0)
            .spawn()?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let answers = answers.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, orders, answers: BufReader::new(answers), mounted: None, is_persistent: false })
    }

    /// From now on there is a mount, with this number.
    pub(crate) fn set_mounted(&mut self, number: u64) {
        self.mounted = Some(number);
    }

    /// From now on the mount outlives this server, unless [`Unmounter::unmount`] is called.
    pub(crate) fn keep(&mut self) {
        self.is_persistent = true;
    }

    /// Unmounts. The error is the host's, in words.
    pub(crate) fn unmount(&mut self, how: Unmounting) -> Result<(), String> {
        let (Some(number), Some(orders)) = (self.mounted, self.orders.as_mut()) else { return Ok(()) };
        let mut answer = String::new();
        let asked = writeln!(orders, "{} {number}", how.word()).and_then(|()| self.answers.read_line(&mut answer));
        match asked {
            Err(error) => Err(error.to_string()),
            Ok(_) if answer.trim() == ANSWER_DONE => {
                self.mounted = None;
                Ok(())
            }
            Ok(_) => Err(answer.trim().to_owned()),
        }
    }
}

impl Drop for Unmounter {
    fn drop(&mut self) {
        if !self.is_persistent {
            // A server that fails at its start leaves no dead mount.
            let _ = self.unmount(Unmounting::Lazily);
        }
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}

/// Carries out the orders on its standard input until that ends.
pub(crate) fn run(point: &Path) -> Outcome {
    afflux_linux_server::keep_right_to_unmount().or_failed("cannot give up privileges")?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // A service manager's signal is for the server, too.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).map_err(Failure::failed)?;
    }
    for order in io::stdin().lines().map_while(Result::ok) {
        let done = match order.split_once(' ').and_then(|(how, number)| Some((how, number.parse().ok()?))) {
            Some((how, number)) => afflux_linux_server::unmount(point, number, how == Unmounting::Lazily.word()),
            None => Err(io::ErrorKind::InvalidInput.into()),
        };
        let answer = done.map_or_else(|error| error.to_string(), |()| ANSWER_DONE.to_owned());
        if writeln!(io::stdout(), "{}", answer.replace('\n', " ")).and_then(|()| io::stdout().flush()).is_err() {
            break;
        }
    }
    Ok(())
}
