//! The groups of the host's users, and the numbers of its users and groups: of its files, and of directory services
//! (LDAP and others).
//!
//! Owns: the questions to the host, the answers and their age.
//! Does not own: which callers have these groups, how long a caller waits (the front ends).
//! Invariants: a question takes one thread of a small pool of its own. An answer is forgotten after [`AGE_S`] at most,
//! and at most [`ANSWERS_MAX`] are there (`answers_are_bounded_and_forgotten`).

use std::collections::HashMap;
use std::ffi::CString;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use afflux_frontend::{HostUsers, OwnerKind, UserGroups};
use afflux_linux_device::pool::WorkerPool;
use nix::unistd::{Group, Uid, User, getgrouplist};

/// The age at which all answers are forgotten.
const AGE_S: u64 = 600;
/// Most answers of each kind that are there.
const ANSWERS_MAX: usize = 16_384;
const THREADS: usize = 4;
const QUESTIONS_MAX: usize = 256;

/// The users of this host. See [`HostUsers`].
pub struct UsersOfHost {
    begun: Instant,
    answers: Arc<Mutex<Answers>>,
    pool: WorkerPool,
}

#[derive(Default)]
struct Answers {
    age: u64,
    of: HashMap<u32, UserGroups>,
    /// None for a name that the host does not know.
    numbers: HashMap<(OwnerKind, Box<str>), Option<u32>>,
}

impl Answers {
    /// Forgets all answers that are old, or too many.
    fn make_space(&mut self, age: u64) {
        if age > self.age || self.of.len() >= ANSWERS_MAX || self.numbers.len() >= ANSWERS_MAX {
            *self = Self { age, ..Self::default() };
        }
    }

    fn note(&mut self, age: u64, uid: u32, groups: UserGroups) {
        self.make_space(age);
        self.of.insert(uid, groups);
    }

    fn note_number(&mut self, age: u64, kind: OwnerKind, name: Box<str>, number: Option<u32>) {
        self.make_space(age);
        self.numbers.insert((kind, name), number);
    }

    fn find(&self, age: u64, uid: u32) -> Option<UserGroups> {
        self.of.get(&uid).filter(|_| self.age == age).cloned()
    }
}

impl UsersOfHost {
    /// Asks the host for a user that most hosts have, so that the libraries for this are loaded before the process
    /// gives up rights. May block.
    pub fn new() -> Self {
        groups_of(0);
        number_of(OwnerKind::Group, "root");
        let pool = WorkerPool::new("groups", THREADS, QUESTIONS_MAX);
        Self { begun: Instant::now(), answers: Arc::default(), pool }
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for UsersOfHost {
    fn default() -> Self {
        Self::new()
    }
}

impl HostUsers for UsersOfHost {
    fn find(&self, uid: u32) -> Option<UserGroups> {
        self.answers().find(self.age(), uid)
    }

    fn look_up(&self, uid: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (age, answers) = (self.age(), Arc::clone(&self.answers));
        Box::pin(self.pool.run(move || {
            let groups = groups_of(uid);
            answers.lock().unwrap_or_else(PoisonError::into_inner).note(age, uid, groups);
        }))
    }

    fn give_up(&self, uid: u32) {
        self.answers().note(self.age(), uid, UserGroups::default());
    }

    fn number_of(&self, kind: OwnerKind, name: &str) -> Pin<Box<dyn Future<Output = Option<u32>> + Send>> {
        let (age, name) = (self.age(), Box::<str>::from(name));
        let known = Some(self.answers()).filter(|answers| answers.age == age);
        if let Some(number) = known.and_then(|answers| answers.numbers.get(&(kind, name.clone())).copied()) {
            return Box::pin(std::future::ready(number));
        }
        let answers = Arc::clone(&self.answers);
        Box::pin(self.pool.run(move || {
            let number = number_of(kind, &name);
            answers.lock().unwrap_or_else(PoisonError::into_inner).note_number(age, kind, name, number);
            number
        }))
    }

    fn age(&self) -> u64 {
        self.begun.elapsed().as_secs() / AGE_S
    }
}

/// Asks the host, also its directory services. Blocks.
fn groups_of(uid: u32) -> UserGroups {
    let Ok(Some(user)) = User::from_uid(Uid::from_raw(uid)) else { return UserGroups::default() };
    let first = user.gid.as_raw();
    let listed = CString::new(user.name).ok().and_then(|name| getgrouplist(&name, user.gid).ok()).unwrap_or_default();
    let further = listed.into_iter().map(|group| group.as_raw()).filter(|group| *group != first).collect();
    UserGroups { gid: Some(first), further }
}

/// Asks the host, also its directory services. Blocks.
fn number_of(kind: OwnerKind, name: &str) -> Option<u32> {
    match kind {
        OwnerKind::User => User::from_name(name).ok().flatten().map(|user| user.uid.as_raw()),
        OwnerKind::Group => Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw()),
    }
}

#[cfg(test)]
mod tests;
