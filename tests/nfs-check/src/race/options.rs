//! The options of a race.
//!
//! Owns: the programs and the place of the files.
//! Does not own: the words of the command line (`afflux_rig::words`).

use std::path::PathBuf;

use afflux_rig::words::Races;

/// The options of a race.
#[derive(Debug)]
pub struct Options {
    /// The place of a new directory for all files; made if there is none.
    pub directory: PathBuf,
    /// The `afflux` program.
    pub afflux: PathBuf,
    /// The program that mounts a server.
    pub bridge: PathBuf,
    /// The bare loop that reads cold data.
    pub bare: PathBuf,
    /// A quick run is a smoke test, with meaningless figures.
    pub words: Races,
}
