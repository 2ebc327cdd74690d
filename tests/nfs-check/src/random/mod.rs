//! Random operations of several clients on a few files, like fsx, against a model of each file.
//!
//! The same operations run over sockets against any server (`drive`) and over the simulator's links. Operations are in
//! flight together and overlap. Lost connections, ended clients and killed servers may interrupt them; the model then
//! knows the possible values of each byte.
//!
//! Owns: the names that users see.
//! Does not own: the calls in flight (`exercise`), the draw of operations (`draw`), the names and models of the files
//! (`file`); the valid contents of a file after overlapping changes (`afflux_reference::FileModel`).

mod draw;
mod drive;
mod exercise;
mod file;
mod plan;
mod splitmix;

pub use drive::{Connections, Outcome, drive, load};
pub use exercise::Exercise;
pub use plan::{Fault, Plan};
pub(crate) use splitmix::Random;
