//! The locks of one file as programs of the host see them. The host knows one owner: this server, for all its owners.
//!
//! Owns: the seam to the host; the mode of each byte on the host: the strongest mode of its owners; the question of a
//! caller whose lock the host has to allow, the unlocked bytes that the host has yet to see, their order.
//! Does not own: owners and their ranges (`ranges`), the threads that call (`of_file`), the calls themselves (the
//! tree), the bytes that a refused owner gets back (`of_file`).
//! Invariants: nobody calls the host under the table's lock. A call under a lock of a front end's state does not wait.
//! A file has one question at a time, and one call. Unlocked bytes go before the question. The owner of a question has
//! its lock in the table, so that others are refused, until the answer. What the owner unlocks meanwhile does not come
//! back.

use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::locks::holders::{HostQuestion, LockRefusal};
use crate::locks::owner::{HolderId, Lock, LockFamily, LockMode, LockOwner, Span};
use crate::locks::queue::LockWaker;
use crate::locks::ranges::LockedRanges;

/// Most spans that wait to be shown one by one. More become one.
const UNSHOWN_MAX: usize = 64;

/// Bytes and their modes on the host.
type Pieces = Vec<(Span, Option<LockMode>)>;

enum Stage {
    /// The host was not called.
    New,
    Underway,
    /// The host has refused. It may have changed some of the bytes, which go back.
    Refused(LockRefusal),
    /// A conflicting lock is also the answer to a test.
    Answered(Result<(), LockRefusal>),
}

struct Question {
    number: HostQuestion,
    wanted: Lock,
    /// The ranges of the owner that the lock has changed. None for a test, and once they are back.
    before: Option<Vec<Lock>>,
    stage: Stage,
    /// Nobody takes the answer.
    is_given_up: bool,
}

/// A call to the host.
pub(super) enum CallToHost {
    /// The bytes of these numbers were unlocked.
    Show {
        pieces: Pieces,
        up_to: u64,
    },
    Lock {
        wanted: Lock,
        pieces: Pieces,
    },
    /// After a refusal.
    Return {
        pieces: Pieces,
    },
    Test {
        wanted: Lock,
    },
}

/// A program's lock that conflicts with a wanted one.
fn conflict(host: &dyn HostLocks, wanted: &Lock) -> Option<Lock> {
    let (span, mode, process) = host.conflict(wanted.span, wanted.mode)?;
    Some(Lock { owner: PROGRAMS, span, mode, process })
}

impl CallToHost {
    /// Calls the host, which may hang.
    pub(super) fn make(&self, host: &dyn HostLocks) -> Result<(), LockRefusal> {
        match self {
            // A program's lock may conflict with bytes that were locked before the host showed them.
            Self::Show { pieces, .. } | Self::Return { pieces } => {
                for (span, mode) in pieces {
                    let _ = host.set(*span, *mode);
                }
                Ok(())
            }
            Self::Lock { wanted, pieces } => {
                let locked = pieces.iter().try_for_each(|(span, mode)| host.set(*span, *mode));
                locked.map_err(|refusal| match refusal {
                    // If the program has unlocked meanwhile, a lock of the same bytes represents its lock.
                    HostRefusal::Held => LockRefusal::Held(conflict(host, wanted).unwrap_or(Lock {
                        owner: PROGRAMS,
                        process: 0,
                        ..*wanted
                    })),
                    HostRefusal::Failed => LockRefusal::Full,
                })
            }
            Self::Test { wanted } => conflict(host, wanted).map_or(Ok(()), |held| Err(LockRefusal::Held(held))),
        }
    }
}

/// A file's locks on the host. Most files have none.
pub(super) struct OnHost {
    host: Arc<dyn HostLocks>,
    /// A thread makes the calls.
    is_calling: bool,
    question: Option<Question>,
    /// Unlocked bytes that the host has to see.
    unshown: Vec<Span>,
    /// The number of unlocks, and of those that the host has seen.
    noted: u64,
    shown: u64,
    /// Callers that wait for an answer, for the end of another question or for their unlock.
    waiting: Vec<Waker>,
    /// Those to wake.
    woken: Vec<Waker>,
}

