//! Parts of a bounded whole that users take.
//!
//! Owns: the part of each user, the rule for one more.
//! Does not own: the things taken: bytes of messages (`messages`), open files (front ends).
//! Invariants: a user under the rule takes at most about half of the rest that others leave. So no user takes all, and
//! a lone user has the most.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A bounded whole, and the part of each user.
pub struct FairQuotas {
    of_users: HashMap<u32, usize>,
    taken: usize,
    most: usize,
}

impl FairQuotas {
    /// Nothing is taken of `most`.
    pub fn new(most: usize) -> Self {
        Self { of_users: HashMap::new(), taken: 0, most }
    }

    /// All that is taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// The part that nobody has taken.
    pub fn available(&self) -> usize {
        self.most.saturating_sub(self.taken)
    }

    /// Whether a user under the rule may take more.
    pub fn may_take(&self, user: u32) -> bool {
        self.may_take_of(user, self.available())
    }

    /// As [`FairQuotas::may_take`], with `available` parts for all users: others outside of this table take parts, too.
    pub fn may_take_of(&self, user: u32, available: usize) -> bool {
        self.of_users.get(&user).copied().unwrap_or_default() < available.min(self.available())
    }

    /// Takes a part, permitted or not.
    pub fn take(&mut self, user: u32, count: usize) {
        *self.of_users.entry(user).or_default() += count;
        self.taken += count;
    }

    /// Gives back what was taken.
    pub fn give_back(&mut self, user: u32, count: usize) {
        self.taken -= count;
        if let Entry::Occupied(mut part) = self.of_users.entry(user) {
            *part.get_mut() -= count;
            if *part.get() == 0 {
                part.remove();
            }
        }
    }
}
