//! One connection: when calls start, which run at once, and the order of replies.
//!
//! Owns: the records received, the calls running, the replies not yet handed out, and the decision whether more input
//! is wanted.
//! Does not own: the work of calls (`procedures`), sockets (the world).
//! Invariants: a call either has its reply or is in `running` or `changing` (or was a stray reply, or waits in
//! `records`). Lack of quota refuses no call: the call is not read yet. A poll starts and finishes a bounded number of
//! calls. Running calls go on while the world takes no output (`a_call_goes_on_while_its_client_takes_no_replies`). A
//! call's cost is charged when it starts and given back when its reply is written; from then on its reply
//! counts, until the world has released it. A call that exceeds the world's limit of bytes waits, unless it is alone;
//! then READs and listings are cut short.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use afflux_frontend::{
    ByteBounds, CallJournal, CallKey, ConnectionQuota, EarlierProgress, HostUsers, Output, OwnerKind, Party, Peer,
    ProtocolError, ProtocolMachine, RecordedCall, trace::TracedOperation,
};
use afflux_volume::{Platform, Volume};
use bytes::{Bytes, BytesMut};
use futures_util::future::{BoxFuture, Either, FutureExt, select};
use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::calls::{Event, Tally};
use crate::limits::{
    CALL_BYTES, CALLS_MAX, CALLS_PER_POLL_MAX, CHARGES_PER_POLL_MAX, LOOK_UP_PATIENCE_NS, READ_BYTES_MAX,
    REPLY_BYTES_PER_POLL_MAX, REPLY_BYTES_SHORT, REQUEST_BYTES_PER_POLL_MAX,
};
use crate::operations::{OnBehalf, Stability, wall_ns};
use crate::server::{Server, TlsUse};
use crate::status::NfsStatus;
use crate::v3::arguments::{self, Arguments, NfsCall};
use crate::v3::mount;
use crate::v3::procedures::{self, FirstObject, WaitingCall};
use crate::v3::reply_cache::{CachedReply, CallOwner, Key, SharedCall};
use crate::v3::side_protocols::{self, MountArguments};
use crate::v4::compound::{self, Compound};
use crate::v4::course::WaitingCompound;
use crate::wire::admission::{Callers, CertifiedUser, NoCaller};
use crate::wire::batch::Batch;
use crate::wire::outbox::{Answered, Asker, PAUSE_NS};
use crate::wire::record;
use crate::wire::reply::{Draft, Reply};
use crate::wire::rpc::{self, Call, Incoming, Refusal};
use crate::workers::{Free, WorkerTask, Workers};

const NFS: u32 = 100_003;
const NFS_VERSION: u32 = 3;
const NFS_VERSION_4: u32 = 4;
const MOUNT: u32 = 100_005;
/// The only procedure of version 4 except NULL.
const COMPOUND: u32 = 1;

/// A running call, and its charge.
struct Charged<F> {
    call: F,
    charge: u64,
}

impl<F: Future + Unpin> Future for Charged<F> {
    type Output = (F::Output, u64);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let charge = self.charge;
        self.call.poll_unpin(cx).map(|reply| (reply, charge))
    }
}

/// Whether the connection's bytes are encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protection {
    None,
    /// The server has asked the client to begin TLS.
    Asked,
    Secured,
}

/// A call in its record.
struct ArrivedCall<'a> {
    call: Call,
    /// The index of the caller.
    caller: usize,
    chunk: &'a record::Chunk,
    record: Range<usize>,
    /// Whether it is the first of a poll.
    is_first: bool,
}

impl ArrivedCall<'_> {
    fn bytes(&self) -> &[u8] {
        self.chunk.bytes(self.record.clone())
    }

    /// The record, beyond the poll.
    fn keep(&self, memory: &mut BytesMut) -> Bytes {
        self.chunk.keep(self.record.clone(), memory)
    }
}

/// The host's answer that a call waits for.
enum HostAnswer {
    /// The groups of a user are known.
    Groups,
    /// The user that the peer's certificate names.
    Certified(CertifiedUser),
}

