//! The race inside one process: the library's calls beside the kernel's, a mapping and other caches.
//!
//! Owns: the order of the cases, their memory.
//! Does not own: the contenders (`kernel`, `mapped`, `maps`, `own`), the contents of each case (its module),
//! their results (`stage`), measurement (`rounds`).
//! Invariants: contenders of a case work on equally many bytes, each in its own memory.

mod files;
mod hits;
mod kernel;
mod mapped;
mod maps;
mod misses;
mod own;
mod stage;
mod syncs;

use crate::case::Group;
use crate::options::Options;
use crate::sizes::{GIB, MIB, size};
use stage::Stage;

pub(crate) fn run(options: &Options, told: &mut dyn FnMut(&str)) -> Vec<Group> {
    files::allow_many();
    let mut groups = Vec::new();
    let mut stage = Stage::new(options, told);
    let sizes: &[u64] = if options.quick { &[MIB, 64 * MIB] } else { &[MIB, 64 * MIB, GIB, 8 * GIB] };
    let hot = hits::one_page(&mut stage);
    stage.or_remark("one hot page", hot);
    for bytes in sizes {
        let all = if *bytes > GIB { hits::read_alone(&mut stage, *bytes) } else { hits::all(&mut stage, *bytes) };
        stage.or_remark(&size(*bytes), all);
    }
    let appends = hits::appends(&mut stage);
    stage.or_remark("append", appends);
    groups.push(stage.into_group("In memory", "ns", hits::WORDS.to_owned()));

    let mut stage = Stage::new(options, told);
    let library = files::through_the_library(&mut stage, 100_000);
    stage.or_remark("files of the library", library);
    let counts: &[u64] = if options.quick { &[100_000] } else { &[100_000, 1_000_000] };
    for count in counts {
        let engine = files::in_the_engine(&mut stage, *count);
        stage.or_remark(&format!("{count} files"), engine);
    }
    groups.push(stage.into_group("Many files of one page", "ns", files::WORDS.to_owned()));

    let mut stage = Stage::new(options, told);
    let missed = misses::run(&mut stage);
    stage.or_remark("misses", missed);
    groups.push(stage.into_group("Misses", "ns", misses::WORDS.to_owned()));

    let mut stage = Stage::new(options, told);
    let synced = syncs::run(&mut stage);
    stage.or_remark("syncs", synced);
    groups.push(stage.into_group("Syncs", "ns", syncs::WORDS.to_owned()));
    groups
}