impl OnHost {
    /// The host shows the locks of a file from now on. A program retains its own lock, even if it conflicts with these.
    pub(super) fn begin(host: Arc<dyn HostLocks>, ranges: &LockedRanges) -> Box<Self> {
        let (unshown, waiting, woken) = (Vec::new(), Vec::new(), Vec::new());
        let mut new = Self { host, is_calling: false, question: None, unshown, noted: 0, shown: 0, waiting, woken };
        if ranges.len() > 0 {
            new.note(None, Span::WHOLE);
        }
        Box::new(new)
    }

    pub(super) fn get(&self) -> &Arc<dyn HostLocks> {
        &self.host
    }

    /// Whether somebody is about to lock or has asked, or a call is made.
    pub(super) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.host) > 1 || self.is_calling || self.question.is_some()
    }

    /// The host, if a thread is needed that calls it. The caller starts one.
    pub(super) fn begin_calls(&mut self) -> Option<Arc<dyn HostLocks>> {
        let has_question = || matches!(&self.question, Some(Question { stage: Stage::New, .. }));
        if self.is_calling || self.unshown.is_empty() && !has_question() {
            return None;
        }
        self.is_calling = true;
        Some(Arc::clone(&self.host))
    }

    /// The next call of the thread. None ends the calls.
    pub(super) fn next_call(&mut self, ranges: &LockedRanges) -> Option<CallToHost> {
        let pieces = |span: Span| modes(ranges.overlapping(span), span);
        if !self.unshown.is_empty() {
            let pieces = std::mem::take(&mut self.unshown).into_iter().flat_map(pieces).collect();
            return Some(CallToHost::Show { pieces, up_to: self.noted });
        }
        let call = self.question.as_mut().and_then(|question| {
            let wanted = question.wanted;
            match question.stage {
                Stage::New => {
                    question.stage = Stage::Underway;
                    let is_test = question.before.is_none();
                    Some(if is_test {
                        CallToHost::Test { wanted }
                    } else {
                        CallToHost::Lock { wanted, pieces: pieces(wanted.span) }
                    })
                }
                Stage::Refused(_) => Some(CallToHost::Return { pieces: pieces(wanted.span) }),
                Stage::Underway | Stage::Answered(_) => None,
            }
        });
        self.is_calling = call.is_some();
        call
    }

    /// A call has ended. After a refused lock the caller gives the bytes back.
    pub(super) fn called(&mut self, call: &CallToHost, result: Result<(), LockRefusal>) {
        self.wake();
        if let CallToHost::Show { up_to, .. } = call {
            self.shown = *up_to;
            return;
        }
        let Some(question) = &mut self.question else { return };
        question.stage = match (call, result, &question.stage) {
            (CallToHost::Lock { .. }, Err(refusal), _) => Stage::Refused(refusal),
            (CallToHost::Return { .. }, _, Stage::Refused(refusal)) => Stage::Answered(Err(*refusal)),
            (_, result, _) => Stage::Answered(result),
        };
        if question.is_given_up
            && let Stage::Answered(_) = question.stage
        {
            let span = question.wanted.span;
            self.question = None;
            if let CallToHost::Lock { .. } = call {
                self.note(None, span);
            }
        }
    }

    /// The calls are not made: the host stops.
    pub(super) fn lose_calls(&mut self) {
        self.is_calling = false;
        self.unshown.clear();
        self.shown = self.noted;
        match &mut self.question {
            Some(question) if !question.is_given_up => question.stage = Stage::Answered(Err(LockRefusal::Full)),
            _ => self.question = None,
        }
        self.wake();
    }

    /// Whether a question is open.
    pub(super) fn is_asked(&self) -> bool {
        self.question.is_some()
    }

    /// Whether an owner has an open question for a lock.
    pub(super) fn is_asked_for(&self, owner: LockOwner) -> bool {
        self.question.as_ref().is_some_and(|it| it.wanted.owner == owner && it.before.is_some())
    }

    /// Asks for a lock that the owner has in the table already, with the ranges that it `changed`; none is a test.
    pub(super) fn ask(&mut self, number: HostQuestion, wanted: Lock, changed: Option<Vec<Lock>>) {
        self.question = Some(Question { number, wanted, before: changed, stage: Stage::New, is_given_up: false });
    }

    /// Bytes were unlocked in the table, by this owner if all are of one.
    pub(super) fn note(&mut self, owner: Option<LockOwner>, span: Span) {
        self.noted += 1;
        self.unshown.push(span);
        if self.unshown.len() > UNSHOWN_MAX {
            let all = self.unshown.drain(..).reduce(Span::with);
            self.unshown.extend(all);
        }
        if let Some(Question { wanted, before: Some(before), .. }) = &mut self.question
            && Some(wanted.owner) == owner
        {
            *before = before.iter().flat_map(|held| without(held, span)).collect();
        }
    }

    /// The lock that goes back, and the ranges of its owner before it.
    pub(super) fn take_before(&mut self) -> Option<(Lock, Vec<Lock>)> {
        let question = self.question.as_mut()?;
        Some((question.wanted, question.before.take()?))
    }

    /// Whether the answer of a lock was a refusal: its bytes go back.
    pub(super) fn is_refused(&self) -> bool {
        matches!(&self.question, Some(Question { stage: Stage::Refused(_) | Stage::Answered(Err(_)), .. }))
    }

    /// Nobody takes the answer to a question. The table has no lock of it any more.
    pub(super) fn give_up(&mut self) {
        let Some(question) = &mut self.question else { return };
        let span = question.wanted.span;
        // A call for other bytes may have had the new lock among the modes of its bytes.
        let may_be_locked = matches!(question.stage, Stage::New | Stage::Answered(Ok(())));
        match question.stage {
            Stage::Underway | Stage::Refused(_) => question.is_given_up = true,
            Stage::New | Stage::Answered(_) => self.question = None,
        }
        if may_be_locked {
            self.note(None, span);
        }
        self.wake();
    }

    /// As [`OnHost::give_up`], if the holder has asked.
    pub(super) fn give_up_of(&mut self, holder: HolderId) {
        if self.question.as_ref().is_some_and(|it| it.wanted.owner.holder == holder) {
            self.take_before();
            self.give_up();
        }
    }

    /// The wanted lock of an open question.
    pub(super) fn wanted(&self, number: HostQuestion) -> Option<Lock> {
        self.question.as_ref().filter(|it| it.number == number && !it.is_given_up).map(|it| it.wanted)
    }

    /// Ends a question that is answered.
    pub(super) fn take_answer(&mut self, number: HostQuestion) -> Option<(Lock, Result<(), LockRefusal>)> {
        let wanted = self.wanted(number)?;
        let Some(Question { stage: Stage::Answered(answer), .. }) = &self.question else { return None };
        let answer = *answer;
        self.question = None;
        self.wake();
        Some((wanted, answer))
    }

    fn wake(&mut self) {
        self.woken.append(&mut self.waiting);
    }

    /// Those to wake after the table's lock is released.
    pub(super) fn take_woken(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.woken)
    }

    fn poll(&mut self, is_ready: bool, waker: &Waker) -> Poll<()> {
        if is_ready {
            return Poll::Ready(());
        }
        if !self.waiting.iter().any(|known| known.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
        Poll::Pending
    }

    /// Waits for the answer to a question, or for the question's end.
    pub(super) fn poll_answer(&mut self, number: HostQuestion, waker: &Waker) -> Poll<()> {
        let is_answered = matches!(&self.question, Some(Question { stage: Stage::Answered(_), .. }));
        self.poll(is_answered || self.wanted(number).is_none(), waker)
    }

    /// Waits until no question is open.
    pub(super) fn poll_unasked(&mut self, waker: &Waker) -> Poll<()> {
        self.poll(self.question.is_none(), waker)
    }

    /// The number of the last unlock, if the host has not seen it.
    pub(super) fn unshown(&self) -> Option<u64> {
        (self.shown < self.noted).then_some(self.noted)
    }

    /// Waits until the host has seen an unlock.
    pub(super) fn poll_shown(&mut self, unlock: u64, waker: &Waker) -> Poll<()> {
        self.poll(self.shown >= unlock || self.shown == self.noted, waker)
    }
}