/// The server's side of one connection. See [`Server::connection`].
pub struct Connection<P: Platform> {
    server: Arc<Server<P>>,
    /// The other end.
    origin: Peer,
    /// The other end's address in canonical form.
    peer: IpAddr,
    party: Party,
    /// The callers of its calls.
    callers: Callers,
    /// The count of the server's admission changes that these callers are based on.
    admitted_as_of: u64,
    protection: Protection,
    records: record::Records,
    /// Calls that may be dropped, since the client will send them again; and compounds, which may not be once they have
    /// begun to change something.
    running: Workers<P>,
    /// Calls that run once and to their end, even if the connection closes.
    changing: FuturesUnordered<Charged<SharedCall>>,
    /// The replies of such calls that ended while the world took no output, each with its call's charge.
    changed: VecDeque<(CachedReply, u64)>,
    /// Charged with the requests and expected replies of the calls in both.
    quota: ConnectionQuota,
    /// Whether a call waits for quota.
    lacks_quota: bool,
    /// The question to the host that the next call waits for.
    looks_up: Option<BoxFuture<'static, HostAnswer>>,
    /// The user that the peer's certificate names, if such users count and the host has answered.
    certified: Option<CertifiedUser>,
    batch: Batch,
    /// The state of its compounds, from the first one on.
    compound: Option<Compound<P>>,
    /// The time of the compounds of this poll, from the first one on.
    now_ns: Option<u64>,
    tally: Tally,
    /// Whether calls are recorded; checked once a poll.
    records_calls: bool,
    /// The recorded calls of this poll.
    recorded: Vec<RecordedCall>,
}

impl<P: Platform> Server<P> {
    /// The server's side of a new connection from `peer`. A drop cancels the calls in progress, except for changes of
    /// names or attributes, which run to their end. A peer that is not admitted also gets a connection, on which each
    /// call is refused.
    pub fn connection(self: &Arc<Self>, peer: impl Into<Peer>) -> Connection<P> {
        let peer = peer.into();
        self.calls.count(Event::Connected);
        Connection::new(Arc::clone(self), peer)
    }
}

impl<P: Platform> Connection<P> {
    fn new(server: Arc<Server<P>>, origin: Peer) -> Self {
        let (peer, party) = (origin.address.to_canonical(), origin.party());
        // This comes before reading the rules: a change in between is then seen twice instead of missed.
        let admitted_as_of = server.admission_changes();
        Self {
            quota: ConnectionQuota::new(server.parties.quota(party)),
            callers: server.callers(&origin, false, None),
            admitted_as_of,
            protection: Protection::None,
            running: Workers::new(Arc::clone(&server.volume), Arc::clone(&server.spare_workers)),
            server,
            origin,
            peer,
            party,
            records: record::Records::default(),
            changing: FuturesUnordered::new(),
            changed: VecDeque::new(),
            lacks_quota: false,
            looks_up: None,
            certified: None,
            batch: Batch::default(),
            compound: None,
            now_ns: None,
            tally: Tally::new(),
            records_calls: false,
            recorded: Vec::new(),
        }
    }

    /// Applies the server's current rules to the next calls. The callers of running calls stay the same.
    fn notice_admission(&mut self) {
        let changes = self.server.admission_changes();
        if changes != self.admitted_as_of || self.callers.are_old() {
            self.admitted_as_of = changes;
            self.find_callers();
        }
    }

    /// Takes the callers of the next calls from the server's current rules.
    fn find_callers(&mut self) {
        self.callers = self.server.callers(&self.origin, self.protection == Protection::Secured, self.certified);
    }

    fn calls_running(&self) -> usize {
        self.running.len() + self.changing.len() + self.changed.len()
    }

    /// Bytes of requests and replies in progress, without records that were not looked at.
    fn bytes_in_progress(&self) -> u64 {
        self.quota.charged() + self.batch.len() as u64 + self.batch.outstanding().bytes()
    }

