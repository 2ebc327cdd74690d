//! Workloads of a machine: jobs of fio job files, readers, NFS clients, and whole simulated runs for figures.
//!
//! Owns: the job file parser (`fio`), jobs (`job`) and their execution (`plan`, `sequence`, `runner`), sites (`site`,
//! `simulated`, `engine_run`), the NFS client (`nfs_client`), runs from description to figures (`simulation`,
//! `outcome`), page touches for cache studies (`touches`).
//! Does not own: the world, its disks and links (the crate `simulator`); the answers that an engine may give
//! (`reference`); the display of figures.
//! Invariants: a description is plain data; a run depends only on it and on the seed.

#![forbid(unsafe_code)]

mod blocks;
mod caller;
mod contents;
mod engine_run;
pub mod fio;
mod group;
mod job;
mod locking;
pub mod nfs_client;
mod offsets;
mod open_tasks;
mod outcome;
mod pace;
mod past_cache;
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
    Amount, BlockSizes, Distribution, Ends, Engine, Job, Logs, More, Pattern, Service, SourceLine, Verify, Zones,
};
pub use workload::{NfsStream, Readers, Replay, Workload};
