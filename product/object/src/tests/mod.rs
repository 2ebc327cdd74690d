//! The volume in a simulated store, by seed.
//!
//! Owns: the list of tests.
//! Does not own: tests of the formats.
//! Invariants: one seed is one run.

mod calm;
mod checked;
mod checker;
mod compressed;
mod log;
mod names;
mod random;
mod run;
mod scenarios;
mod store;