    /// The bytes of data for a call's reply, which may have up to `wanted`; none if the call must wait for quota. The
    /// first call of a poll gets all available quota, and a call that is alone never waits.
    fn reply_quota(&self, wanted: u32, arrived: &ArrivedCall<'_>) -> Option<u32> {
        let waiting = arrived.chunk.remaining() + arrived.record.len();
        let held = self.held_bytes() + waiting as u64 + CALL_BYTES;
        self.quota.reply_bytes(wanted, REPLY_BYTES_SHORT, held, arrived.is_first, self.is_alone())
    }

    /// Whether nothing is in progress, apart from waiting records.
    fn is_alone(&self) -> bool {
        self.bytes_in_progress() == 0
    }

    /// Whether another call may start. A call that is alone always may.
    fn may_start_call(&self, bounds: ByteBounds) -> bool {
        self.calls_running() < CALLS_MAX && self.quota.may_hold_more(self.bytes_in_progress(), bounds)
    }

    /// Starts calls while there is quota. True if it stopped only because the limits of one poll are reached.
    fn start_calls(&mut self) -> bool {
        (self.lacks_quota, self.now_ns) = (false, None);
        let bounds = self.server.byte_bounds();
        let (mut left, mut bytes) = (CALLS_PER_POLL_MAX, 0);
        while let Some(mut chunk) = self.records.pop() {
            loop {
                let is_full = self.batch.len() >= REPLY_BYTES_PER_POLL_MAX || bytes >= REQUEST_BYTES_PER_POLL_MAX;
                let turn_over = left == 0 || is_full;
                if turn_over || !self.may_start_call(bounds) {
                    self.records.put_back(chunk);
                    return turn_over && self.records.waiting() > 0;
                }
                let Some(record) = chunk.next_record() else { break };
                self.batch.begin();
                if !self.try_start(&chunk, record.clone(), left == CALLS_PER_POLL_MAX) {
                    self.lacks_quota = self.looks_up.is_none();
                    chunk.unread_last(&record);
                    self.records.put_back(chunk);
                    return false;
                }
                left -= 1;
                bytes += record.len();
            }
        }
        false
    }

    /// Starts or refuses the call in a record. `is_first` is true for the first of a poll. False if the call has to
    /// wait.
    fn try_start(&mut self, chunk: &record::Chunk, record: Range<usize>, is_first: bool) -> bool {
        let bytes = chunk.bytes(record.clone());
        match rpc::parse(bytes) {
            Incoming::Call(call) => match self.caller_and_program(&call, bytes) {
                Ok((_, side_protocols::LOCK_PROGRAM)) => self.refuse_lock(&call, bytes),
                Ok((caller, program)) => {
                    let arrived = ArrivedCall { call, caller, chunk, record, is_first };
                    return match program {
                        NFS if arrived.call.version == NFS_VERSION_4 => self.try_start_compound(&arrived),
                        NFS => self.try_start_nfs(&arrived),
                        _ => self.try_start_mount(&arrived),
                    };
                }
                Err(NoCaller::Refused(refusal)) => self.refuse(call.xid, refusal),
                Err(NoCaller::Unknown(uid, host)) => {
                    self.look_up(uid, host);
                    return false;
                }
            },
            Incoming::TlsProbe(probe) => self.answer_probe(&probe, chunk.remaining() == 0),
            Incoming::Refused { xid, refusal } => self.refuse(xid, refusal),
            Incoming::Reply(number) => self.take_answer(number, bytes),
            Incoming::Nothing => self.tally.count(Event::StrayReply),
        }
        true
    }

