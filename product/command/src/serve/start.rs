//! The parts of a start, in the order in which they come, and `--check`: whether a start would succeed.
//!
//! Owns: directories, addresses, the engine; the order of the checks, the server whose reload they precede.
//! Does not own: the front (`front`), the memory (`persisted`).
//! Invariants: everything that can refuse a start comes before the first answer to a client. The checks are calls of
//! the start itself. With `--check` nothing is served, nothing stays behind, and no store is asked, which the answer
//! says. Root's mount is one of this process alone (`front`).

use std::path::Path;

use afflux_engine::Recovered;
use afflux_linux_server::DescriptorStore;
use afflux_report::failure::Outcome;
use afflux_report::output;

use crate::configuration::Configuration;
use crate::serve::front::WantedFront;
use crate::serve::persisted::arena::{self, CacheMemory, WantedMemory};
use crate::serve::persisted::last_run::ServerRun;
use crate::serve::start::engine::{knobs_and_policies, prices_unkept, start_reactors};
use crate::serve::start::resources::{StartResources, Taking, WantedResources};
use crate::serve::start::source::Source;
#[cfg(feature = "object")]
use crate::serve::stores::store_volume::StoreVolume;

pub(crate) mod engine;
pub(crate) mod exports;
pub(crate) mod memory;
pub(crate) mod resources;
pub(crate) mod source;
pub(crate) mod wanted_volume;

/// The variable in which systemd tells the commands of a unit the process of its server.
const RUNNING: &str = "MAINPID";

pub(crate) fn run(wanted: &WantedFront, configuration: &Configuration, configured: Option<&Path>) -> Outcome {
    configuration.warnings.iter().for_each(|warning| warn(warning));
    let settings = &configuration.settings;
    let running = std::env::var(RUNNING).ok().and_then(|text| text.parse().ok());
    Source::check(&settings.directories)?;
    #[cfg(feature = "object")]
    StoreVolume::check(settings, running)?;
    knobs_and_policies(configuration)?;
    let memory = WantedMemory::of(configuration);
    if running.is_none() {
        wanted.refuse_mounted()?;
    }
    let inherited = CacheMemory::check(&memory, settings.lock_memory, wanted, running)?;
    let separated = wanted.separated_for_rehearsal()?;
    let mut store = DescriptorStore::default();
    // The server that is to be reloaded has the directories.
    let may_share = settings.shared || running.is_some();
    let opened = Source::open(&settings.directories, settings.subtree_check, may_share, &separated)?;
    let source = opened.as_ref().map(|(source, _)| source);
    let taking = Taking::Rehearsal { running };
    let wanted_places = WantedResources::of(settings);
    let places = StartResources::take(&wanted_places, source, wanted, &mut store, taking)?;
    wanted.rehearse_mount(settings.directories.first(), separated, &places.needed(&wanted_places, configured))?;
    let reactors = start_reactors(settings.io)?;
    if let Some(source) = source {
        arena::needs_handles(settings.arena.is_some(), &*source.tree())?;
        let starts = wanted.start_record(source.host(), &places.state, taking.missing());
        ServerRun::rehearse(&places.state, &starts, settings.arena.is_some())?;
        if let Some(inherited) = inherited {
            let (platform, key) = (reactors.platform(), Source::known_key(&places.state));
            let found = |recovered: &Recovered| source.named(&platform, &key, recovered);
            inherited.rehearse(&ServerRun::last(&places.state), &starts, found)?.iter().for_each(output::remark);
        }
    }
    prices_unkept(&places.state).iter().for_each(|warning| warn(warning));
    if running.is_none() {
        arena::only_by_unit(&memory).iter().for_each(|warning| warn(warning));
    }
    output::say(if source.is_none() {
        "The settings are valid; the store was not asked."
    } else {
        "The settings are valid."
    });
    Ok(())
}

fn warn(warning: &str) {
    output::remark(format_args!("warning: {warning}"));
}
