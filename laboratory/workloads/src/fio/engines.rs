//! fio's I/O engines, and the simulator's engine for each.
//!
//! Owns: the names, and an engine's behaviour as caches and disks see it.
//! Does not own: options of engines (`options`).
//! Invariants: names are in order. fio has no engine outside of the table.

use crate::job::Engine;

/// The simulator's treatment of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Likened {
    /// Simulated as this engine.
    To(Engine),
    /// Simulated as this engine, always past the page cache.
    PastCache(Engine),
    /// Simulated as this engine; the text names the part that is not simulated.
    But(Engine, &'static str),
    /// Only approximated by this engine, past the page cache; the text says why.
    Nearly(Engine, &'static str),
    /// Cannot be simulated; the text says why.
    Not(&'static str),
}

use Engine::{Cpu, Libaio, Mmap, Names, Null, Posixaio, Psync, Sync, Uring};
use Likened::{But, Nearly, Not, PastCache, To};

const NETWORK: &str = "it moves bytes over a network and stores none on a disk";
const STORE: &str = "its store is reached over a network, of which only a disk at its end is simulated";
const NAMES: &str = "the cost of names on a disk is not simulated: each call takes a CPU's time alone";
const SIZES: &str = "the cost of sizes and reservations on a disk is not simulated: each call takes a CPU's time alone";

/// Every engine, in the order of names.
#[rustfmt::skip]
pub(super) const ENGINES: &[(&str, Likened)] = &[
    ("cpp_null", To(Null)),
    ("cpuio", To(Cpu)),
    ("dev-dax", PastCache(Psync)),
    ("dfs", Nearly(Libaio, STORE)),
    ("dircreate", But(Names, NAMES)),
    ("dirdelete", But(Names, NAMES)),
    ("dirstat", But(Names, NAMES)),
    ("e4defrag", Not("it has ext4 move files on the disk, and simulated disks have no ext4")),
    ("exec", Not("it runs a program of this host")),
    ("falloc", Nearly(Null, SIZES)),
    ("filecreate", But(Names, NAMES)),
    ("filedelete", But(Names, NAMES)),
    ("filestat", But(Names, NAMES)),
    ("ftruncate", But(Null, SIZES)),
    ("gfapi", Nearly(Psync, STORE)),
    ("gfapi_async", Nearly(Libaio, STORE)),
    ("http", Nearly(Psync, STORE)),
    ("ime_aio", Nearly(Libaio, STORE)),
    ("ime_psync", Nearly(Psync, STORE)),
    ("ime_psyncv", Nearly(Psync, STORE)),
    ("io_uring", To(Uring)),
    ("io_uring_cmd", PastCache(Uring)),
    ("libaio", To(Libaio)),
    ("libblkio", PastCache(Uring)),
    ("libcufile", But(Psync, "the way into a GPU's memory is not simulated")),
    ("libhdfs", Nearly(Psync, STORE)),
    ("libhipfile", But(Psync, "the way into a GPU's memory is not simulated")),
    ("libiscsi", Nearly(Libaio, STORE)),
    ("libpmem", PastCache(Psync)),
    ("librpma_apm_client", Not(NETWORK)),
    ("librpma_apm_server", Not(NETWORK)),
    ("librpma_gpspm_client", Not(NETWORK)),
    ("librpma_gpspm_server", Not(NETWORK)),
    ("libzbc", PastCache(Psync)),
    ("mmap", To(Mmap)),
    ("mtd", PastCache(Psync)),
    ("nbd", Nearly(Libaio, STORE)),
    ("net", Not(NETWORK)),
    ("netsplice", Not(NETWORK)),
    ("nfs", Nearly(Libaio, STORE)),
    ("null", To(Null)),
    ("pmemblk", PastCache(Psync)),
    ("posixaio", To(Posixaio)),
    ("psync", To(Psync)),
    ("pvsync", To(Psync)),
    ("pvsync2", To(Psync)),
    ("rados", Nearly(Libaio, STORE)),
    ("rbd", Nearly(Libaio, STORE)),
    ("rdma", Not(NETWORK)),
    ("sg", PastCache(Psync)),
    ("solarisaio", Nearly(Libaio, "it is another system's; Linux has libaio")),
    ("splice", Nearly(Psync, "bytes that go through a pipe and are not copied are simulated as copied")),
    ("sync", To(Sync)),
    ("vsync", To(Sync)),
    ("windowsaio", Nearly(Libaio, "it is another system's; Linux has libaio")),
    ("xnvme", PastCache(Uring)),
];

/// The treatment of the engine of this name.
pub(super) fn find(name: &str) -> Option<Likened> {
    ENGINES.binary_search_by_key(&name, |engine| engine.0).ok().map(|at| ENGINES[at].1)
}

/// The engines that are simulated exactly, for messages.
pub(super) fn simulated() -> String {
    let names = ENGINES.iter().filter(|engine| matches!(engine.1, To(_) | PastCache(_) | But(..)));
    names.map(|engine| engine.0).collect::<Vec<_>>().join(", ")
}