    /// Takes the client's answer to a call of this server. A client that is busy is called again.
    #[cold]
    fn take_answer(&mut self, number: u32, reply: &[u8]) {
        let answered = self.compound.as_ref().map_or(Answered::Stray, |own| own.outbox.answer(number, reply));
        match answered {
            Answered::Stray => self.tally.count(Event::StrayReply),
            Answered::Settled => {}
            Answered::Postponed(asker) => {
                let platform = Arc::clone(self.server.volume.engine().platform());
                self.server.volume.engine().platform().spawn("call a client again", async move {
                    platform.sleep_until(platform.now().after(PAUSE_NS)).await;
                    asker.upgrade().into_iter().for_each(Asker::call_again);
                });
            }
        }
    }

    /// Asks the client to begin TLS, unless it is not admitted, the server has none, or it has begun already. A
    /// handshake is too much work for a peer whose calls are refused after it. No reply may follow this one in the
    /// clear, and no byte that came before the handshake may count as one of the peer that the handshake proves.
    #[cold]
    fn answer_probe(&mut self, probe: &Call, is_last: bool) {
        let refusal = match self.route(probe) {
            _ if !self.server.is_admitted(&self.origin) => Refusal::WeakCredential,
            Err(refusal) => refusal,
            Ok(_) if probe.procedure != 0 => Refusal::BadCredential,
            Ok(_) => {
                let is_last = is_last && self.records.waiting_bytes() == 0 && self.calls_running() == 0;
                if self.server.tls().is_some() && self.protection == Protection::None && is_last {
                    self.protection = Protection::Asked;
                    return self.batch.writer.start_tls(probe.xid);
                }
                Refusal::RejectedCredential
            }
        };
        self.refuse(probe.xid, refusal);
    }

    /// The index of the call's caller, and the program that it calls.
    fn caller_and_program(&mut self, call: &Call, record: &[u8]) -> Result<(usize, u32), NoCaller> {
        let (from, to) = call.credential;
        let volume = &self.server.volume;
        let caller = self.callers.find(&record[from..to], |uid, gid, groups| volume.caller(uid, gid, groups))?;
        Ok((caller, self.route(call)?))
    }

    /// Asks the host for the groups of the next call's user. A host that does not answer in time does not know the
    /// user.
    #[cold]
    fn look_up(&mut self, uid: u32, host: Arc<dyn HostUsers>) {
        let platform = self.server.volume.engine().platform();
        let patience = platform.sleep_until(platform.now().after(LOOK_UP_PATIENCE_NS));
        self.looks_up = Some(Box::pin(async move {
            if let Either::Right(_) = select(host.look_up(uid), pin!(patience)).await {
                host.give_up(uid);
            }
            HostAnswer::Groups
        }));
    }

    /// Asks the host for the user that the peer's certificate names, at whatever domain. No call is carried out before
    /// the answer.
    #[cold]
    fn look_up_certified(&mut self, user: &str) {
        // Without other users, all calls are carried out as the server's own.
        let Some(host) = self.server.host_users() else { return };
        let name = user.split('@').next().unwrap_or_default().to_owned();
        self.looks_up = Some(Box::pin(async move {
            HostAnswer::Certified(CertifiedUser(host.number_of(OwnerKind::User, &name).await))
        }));
    }

