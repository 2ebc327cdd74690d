//! A network workload: a client that writes a file to the real NFS server.
//!
//! The server's protocol machine, volume and engine are the real ones. The client is a model of Linux's client, with
//! its dirty limit, its WRITEs in flight and its COMMITs (`window`). A simulated link connects them.
//!
//! Owns: the client's calls in flight and its figures; the server's end of the link.
//! Does not own: the order of calls (`window`), bytes (`wire`), the link, the server.
//! Invariants: calls in flight are bounded; the client reconnects a bounded number of times; every page sent carries
//! its stamp.

mod error;
mod window;
mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use afflux_engine::{Nanos, Platform};
use afflux_nfs::Server;
use afflux_reference::{Ending, StampLook, StampModel, StampWrite};
use afflux_simulator::{Link, LinkEnd, SimPlatform, serve_machine};
use bytes::{Bytes, BytesMut};
use futures_util::future::{AbortHandle, Either, abortable, select};
use nfs3_types::nfs3::{COMMIT3resfail, COMMIT3resok, WRITE3resfail, WRITE3resok, nfs_fh3};

use error::DIALS_MAX;
pub use error::NfsClientError;
use window::{Action, Range, Window};
use wire::Records;

/// Wait before an attempt to reconnect.
const DIAL_NS: u64 = Nanos::SECOND;

/// Options of the client.
#[derive(Clone, Debug)]
pub struct NfsClientOptions {
    /// The name of the file that it creates, in the export's root.
    pub name: String,
    /// Bytes that it writes.
    pub file_bytes: u64,
    /// Bytes of one WRITE: 1 to 1 MiB.
    pub record_bytes: u32,
    /// Limit of dirty or uncommitted bytes, at which it COMMITs and waits.
    pub dirty_limit_bytes: u64,
    /// WRITEs in flight: 1 or more.
    pub in_flight: u32,
}

impl Default for NfsClientOptions {
    /// 1 GB in WRITEs of 32 KiB, 64 in flight, a dirty limit of 100 MB: the setup that was measured for seed S4.
    fn default() -> Self {
        Self {
            name: "file".to_owned(),
            file_bytes: 1_000_000_000,
            record_bytes: 32 << 10,
            dirty_limit_bytes: 100_000_000,
            in_flight: 64,
        }
    }
}

/// The figures of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NfsClientOutcome {
    /// Bytes written and committed.
    pub bytes: u64,
    /// From the first WRITE to the answer of the last COMMIT.
    pub elapsed_ns: u64,
    /// Duration of each COMMIT, during which the program stood still.
    pub commit_waits_ns: Vec<u64>,
    /// The time of each COMMIT's answer, in virtual time.
    pub commits_at_ns: Vec<u64>,
    /// WRITEs sent.
    pub writes: u64,
    /// The longest duration of a WRITE.
    pub write_ns_max: u64,
    /// The sum of the durations of WRITEs.
    pub write_ns_sum: u64,
    /// Bytes sent more than once, because the verifier changed or the connection was lost.
    pub resent_bytes: u64,
    /// Connections lost.
    pub connections_lost: u32,
}

impl NfsClientOutcome {
    /// Bytes per second over the whole time, including COMMITs.
    pub fn bytes_per_second(&self) -> u64 {
        let ns = u128::from(self.elapsed_ns.max(1));
        (u128::from(self.bytes) * u128::from(Nanos::SECOND) / ns) as u64
    }
}

/// A server at the far end of a link.
pub struct NfsEntry {
    platform: Arc<SimPlatform>,
    link: Link,
    server: Mutex<Option<Arc<Server<SimPlatform>>>>,
    connections: Mutex<Vec<AbortHandle>>,
}

impl NfsEntry {
    /// Serves every connection over the link.
    pub fn new(platform: &Arc<SimPlatform>, link: Link, server: Arc<Server<SimPlatform>>) -> Arc<Self> {
        Arc::new(Self {
            platform: Arc::clone(platform),
            link,
            server: Mutex::new(Some(server)),
            connections: Mutex::default(),
        })
    }