/// The parts of a range outside of these bytes.
fn without(held: &Lock, span: Span) -> Vec<Lock> {
    let parts = match held.span.is_overlapping(span) {
        true => [held.span.before(span), held.span.behind(span)],
        false => [Some(held.span), None],
    };
    parts.into_iter().flatten().map(|span| Lock { span, ..*held }).collect()
}

/// The owner that represents the programs of the host. No holder has its number.
pub(super) const PROGRAMS: LockOwner = LockOwner { holder: HolderId(0), number: 0, family: LockFamily::Single };

/// Why the host does not lock bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostRefusal {
    /// A program of the host has a lock.
    Held,
    /// It has no free lock, or cannot lock this file.
    Failed,
}

/// The server's locks of a file on the host. They end with this.
pub trait HostLocks: Send + Sync + 'static {
    /// Has a thread that may hang make calls for this file. Does not wait. A host that stops drops the work.
    fn start(&self, work: Box<dyn FnOnce() + Send>);

    /// Gives bytes a mode in place of their present one; none unlocks. Waits for no program, but may hang with its file
    /// system.
    fn set(&self, span: Span, mode: Option<LockMode>) -> Result<(), HostRefusal>;

    /// A program's lock that conflicts with a wanted one, and the program's process if the host knows it. May hang,
    /// too.
    fn conflict(&self, span: Span, mode: LockMode) -> Option<(Span, LockMode, u32)>;

    /// Has a thread wake a waiter once bytes may be free, if the host has capacity for that wait. Does not wait itself.
    fn wake_when_free(&self, span: Span, mode: LockMode, waker: Arc<dyn LockWaker>);
}