    /// Waits for the host's answer about the next call's user, if it was asked. No later call overtakes that one.
    fn poll_look_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(question) = &mut self.looks_up {
            let answer = std::task::ready!(question.poll_unpin(cx));
            self.looks_up = None;
            if let HostAnswer::Certified(user) = answer {
                self.certified = Some(user);
                self.find_callers();
            }
        }
        Poll::Ready(())
    }

    /// The program that the call's procedure belongs to.
    fn route(&self, call: &Call) -> Result<u32, Refusal> {
        let (known, (low, high)) = match call.program {
            NFS if call.version == NFS_VERSION_4 && self.server.version_4.get().is_some() => {
                (call.procedure <= COMPOUND, (NFS_VERSION, NFS_VERSION_4))
            }
            NFS => {
                let last = if self.server.version_4.get().is_some() { NFS_VERSION_4 } else { NFS_VERSION };
                ((call.procedure as usize) < arguments::PROCEDURES.len(), (NFS_VERSION, last))
            }
            MOUNT => (
                MountArguments::has_procedure(call.version, call.procedure),
                (*side_protocols::MOUNT_VERSIONS.start(), *side_protocols::MOUNT_VERSIONS.end()),
            ),
            side_protocols::LOCK_PROGRAM => (
                side_protocols::is_lock_procedure(call.procedure),
                (side_protocols::LOCK_VERSION, side_protocols::LOCK_VERSION),
            ),
            _ => return Err(Refusal::ProgramUnavailable),
        };
        if !(low..=high).contains(&call.version) {
            return Err(Refusal::ProgramMismatch { low, high });
        }
        if known { Ok(call.program) } else { Err(Refusal::ProcedureUnavailable) }
    }

    fn refuse(&mut self, xid: u32, refusal: Refusal) {
        self.tally.count(Event::Refused(refusal));
        self.batch.writer.refuse(xid, refusal);
    }

    /// Answers a call of the lock service.
    fn refuse_lock(&mut self, call: &Call, record: &[u8]) {
        let mut draft = self.batch.draft(call.xid);
        match side_protocols::answer_lock_call(call.procedure, &record[call.arguments_at..], &mut draft.writer) {
            Ok(()) => {
                self.tally.count(Event::LockService);
                self.batch.end(draft);
            }
            Err(_) => {
                self.batch.give_up(draft);
                self.refuse(call.xid, Refusal::GarbageArguments);
            }
        }
    }

    /// Starts a call of version 3. Without this and the calls that wait, a poll is one function.
    #[inline(never)]
    fn try_start_nfs(&mut self, arrived: &ArrivedCall<'_>) -> bool {
        let (call, bytes) = (&arrived.call, arrived.bytes());
        let Ok(mut asked) = Arguments::decode(call.procedure, bytes, call.arguments_at) else {
            self.refuse(call.xid, Refusal::GarbageArguments);
            return true;
        };
        let wanted = asked.arguments.reply_bytes_max();
        let Some(reply_bytes_max) = self.reply_quota(wanted, arrived) else { return false };
        if self.records_calls {
            record_call(&asked, bytes, &mut self.recorded);
        }
        self.tally.count(Event::Nfs(call.procedure));
        if reply_bytes_max < wanted {
            asked.arguments.shorten(reply_bytes_max);
        }
        let (volume, caller) = (&self.server.volume, &self.callers.get(arrived.caller).caller);
        let mut draft = self.batch.draft(call.xid);
        match procedures::try_answer(volume, caller, bytes, &asked, &mut draft) {
            Ok(()) => {
                let status = self.batch.end(draft);
                self.tally.ended(status);
            }
            Err(object) => self.let_wait(arrived, asked.arguments, object, draft),
        }
        true
    }

    /// Starts a call of version 4.
    fn try_start_compound(&mut self, arrived: &ArrivedCall<'_>) -> bool {
        let Some(service) = self.server.version_4.get() else { return true };
        let (call, bytes) = (&arrived.call, arrived.bytes());
        service.counts.count_compound();
        if call.procedure != COMPOUND {
            let draft = self.batch.draft(call.xid);
            self.batch.end(draft);
            return true;
        }
        let Some(head) = compound::arrived(bytes, call.arguments_at) else {
            self.refuse(call.xid, Refusal::GarbageArguments);
            return true;
        };
        // The connection reads the length of a reply only if it lacks quota for the longest one.
        let quota = match self.reply_quota(READ_BYTES_MAX, arrived) {
            Some(READ_BYTES_MAX) => Some(READ_BYTES_MAX),
            _ => self.reply_quota(head.data_bytes_max(bytes), arrived),
        };
        let Some(data_remaining) = quota else { return false };
        let (volume, known) = (&self.server.volume, self.callers.get(arrived.caller));
        let now_ns = *self.now_ns.get_or_insert_with(|| volume.engine().platform().now().0);
        let compound = self.compound.get_or_insert_with(|| Compound::of_connection(service, self.party));
        let mut draft = self.batch.draft(call.xid);
        compound.begin((self.party, known.uid()), now_ns, bytes, &head, data_remaining, &mut draft);
        if compound.try_answer(volume, &known.caller, bytes, &mut draft) {
            let status = self.batch.end(draft);
            self.tally.ended(status);
            return true;
        }
        let compound = compound.split_off();
        let by = OnBehalf { caller: known.caller.clone(), client: known.client.clone() };
        let mut worker = self.running.take();
        let draft = self.batch.moved(draft, std::mem::take(&mut worker.draft));
        let record = arrived.keep(&mut worker.record);
        let data_bytes_max = data_remaining.min(head.data_bytes_max(&record));
        let charge = CALL_BYTES + record.len() as u64 + u64::from(data_bytes_max);
        self.run(worker, WorkerTask::Compound(WaitingCompound { by, record, compound, draft }), charge);
        true
    }

    /// Has a call carried out that may wait.
    #[inline(never)]
    fn let_wait(&mut self, arrived: &ArrivedCall<'_>, arguments: Arguments, object: FirstObject<P>, draft: Draft) {
        let mut worker = self.running.take();
        let record = arrived.keep(&mut worker.record);
        let charge = CALL_BYTES + record.len() as u64 + u64::from(arguments.reply_bytes_max());
        let known = self.callers.get(arrived.caller);
        let by = OnBehalf { caller: known.caller.clone(), client: known.client.clone() };
        if arguments.needs_cached_reply() {
            self.running.give_back(worker);
            let whose = CallOwner { party: self.party, user: known.uid() };
            let key = self.server.replies.key(self.peer, whose, arrived.call.xid, &record);
            let draft = self.batch.moved(draft, Vec::new());
            self.run_once(key, WaitingCall { by, record, arguments, object, draft }, charge);
        } else {
            let draft = self.batch.moved(draft, std::mem::take(&mut worker.draft));
            self.run(worker, WorkerTask::Call(WaitingCall { by, record, arguments, object, draft }), charge);
        }
    }

    fn try_start_mount(&mut self, arrived: &ArrivedCall<'_>) -> bool {
        let call = &arrived.call;
        let Some(bytes_max) = self.reply_quota(mount::reply_bytes_max(call.procedure), arrived) else { return false };
        let Ok(arguments) = MountArguments::decode(call.procedure, &arrived.bytes()[call.arguments_at..]) else {
            self.refuse(call.xid, Refusal::GarbageArguments);
            return true;
        };
        self.tally.count(Event::Mount(call.procedure));
        let draft = Draft::accepted(call.xid, Vec::new());
        let by = self.callers.get(arrived.caller).caller.clone();
        let server = Arc::clone(&self.server);
        let answer = mount::answer(server, self.peer, by, draft, arguments, bytes_max as usize);
        let worker = self.running.take();
        self.run(worker, WorkerTask::Other(Box::pin(answer)), CALL_BYTES + u64::from(bytes_max));
        true
    }

    fn run(&mut self, worker: Free, work: WorkerTask<P>, charge: u64) {
        self.quota.charge(charge);
        self.running.begin(worker, work, charge);
    }

    /// Runs a call unless it is running or has run; then it gets that call's reply.
    fn run_once(&mut self, key: Key, call: WaitingCall<P>, charge: u64) {
        let server = &self.server;
        let start = || -> BoxFuture<'static, CachedReply> {
            let volume = Arc::clone(&server.volume);
            let journal = server.persisted_replies.clone().map(|journal| (journal, server.replies.hashed(&key)));
            Box::pin(async move {
                match journal {
                    Some((journal, key)) => persisted_reply(&volume, &journal, key, call).await,
                    None => reply_to(&volume, call).await,
                }
            })
        };
        let (call, duplicate) = server.replies.find_or_start(key, start);
        if duplicate {
            self.tally.count(Event::Duplicate);
        }
        self.quota.charge(charge);
        self.changing.push(Charged { call, charge });
    }

    /// Continues running calls and takes the replies of finished ones.
    fn finish_calls(&mut self, cx: &mut Context<'_>) {
        let mut left = CHARGES_PER_POLL_MAX;
        for _ in 0..CALLS_PER_POLL_MAX {
            if self.batch.len() >= REPLY_BYTES_PER_POLL_MAX {
                return;
            }
            if let Poll::Ready(Some((reply, charge))) = self.poll_changed(cx) {
                self.batch.begin();
                self.ended(reply.status, charge);
                self.batch.record(reply.record);
            } else if let Some((reply, charge, mut worker)) = self.running.poll_next(cx, &mut left) {
                self.batch.begin();
                self.ended(reply.status, charge);
                worker.draft = self.batch.reply(reply);
                self.running.give_back(worker);
            } else {
                return;
            }
        }
    }

    /// The reply of a change of names or attributes that has ended, and its charge.
    fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<Option<(CachedReply, u64)>> {
        match self.changed.pop_front() {
            None => self.changing.poll_next_unpin(cx),
            ended => Poll::Ready(ended),
        }
    }

    /// Hands out this server's calls to the client.
    fn call_client(&mut self, cx: &Context<'_>) {
        let Some(compound) = &self.compound else { return };
        for record in compound.outbox.take(cx.waker()) {
            self.batch.begin();
            self.batch.record(record.into());
        }
    }

    fn ended(&mut self, status: NfsStatus, charge: u64) {
        self.quota.give_back(charge);
        self.tally.ended(status);
    }
}

