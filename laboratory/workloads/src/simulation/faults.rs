//! The fault script of a run: the targets and times of its faults.
//!
//! Owns: lookup of devices, files and links by the names in a script; the times of faults; the entry that ends the run.
//! Does not own: the grammar (`afflux_simulator::FaultScript`), the effect of a fault on a request (the disk).
//! Invariants: every entry has an existing target. No fault begins after the jobs have ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_engine::settings::did_you_mean;
use afflux_engine::{Nanos, Platform};
use afflux_simulator::{Disk, DiskFileId, Fault, FaultScript, ScriptedFault, ScriptedWhat, World};

use super::description::DeviceChoice;
use super::serving::Client;
use crate::outcome::LossCause;
use crate::simulated::SimulatedSite;

/// Files listed in an error about a missing file.
const LISTED_MAX: usize = 10;

/// The beginning or the end of a fault.
type Step = fn(&Disk);

/// The end of everything in memory, if the script has one; the first one counts.
pub(super) fn ending(script: &FaultScript) -> Option<(u64, LossCause)> {
    let ends = script.entries.iter().filter_map(|entry| match entry.what {
        ScriptedWhat::PowerLoss => Some((entry.from_ns, LossCause::PowerLoss)),
        ScriptedWhat::ProcessKill => Some((entry.from_ns, LossCause::Kill)),
        _ => None,
    });
    ends.min_by_key(|(at_ns, _)| *at_ns)
}

/// The possible targets.
pub(super) struct Parties<'a> {
    pub(super) script: &'a FaultScript,
    pub(super) devices: &'a [DeviceChoice],
    pub(super) machine: &'a SimulatedSite,
    pub(super) clients: &'a [Client],
}

impl Parties<'_> {
    /// Schedules all faults. Setting the returned flag prevents further faults.
    ///
    /// # Errors
    /// The first entry without a target in this run, with its line.
    pub(super) fn schedule(&self, world: &World) -> Result<Arc<AtomicBool>, String> {
        let mut steps: Vec<(u64, Arc<Disk>, Step)> = Vec::new();
        for entry in &self.script.entries {
            self.entry(entry, &mut steps).map_err(|what| format!("{}:{}: {what}", self.script.file, entry.line))?;
        }
        let over = Arc::new(AtomicBool::new(false));
        steps.sort_by_key(|(at_ns, _, _)| *at_ns);
        let (platform, ended) = (Arc::clone(&self.machine.platform), Arc::clone(&over));
        if !steps.is_empty() {
            world.spawn("faults", async move {
                for (at_ns, disk, step) in steps {
                    platform.sleep_until(Nanos(at_ns)).await;
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                    step(&disk);
                }
            });
        }
        Ok(over)
    }

    fn entry(&self, entry: &ScriptedFault, steps: &mut Vec<(u64, Arc<Disk>, Step)>) -> Result<(), String> {
        let meant = self.meant(entry.device.as_deref())?;
        let disks = meant.iter().map(|at| &self.machine.volumes[*at].disk);
        let (begin, end): (Step, Step) = match &entry.what {
            ScriptedWhat::Requests { fault, window } => {
                let file = entry.file.as_deref().map(|path| self.file(path, &meant)).transpose()?;
                let disks = disks.zip(&meant).filter(|(_, at)| file.is_none_or(|(volume, _)| volume == **at));
                let fault = Fault { file: file.map(|(_, file)| file), ..fault.clone() };
                disks.for_each(|(disk, _)| disk.add_fault_within(fault.clone(), *window));
                return Ok(());
            }
            ScriptedWhat::Hang => (Disk::hang, Disk::release),
            ScriptedWhat::NoSpace => (|disk| disk.set_capacity(0), Disk::restore_capacity),
            ScriptedWhat::LinkCut if self.clients.is_empty() => {
                return Err("link-cut: there is no link in this run; the workload nfs-client has one".to_owned());
            }
            ScriptedWhat::LinkCut => {
                self.clients.iter().for_each(|client| client.entry.link().cut(entry.from_ns, entry.until_ns));
                return Ok(());
            }
            // The run itself ends there.
            ScriptedWhat::PowerLoss | ScriptedWhat::ProcessKill => return Ok(()),
        };
        for disk in disks {
            steps.push((entry.from_ns, Arc::clone(disk), begin));
            if entry.until_ns != u64::MAX {
                steps.push((entry.until_ns, Arc::clone(disk), end));
            }
        }
        Ok(())
    }

    /// The devices of this name (a directory or a model); all devices without a name.
    fn meant(&self, name: Option<&str>) -> Result<Vec<usize>, String> {
        let is_named = |at: &usize| {
            let choice = &self.devices[*at];
            let model = choice.model.split(',').next().unwrap_or_default();
            let directory = choice.directory.as_deref();
            name.is_none_or(|name| directory == Some(name) || model == name || self.machine.volumes[*at].name == name)
        };
        let meant: Vec<usize> = (0..self.devices.len()).filter(is_named).collect();
        if meant.is_empty() {
            let name_of = |choice: &DeviceChoice| choice.directory.clone().unwrap_or_else(|| choice.model.clone());
            let names: Vec<String> = self.devices.iter().map(name_of).collect();
            let name = name.unwrap_or_default();
            let near = did_you_mean(name, names.iter().map(String::as_str));
            return Err(format!("device: there is no '{name}' in this run{near}; there are {}", names.join(", ")));
        }
        Ok(meant)
    }

    /// A file of the run by its whole path, or by its path below its device's directory.
    fn file(&self, path: &str, meant: &[usize]) -> Result<(usize, DiskFileId), String> {
        let files = self.machine.files();
        let jobs = files.iter().map(|file| (file.path.as_str(), file.volume, file.disk_file));
        let all: Vec<(&str, usize, DiskFileId)> = jobs.chain(self.clients.iter().map(Client::file)).collect();
        let below = |whole: &str, volume: usize| {
            let directory = self.machine.volumes[volume].directory.trim_end_matches('/');
            whole
                .strip_prefix(directory)
                .is_some_and(|rest| rest.trim_start_matches('/') == path.trim_start_matches('/'))
        };
        let found =
            all.iter().find(|(whole, volume, _)| meant.contains(volume) && (*whole == path || below(whole, *volume)));
        found.map(|(_, volume, file)| (*volume, *file)).ok_or_else(|| {
            let names: Vec<&str> = all.iter().filter(|file| meant.contains(&file.1)).map(|file| file.0).collect();
            let more = names.len().saturating_sub(LISTED_MAX);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            let listed = names[..names.len().min(LISTED_MAX)].join(", ");
            let near = did_you_mean(path, names.iter().copied());
            format!("file: there is no '{path}' in this run{near}; there are {listed}{rest}")
        })
    }
}
