//! Runs the exercise over sockets.
//!
//! Owns: a connection for each client, the choice of the next reply.
//! Does not own: the calls and the checks of answers.
//! Invariants: no call waits for another client's answer.

use std::net::SocketAddr;

use afflux_nfs_client::Client;

use super::exercise::Exercise;
use super::plan::{Fault, Plan};
use super::splitmix::Random;

/// The result of an exercise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Operations answered correctly.
    pub operations: u64,
    /// Connections closed with calls in flight, which were sent again.
    pub connections_lost: u64,
}

/// Runs a plan in the directory `root` of the server at `address`. On average once in `lose_one_in` answers (0: never)
/// a client closes its connection and sends its unanswered calls over a new one.
pub fn drive(address: SocketAddr, root: &[u8], plan: Plan, lose_one_in: u64) -> Result<Outcome, Fault> {
    let mut exercise = Exercise::new(plan, root);
    let mut connections = Connections::open(address, &plan)?;
    // These draws are separate from the exercise's own, which depend only on its seed.
    let mut random = Random::new(plan.seed ^ 0x5eed);
    let mut connections_lost = 0;
    while !exercise.is_done() {
        let Some(at) = connections.send(&mut exercise, &mut random)? else { continue };
        if lose_one_in > 0 && random.below(lose_one_in) == 0 {
            connections_lost += 1;
            connections.lose(at, &mut exercise)?;
        } else {
            connections.receive(at, &mut exercise)?;
        }
    }
    Ok(Outcome { operations: exercise.answered(), connections_lost })
}

/// Runs an exercise until `answers` more calls are answered, and leaves others in flight: the returned value keeps
/// their connections open.
pub fn load(exercise: &mut Exercise, address: SocketAddr, answers: u64) -> Result<Connections, Fault> {
    let plan = exercise.plan;
    let mut connections = Connections::open(address, &plan)?;
    let mut random = Random::new(plan.seed ^ 0x5eed);
    let until = exercise.answered() + answers;
    while exercise.answered() < until {
        if let Some(at) = connections.send(exercise, &mut random)? {
            connections.receive(at, exercise)?;
        }
    }
    connections.send(exercise, &mut random)?;
    Ok(connections)
}

/// A connection for each client.
pub struct Connections {
    address: SocketAddr,
    clients: Vec<Client>,
}

fn gone(what: &str) -> impl Fn(afflux_nfs_client::Error) -> Fault {
    move |error| Fault { operation: 0, call: what.to_owned(), what: error.to_string() }
}

impl Connections {
    fn open(address: SocketAddr, plan: &Plan) -> Result<Self, Fault> {
        let clients = (0..plan.clients).map(|_| connect(address)).collect::<Result<_, _>>();
        Ok(Self { address, clients: clients.map_err(gone("connecting"))? })
    }

    /// Sends all calls that may be sent. Returns a drawn client, if it has calls in flight.
    fn send(&mut self, exercise: &mut Exercise, random: &mut Random) -> Result<Option<usize>, Fault> {
        for (at, client) in self.clients.iter_mut().enumerate() {
            while let Some(record) = exercise.next(at) {
                client.send_raw(&record).map_err(gone("sending"))?;
            }
        }
        let at = random.below(self.clients.len() as u64) as usize;
        Ok((exercise.in_flight(at) > 0).then_some(at))
    }

    fn receive(&mut self, at: usize, exercise: &mut Exercise) -> Result<(), Fault> {
        let record = self.clients[at].receive_raw().map_err(gone("receiving"))?;
        exercise.reply(at, &record)
    }

    fn lose(&mut self, at: usize, exercise: &mut Exercise) -> Result<(), Fault> {
        self.clients[at] = connect(self.address).map_err(gone("connecting"))?;
        for record in exercise.lost(at) {
            self.clients[at].send_raw(&record).map_err(gone("sending again"))?;
        }
        Ok(())
    }
}

fn connect(address: SocketAddr) -> Result<Client, afflux_nfs_client::Error> {
    let mut client = Client::connect(address)?;
    client.set_timeout(Some(afflux_nfs_client::check::PATIENCE))?;
    Ok(client)
}