impl<P: Platform> ProtocolMachine for Connection<P> {
    fn receive(&mut self, input: &mut BytesMut) -> Result<(), ProtocolError> {
        self.records.receive(input)
    }

    fn receive_shared(&mut self, piece: &mut Bytes) -> Result<(), ProtocolError> {
        self.records.receive_shared(piece)
    }

    fn needs_input(&self) -> bool {
        // A record that has begun alone is received to its end.
        let is_alone = self.is_alone() && self.records.waiting() == 0;
        let in_progress = if is_alone { 0 } else { self.held_bytes() };
        self.calls_running() + self.records.waiting() < CALLS_MAX
            && self.quota.may_hold_more(in_progress, self.server.byte_bounds())
    }

    fn input_hint(&self, input: &BytesMut) -> usize {
        self.records.lacking(input)
    }

    fn poll_output(&mut self, cx: &mut Context<'_>, output: &mut dyn Output) -> Poll<()> {
        if self.server.gate.poll_open(cx).is_pending() {
            return Poll::Pending;
        }
        self.records_calls = self.server.recording().is_on();
        self.notice_admission();
        // A question that this poll began may have its answer at once.
        let mut turn_over = false;
        while self.poll_look_up(cx).is_ready() {
            turn_over = self.start_calls();
            if self.looks_up.is_none() {
                break;
            }
        }
        self.compound.iter_mut().for_each(Compound::rest);
        if !self.recorded.is_empty() {
            let engine = self.server.volume.engine();
            self.server.recording().note(&mut self.recorded, || engine.platform().now().0);
        }
        let outstanding = self.batch.outstanding().bytes();
        if self.records.waiting() > 0 && !turn_over {
            // The world frees quota by releasing replies, which polls no connection. The waker is registered first and
            // the quota checked again after, so that no release in between is missed.
            self.batch.outstanding().wake_when_fewer(cx.waker());
            let may_start = match self.lacks_quota {
                _ if self.looks_up.is_some() => false,
                true => self.batch.outstanding().bytes() < outstanding || self.is_alone(),
                false => self.may_start_call(self.server.byte_bounds()),
            };
            if may_start {
                cx.waker().wake_by_ref();
            }
        }
        self.finish_calls(cx);
        self.call_client(cx);
        self.tally.add_to(&self.server.calls);
        self.quota.publish(self.held_bytes(), self.server.byte_bounds(), cx.waker());
        if self.batch.len() == 0 {
            if turn_over {
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        }
        self.batch.hand_out(output);
        Poll::Ready(())
    }

    fn poll_calls(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(ended)) = self.changing.poll_next_unpin(cx) {
            self.changed.push_back(ended);
        }
        self.running.poll_all(cx);
    }