    /// The link.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// From now on another server answers, or none. Existing connections stay with their server.
    pub fn replace_server(&self, server: Option<Arc<Server<SimPlatform>>>) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = server;
    }

    /// Ends all connections at once, as when a server is killed.
    pub fn close_connections(&self) {
        let connections = std::mem::take(&mut *self.connections.lock().unwrap_or_else(PoisonError::into_inner));
        connections.iter().for_each(AbortHandle::abort);
    }

    /// A new connection; `None` while there is no server.
    fn dial(&self) -> Option<LinkEnd> {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let (near, far) = self.link.connect();
        let machine = server.connection(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
        let (serving, handle) = abortable(serve_machine(machine, far));
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.retain(|connection| !connection.is_aborted());
        connections.push(handle);
        self.platform.spawn("nfs server", async move {
            // Our client's calls are well-formed; a client that violated the protocol would see the end of the stream.
            let _ = serving.await;
        });
        Some(near)
    }
}

/// An answered call of the client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) sent_ns: u64,
    pub(crate) ended_ns: u64,
    /// Bytes of a WRITE; `None` for a COMMIT.
    pub(crate) written: Option<u64>,
}

/// Called for every answer.
pub(crate) type Witness = Box<dyn Fn(Answered) + Send>;

enum InFlight {
    Write { range: Range, write: StampWrite, sent_ns: u64 },
    Commit { look: StampLook, sent_ns: u64 },
}

/// The connection is gone.
struct Lost;

enum ClientStop {
    Lost,
    Error(NfsClientError),
}

impl<E: Into<NfsClientError>> From<E> for ClientStop {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl From<Lost> for ClientStop {
    fn from(_: Lost) -> Self {
        Self::Lost
    }
}

/// The client.
pub struct NfsClient {
    platform: Arc<SimPlatform>,
    entry: Arc<NfsEntry>,
    options: NfsClientOptions,
    model: Arc<Mutex<StampModel>>,
    window: Window,
    xid: u32,
    file: Option<nfs_fh3>,
    end: Option<LinkEnd>,
    received: BytesMut,
    outgoing: Bytes,
    records: Records,
    in_flight: BTreeMap<u32, InFlight>,
    outcome: NfsClientOutcome,
    begun_ns: u64,
    witness: Option<Witness>,
    /// The time at which it stops.
    stop_ns: u64,
}

impl NfsClient {
    /// A client that writes according to `options`. `model` receives every WRITE and COMMIT, for checks of the server's
    /// or its disk's data.
    ///
    /// # Panics
    /// When the options have impossible sizes.
    pub fn new(
        platform: &Arc<SimPlatform>,
        entry: &Arc<NfsEntry>,
        options: NfsClientOptions,
        model: Arc<Mutex<StampModel>>,
    ) -> Self {
        assert!((1..=afflux_nfs::limits::WRITE_BYTES_MAX).contains(&options.record_bytes), "{options:?}");
        assert!(options.in_flight > 0, "{options:?}");
        let window =
            Window::new(options.file_bytes, options.record_bytes, options.dirty_limit_bytes, options.in_flight);
        Self {
            platform: Arc::clone(platform),
            entry: Arc::clone(entry),
            options,
            model,
            window,
            xid: 0,
            file: None,
            end: None,
            received: BytesMut::new(),
            outgoing: Bytes::new(),
            records: Records::default(),
            in_flight: BTreeMap::new(),
            outcome: NfsClientOutcome::default(),
            begun_ns: 0,
            witness: None,
            stop_ns: u64::MAX,
        }
    }

    /// Sets a witness, which is called for every WRITE and COMMIT as it is answered.
    pub(crate) fn witnessed(self, witness: Witness) -> Self {
        Self { witness: Some(witness), ..self }
    }

