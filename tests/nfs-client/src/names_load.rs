//! A load of changes of names by clients that each work in their own directory, as fast as the answers come.
//!
//! Owns: the clients' threads, the common steps, the clock readings.
//! Does not own: the calls (`procedures`), comparison of servers.
//! Invariants: each client has one call in flight, like a program on a mount. All clients begin a step together, and
//! the step ends with the last of them. Everything created is removed again if nothing fails.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::{Client, Error};
use crate::procedures::{Change, Creation};
use crate::results::Handle;

/// The options of the load.
#[derive(Clone, Debug)]
pub struct NamesLoad {
    /// The address of NFS.
    pub nfs: SocketAddr,
    /// The directory in which each client creates its own.
    pub directory: Handle,
    /// The number of clients, each with a connection.
    pub clients: usize,
    /// The number of files of each client.
    pub files: usize,
}

/// The rate of one kind of call, for all clients together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepRate {
    /// The step.
    pub step: &'static str,
    /// Answered calls.
    pub calls: usize,
    /// From the first client's first call to the end of the last client's last call.
    pub elapsed: Duration,
}

impl StepRate {
    /// Calls per second.
    pub fn rate(&self) -> f64 {
        self.calls as f64 / self.elapsed.as_secs_f64()
    }
}

/// The steps of all clients with each of their files, one after the other.
const STEPS: [(&str, Step); 4] = [
    ("create", |client, file| {
        let made = client.create(file.directory, &file.name(), Creation::Guarded(Change::default()))?;
        *file.handle = made.handle.unwrap_or_default();
        Ok(())
    }),
    ("chmod", |client, file| {
        let change = Change { mode: Some(0o640), ..Change::default() };
        client.setattr(file.handle, change, None).map(drop)
    }),
    ("rename", |client, file| {
        client.rename((file.directory, &file.name()), (file.directory, &file.new_name())).map(drop)
    }),
    ("unlink", |client, file| client.remove(file.directory, &file.new_name()).map(drop)),
];

type Step = fn(&mut Client, &mut Worked<'_>) -> Result<(), Error>;

/// The file of a step.
struct Worked<'a> {
    directory: &'a [u8],
    number: usize,
    handle: &'a mut Handle,
}

impl Worked<'_> {
    fn name(&self) -> Vec<u8> {
        format!("file-{}", self.number).into_bytes()
    }

    fn new_name(&self) -> Vec<u8> {
        format!("new-{}", self.number).into_bytes()
    }
}

impl NamesLoad {
    /// Runs the load. Blocks until all is done.
    ///
    /// # Errors
    /// The first that a client met.
    pub fn run(&self) -> Result<Vec<StepRate>, Error> {
        let together = Barrier::new(self.clients);
        let spans = thread::scope(|scope| {
            let clients: Vec<_> = (0..self.clients)
                .map(|number| {
                    scope.spawn({
                        let together = &together;
                        move || self.one(number, together)
                    })
                })
                .collect();
            let join = |client: thread::ScopedJoinHandle<'_, _>| {
                client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            clients.into_iter().map(join).collect::<Result<Vec<_>, Error>>()
        })?;
        let steps = STEPS.iter().enumerate().map(|(at, (step, _))| {
            let began = spans.iter().map(|spans| spans[at].0).min();
            let ended = spans.iter().map(|spans| spans[at].1).max();
            let elapsed = began.zip(ended).map_or(Duration::ZERO, |(began, ended)| ended - began);
            StepRate { step, calls: self.clients * self.files, elapsed }
        });
        Ok(steps.collect())
    }

    /// Runs one client; returns the begin and the end of each step.
    fn one(&self, number: usize, together: &Barrier) -> Result<Vec<(Instant, Instant)>, Error> {
        let name = format!("client-{number}");
        let begun = Client::connect(self.nfs).and_then(|mut client| {
            let made = client.mkdir(&self.directory, name.as_bytes(), Change::default())?;
            Ok((client, made.handle.unwrap_or_default()))
        });
        let mut spans = Vec::new();
        let mut handles = vec![Handle::default(); self.files];
        let mut result = begun;
        for (_, step) in STEPS {
            // A client that has failed still meets the others.
            together.wait();
            let began = Instant::now();
            result = result.and_then(|(mut client, directory)| {
                for (number, handle) in handles.iter_mut().enumerate() {
                    step(&mut client, &mut Worked { directory: &directory, number, handle })?;
                }
                Ok((client, directory))
            });
            spans.push((began, Instant::now()));
        }
        let (mut client, _) = result?;
        client.rmdir(&self.directory, name.as_bytes())?;
        Ok(spans)
    }
}