/// Whether a lock is one of a program of the host.
pub(super) fn is_of_program(lock: &Lock) -> bool {
    lock.owner == PROGRAMS
}

/// The strongest mode of each byte of a span, from the first on.
pub(super) fn modes(held: impl Iterator<Item = Lock>, span: Span) -> Vec<(Span, Option<LockMode>)> {
    // Where a mode begins or ends; a lock up to the last offset has no end.
    let mut steps: Vec<(u64, bool, i64)> = Vec::new();
    for lock in held {
        let is_exclusive = lock.mode == LockMode::Exclusive;
        steps.push((lock.span.first.max(span.first), is_exclusive, 1));
        if lock.span.last < span.last {
            steps.push((lock.span.last + 1, is_exclusive, -1));
        }
    }
    steps.sort_unstable();
    let (mut pieces, mut first, mut shared, mut exclusive) = (Vec::new(), span.first, 0, 0);
    let mut add = |first: u64, last: u64, shared: i64, exclusive: i64| {
        let mode = match () {
            () if exclusive > 0 => Some(LockMode::Exclusive),
            () if shared > 0 => Some(LockMode::Shared),
            () => None,
        };
        match pieces.last_mut() {
            Some((before, known)) if *known == mode => *before = Span { last, ..*before },
            _ => pieces.push((Span { first, last }, mode)),
        }
    };
    for (at, is_exclusive, change) in steps {
        if at > first {
            add(first, at - 1, shared, exclusive);
            first = at;
        }
        *(if is_exclusive { &mut exclusive } else { &mut shared }) += change;
    }
    add(first, span.last, shared, exclusive);
    pieces
}

#[cfg(test)]
mod tests;