    /// Ends its program at this instant: nothing more is sent or committed.
    pub(crate) fn stopped_at(self, stop_ns: u64) -> Self {
        Self { stop_ns, ..self }
    }

    /// Creates the file, writes it, and commits it.
    pub async fn run(mut self) -> Result<NfsClientOutcome, NfsClientError> {
        if !self.run_to_stop().await? {
            self.forget_calls();
            return Ok(self.outcome);
        }
        self.outcome.bytes = self.options.file_bytes;
        self.outcome.elapsed_ns = self.platform.now().0 - self.begun_ns;
        self.outcome.resent_bytes = self.window.resent_bytes();
        Ok(self.outcome)
    }

    /// True if it finished before it was stopped.
    async fn run_to_stop(&mut self) -> Result<bool, NfsClientError> {
        if self.stop_ns == u64::MAX {
            return self.run_on().await.map(|()| true);
        }
        let (platform, stop_ns) = (Arc::clone(&self.platform), self.stop_ns);
        match select(pin!(self.run_on()), pin!(platform.sleep_until(Nanos(stop_ns)))).await {
            Either::Left((ended, _)) => ended.map(|()| true),
            Either::Right(_) => Ok(false),
        }
    }

    async fn run_on(&mut self) -> Result<(), NfsClientError> {
        let mut dials = 0;
        loop {
            match self.run_connected().await {
                Ok(()) => return Ok(()),
                Err(ClientStop::Error(error)) => return Err(error),
                Err(ClientStop::Lost) => {}
            }
            if self.end.take().is_some() {
                self.outcome.connections_lost += 1;
            }
            self.forget_calls();
            dials += 1;
            if dials == DIALS_MAX {
                return Err(NfsClientError::NoServer);
            }
            self.platform.sleep_until(self.platform.now().after(DIAL_NS)).await;
        }
    }

    async fn run_connected(&mut self) -> Result<(), ClientStop> {
        self.end = Some(self.entry.dial().ok_or(Lost)?);
        if self.file.is_none() {
            let xid = self.next_xid();
            let root = wire::mounted(&self.ask(xid, wire::mount(xid, "/")?).await?)?;
            let xid = self.next_xid();
            let call = wire::create(xid, root, &self.options.name)?;
            self.file = Some(wire::created(&self.ask(xid, call).await?)?);
            self.begun_ns = self.platform.now().0;
        }
        poll_fn(|cx| self.poll(cx)).await
    }

    fn next_xid(&mut self) -> u32 {
        self.xid += 1;
        self.xid
    }

    fn end(&self) -> Result<&LinkEnd, Lost> {
        self.end.as_ref().ok_or(Lost)
    }

    /// Makes one call while no other is in flight.
    async fn ask(&mut self, xid: u32, call: Bytes) -> Result<Vec<u8>, ClientStop> {
        self.end()?.send(call).await.map_err(|_| Lost)?;
        loop {
            if let Some(record) = wire::next_record(&mut self.received)? {
                let (answered, results) = wire::open_reply(&record)?;
                if answered != xid {
                    return Err(NfsClientError::malformed("it is to no call in flight").into());
                }
                return Ok(results.to_vec());
            }
            let piece = self.end()?.receive().await.ok_or(Lost)?;
            self.received.extend_from_slice(&piece);
        }
    }

