//! Volumes over the database itself, in virtual time.
//!
//! Owns: the world (`world`), its store (`store`), its processes (`process`), the work of each (`writer`), the
//! knowledge of the observer (`observer`), whole runs (`run`), the trips of an opening (`trips`).
//! Does not own: the rules of the core, which its own tests break one by one (`afflux-object`).
//! Invariants: one seed is one run, to the last request of the database.

mod observer;
mod process;
mod run;
mod store;
mod trips;
mod world;
mod writer;