    fn calls_in_progress(&self) -> usize {
        self.calls_running() + self.records.waiting()
    }

    fn held_bytes(&self) -> u64 {
        self.bytes_in_progress() + self.records.waiting_bytes() as u64
    }

    fn set_quota(&mut self, bytes: u64) {
        self.quota.set_world_bytes(bytes);
    }

    fn is_short_of_quota(&self) -> bool {
        self.lacks_quota
    }

    fn shrink(&mut self) {
        self.running.shrink();
    }

    fn is_to_be_secured(&self) -> bool {
        self.protection == Protection::Asked
    }

    fn secured(&mut self, user: Option<&str>) {
        self.protection = Protection::Secured;
        self.find_callers();
        let counts = self.server.tls() == Some(TlsUse::CertificateUsers);
        user.filter(|_| counts).into_iter().for_each(|user| self.look_up_certified(user));
    }
}

async fn reply_to<P: Platform>(volume: &Volume<P>, call: WaitingCall<P>) -> CachedReply {
    let Reply { record, status, data: _ } = procedures::carry_out(volume, call).await;
    CachedReply { record: record.into(), status }
}

/// The reply of an earlier server to the same call, or the reply of a call that a later server finds.
async fn persisted_reply<P: Platform>(
    volume: &Volume<P>,
    journal: &Arc<CallJournal>,
    key: CallKey,
    mut call: WaitingCall<P>,
) -> CachedReply {
    let (entry, left) = journal.begin(key, wall_ns(volume), 0);
    let before = left.before(0);
    if let EarlierProgress::Answered { code, bytes, .. } = left {
        let status = NfsStatus::from_code(code).unwrap_or(NfsStatus::Serverfault);
        return CachedReply { record: bytes.into(), status };
    }
    call.by.caller = call.by.caller.keeping(entry.step(0, before));
    let reply = reply_to(volume, call).await;
    entry.answered(reply.status.code(), &reply.record, 1);
    reply
}