    /// Sends and receives as much as possible now; ready when everything is committed.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientStop>> {
        loop {
            let mut moved = self.receive(cx)?;
            if self.outgoing.is_empty() {
                match self.window.next() {
                    Action::Write(range) => self.write(range)?,
                    Action::Commit => self.commit()?,
                    Action::Wait => {}
                    Action::Finished => return Poll::Ready(Ok(())),
                }
            }
            if !self.outgoing.is_empty() {
                let mut outgoing = std::mem::take(&mut self.outgoing);
                match self.end()?.poll_send(cx, &mut outgoing) {
                    Poll::Ready(Ok(())) => moved = true,
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(ClientStop::Lost)),
                    Poll::Pending => self.outgoing = outgoing,
                }
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, ClientStop> {
        let mut moved = false;
        while let Poll::Ready(piece) = self.end()?.poll_receive(cx) {
            let piece = piece.ok_or(Lost)?;
            self.received.extend_from_slice(&piece);
            while let Some(record) = wire::next_record(&mut self.received)? {
                let (xid, results) = wire::open_reply(&record)?;
                self.answered(xid, results)?;
            }
            moved = true;
        }
        Ok(moved)
    }

    fn write(&mut self, range: Range) -> Result<(), ClientStop> {
        let (file, xid) = (self.file.clone().ok_or(Lost)?, self.next_xid());
        let write = self.with_model(|model| model.begin_write(range.offset, range.len.into()));
        self.outgoing = self.records.write(xid, file, range.offset, range.len, |data| write.stamp(0, data))?;
        self.outcome.writes += 1;
        let sent_ns = self.platform.now().0;
        self.in_flight.insert(xid, InFlight::Write { range, write, sent_ns });
        Ok(())
    }

    fn commit(&mut self) -> Result<(), ClientStop> {
        let (file, xid) = (self.file.clone().ok_or(Lost)?, self.next_xid());
        self.outgoing = wire::commit(xid, file)?;
        let look = self.with_model(StampModel::begin_sync);
        let sent_ns = self.platform.now().0;
        self.in_flight.insert(xid, InFlight::Commit { look, sent_ns });
        Ok(())
    }

    fn with_model<T>(&self, change: impl FnOnce(&mut StampModel) -> T) -> T {
        change(&mut self.model.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn answered(&mut self, xid: u32, results: &[u8]) -> Result<(), ClientStop> {
        let now_ns = self.platform.now().0;
        match self.in_flight.remove(&xid) {
            None => Err(NfsClientError::malformed("it is to no call in flight").into()),
            Some(InFlight::Write { range, write, sent_ns }) => {
                let WRITE3resok { count, verf, .. } = wire::results::<_, WRITE3resfail>("WRITE", results)?;
                let ending = if count == range.len { Ending::Done } else { Ending::Failed };
                self.with_model(|model| model.end_write(write, ending));
                self.window.written(range, count, u64::from_be_bytes(verf.0));
                let took_ns = now_ns - sent_ns;
                self.outcome.write_ns_max = self.outcome.write_ns_max.max(took_ns);
                self.outcome.write_ns_sum += took_ns;
                self.tell(Answered { sent_ns, ended_ns: now_ns, written: Some(count.into()) });
                Ok(())
            }
            Some(InFlight::Commit { look, sent_ns }) => {
                let COMMIT3resok { verf, .. } = wire::results::<_, COMMIT3resfail>("COMMIT", results)?;
                let all = self.window.committed(u64::from_be_bytes(verf.0));
                self.with_model(|model| if all { model.end_sync(look, 0, u64::MAX) } else { model.end_look(look) });
                self.outcome.commit_waits_ns.push(now_ns - sent_ns);
                self.tell(Answered { sent_ns, ended_ns: now_ns, written: None });
                self.outcome.commits_at_ns.push(now_ns);
                Ok(())
            }
        }
    }

    fn tell(&self, answered: Answered) {
        if let Some(witness) = &self.witness {
            witness(answered);
        }
    }

    /// The connection is gone; the fate of the calls in flight is unknown.
    fn forget_calls(&mut self) {
        (self.received, self.outgoing) = (BytesMut::new(), Bytes::new());
        let mut again = VecDeque::new();
        for call in std::mem::take(&mut self.in_flight).into_values() {
            match call {
                InFlight::Write { range, write, .. } => {
                    self.with_model(|model| model.end_write(write, Ending::Abandoned));
                    again.push_back(range);
                }
                InFlight::Commit { look, .. } => self.with_model(|model| model.end_look(look)),
            }
        }
        self.window.disconnected(again);
    }
}
