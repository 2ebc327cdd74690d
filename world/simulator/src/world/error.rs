//! The reasons for which a run ends without its future's output.
//!
//! Owns: the reasons, and their words.
//! Does not own: finding them (`world`).
//! Invariants: each names the waiting tasks or the failed check.

/// The reason that a run ended without its future's output.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// Nothing is ready and nothing is due: the waiting tasks can never continue.
    Deadlock {
        /// The tasks that wait, as name and number.
        waiting: Vec<String>,
    },
    /// The run passed [`WorldOptions::time_ns_max`](crate::world::WorldOptions::time_ns_max).
    TimeUp {
        /// The tasks that wait, as name and number.
        waiting: Vec<String>,
    },
    /// The run passed [`WorldOptions::steps_max`](crate::world::WorldOptions::steps_max).
    StepsUp {
        /// The tasks that are ready, as name and number.
        ready: Vec<String>,
        /// The virtual time at that point.
        now_ns: u64,
    },
    /// A check failed: see [`World::fail`](crate::world::World::fail).
    Failed {
        /// The failed check.
        what: String,
    },
}

impl std::fmt::Display for RunError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Deadlock { waiting } => {
                write!(out, "deadlock: nothing is ready and no timer is set; waiting: {}", waiting.join(", "))
            }
            Self::TimeUp { waiting } => {
                write!(out, "not done in the virtual time allowed; waiting: {}", waiting.join(", "))
            }
            Self::StepsUp { ready, now_ns } => {
                write!(out, "not done in the steps allowed, now at {now_ns} ns; ready: {}", ready.join(", "))
            }
            Self::Failed { what } => write!(out, "{what}"),
        }
    }
}

impl std::error::Error for RunError {}