/// Records a call that moves bytes or asks for a sync.
fn record_call(call: &NfsCall, record: &[u8], calls: &mut Vec<RecordedCall>) {
    let (operation, extent, bytes, is_durable) = match &call.arguments {
        Arguments::Read(extent) => (TracedOperation::Read, extent, extent.count, false),
        Arguments::Write { extent, stability, .. } => {
            (TracedOperation::Write, extent, extent.count, *stability != Stability::Unstable)
        }
        Arguments::Commit(extent) => (TracedOperation::Sync, extent, 0, false),
        _ => return,
    };
    if let Some(file) = call.handle.and_then(|handle| afflux_volume::handle_hash(&record[handle.range()])) {
        let call = RecordedCall { operation, file, offset: extent.offset, bytes: bytes.into() };
        call.add_to(calls, is_durable);
    }
}

impl<P: Platform> Drop for Connection<P> {
    /// A change that has begun may be done on the host already; the server caches its reply for the client that comes
    /// back. Until the change ends it counts for the party, as it did here.
    fn drop(&mut self) {
        let volume = &self.server.volume;
        if !self.changing.is_empty() {
            let mut changing = std::mem::take(&mut self.changing);
            let mut outliving = self.quota.outlive(changing.iter().map(|call| call.charge).sum());
            let rest = async move {
                while let Some((_, charge)) = changing.next().await {
                    outliving.give_back(charge);
                }
            };
            volume.run_to_the_end("nfs calls without a connection", rest);
        }
        let mut outliving = self.quota.outlive(self.running.lasting_charge());
        if let Some(rest) = self.running.lasting(move |charge| outliving.give_back(charge)) {
            volume.run_to_the_end("nfs compounds without a connection", rest);
        }
    }
}
