//! A Ceph with an S3 gateway, which a program of its own runs.
//!
//! Owns: the process, its lines; kills of the gateway at an interval.
//! Does not own: the cluster and its gateway (`tests/gateway/src/main.rs`).
//! Invariants: the cluster ends with the value. After [`Kills::end`] the gateway answers.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};

pub(super) struct Gateway {
    child: Child,
    lines: BufReader<ChildStdout>,
}

/// The way to its bucket.
#[derive(Clone)]
pub(super) struct Bucket {
    pub(super) endpoint: String,
    pub(super) name: String,
    pub(super) key: String,
    pub(super) secret: String,
}

impl Gateway {
    /// Starts a cluster. It takes some twenty seconds.
    pub(super) fn start(program: &Path) -> Result<(Self, Bucket)> {
        let mut command = Command::new(program);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("the gateway's program")?;
        let lines = BufReader::new(child.stdout.take().context("its output")?);
        let mut gateway = Self { child, lines };
        let said = gateway.hear()?;
        let words: Vec<String> = said.split(' ').map(str::to_owned).collect();
        let Ok([endpoint, name, key, secret]) = <[String; 4]>::try_from(words) else {
            bail!("the gateway says {said}");
        };
        Ok((gateway, Bucket { endpoint, name, key, secret }))
    }

    /// Kills the gateway, and starts it again.
    fn restart(&mut self) -> Result<()> {
        let stdin = self.child.stdin.as_mut().context("the gateway's input")?;
        stdin.write_all(b"restart\n").context("the gateway's program")?;
        match self.hear()?.as_str() {
            "restarted" => Ok(()),
            said => bail!("the gateway says {said}"),
        }
    }

    fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).context("the gateway's output")?;
        line.strip_suffix('\n').map(str::to_owned).context("the gateway's program ended")
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Kills of the gateway, one after the other.
pub(super) struct Kills {
    stop: Sender<()>,
    thread: JoinHandle<Result<Gateway>>,
    count: Arc<AtomicU64>,
}

impl Kills {
    pub(super) fn start(mut gateway: Gateway, every: Duration) -> Self {
        let ((stop, stopped), count) = (channel(), Arc::<AtomicU64>::default());
        let of_thread = Arc::clone(&count);
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                of_thread.fetch_add(1, Ordering::Relaxed);
                gateway.restart()?;
            }
            Ok(gateway)
        });
        Self { stop, thread, count }
    }

    /// Kills until now.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Kills no more.
    pub(super) fn end(self) -> Result<Gateway> {
        let _ = self.stop.send(());
        self.thread.join().ok().context("the kills")?
    }
}
