//! What runs on a machine: jobs of fio job files, readers, NFS clients, and whole simulated runs for figures.
//!
//! Owns: the job file parser (`fio`), what a job is (`job`) and does (`plan`, `sequence`, `runner`), where it
//! runs (`site`: a simulated machine in `simulated`, an engine of another world in `engine_run`), the client of
//! the real NFS server (`nfs_client`), runs from a description to figures (`simulation`, `outcome`), touches of pages for studies of caches (`touches`).
//! Does not own: the world, its disks and links (the crate `simulator`); what an engine may answer
//! (`reference`); how figures are shown.
//! Invariants: a description is plain data; running it depends on it and on the seed alone.

#![forbid(unsafe_code)]

mod blocks;
mod caller;
mod contents;
mod engine_run;
pub mod fio;
mod group;
mod job;
mod left;
mod locking;
pub mod nfs_client;
mod outcome;
mod pace;
mod past_cache;
mod places;
mod plan;
mod recorder;
mod runner;
mod sequence;
mod shares;
mod simulated;
pub mod simulation;
mod site;
pub mod touches;
mod verifying;
mod workload;
mod zipf;

pub use engine_run::{EngineRun, EngineRunHandle};
pub use job::{
    Amount, BlockSizes, Distribution, Ends, Engine, Job, Logs, More, Pattern, Place, Service, Verify, Zones,
};
pub use workload::{NfsStream, Readers, Replay, Workload};
