//! A load of changes of names: clients that each work in a directory of their own, as fast as they are answered.
//!
//! Owns: the clients' threads, the steps that all take together, the clock readings.
//! Does not own: the calls (`procedures`), comparing servers.
//! Invariants: each client has one call in flight, as a program on a mount has. All clients begin a step together; it
//! ends with the last of them. What was made is removed again if nothing fails.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::{Client, Error};
use crate::procedures::{Change, Creation};
use crate::results::Handle;

/// What to do.
#[derive(Clone, Debug)]
pub struct NamesLoad {
    /// Where NFS is served.
    pub nfs: SocketAddr,
    /// A directory in which each client makes its own.
    pub directory: Handle,
    /// How many clients there are, each with a connection.
    pub clients: usize,
    /// How many files each makes.
    pub files: usize,
}

/// How fast one kind of call was answered, of all clients together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepRate {
    /// Which.
    pub step: &'static str,
    /// How many calls were answered.
    pub calls: usize,
    /// From the first client's first to the last one's last.
    pub elapsed: Duration,
}

impl StepRate {
    /// Calls a second.
    pub fn rate(&self) -> f64 {
        self.calls as f64 / self.elapsed.as_secs_f64()
    }
}

/// What all clients do with each of their files, one after the other.
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

/// A file that is worked on.
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
    /// Does it. Blocks until all is done.
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

    /// One client: when it began and ended each step.
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
            // Who has failed still meets the others.
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
