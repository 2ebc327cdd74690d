//! A governor's steps: sampling counters, looking for devices, setting limits, putting everything back.
//!
//! Each look, once a second, searches `/sys/class/bdi` for new devices instead of relying on uevents. A look is needed
//! anyway to notice changes by other programs, and a list of names costs 20 µs. Uevents are lost when a socket
//! overflows, and never reach a container. A second after a stick is plugged in, it is not even mounted.
//!
//! Owns: the list of devices, the ownership of their values, their speeds, the events.
//! Does not own: clocks and sleep, which are the caller's; the decisions (`law`).
//! Invariants: every value is in the journal before it is written. An error with one device does not affect the others.

use std::collections::BTreeMap;
use std::path::Path;

use afflux_budget::RememberedPrices;

use crate::host::{Backlogs, BdiKind, CounterFile, Disk, FileUseError, Host, NO_MEDIUM};
use crate::journal::{Journal, JournalEntry, JournalError, Locked, Restored, restore_locked};
use crate::law::{LimitChoice, LimitTarget, MachineLimits, Ownership, OwnershipStep, Speed, Values, choose};

/// The options of a governor.
#[derive(Clone, Debug, Default)]
pub struct GovernorOptions {
    /// Budget of each device; none if only the devices named below are governed.
    pub budget_ns: Option<u64>,
    /// Devices, by name, with their own budget, or with none.
    pub devices: Vec<(String, Option<u64>)>,
    /// Change nothing, only report the limits that would be set.
    pub dry_run: bool,
    /// Leave devices alone whose speed is not known yet; for a single look.
    pub known_only: bool,
}

/// An event of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GovernorEvent {
    /// The bdi of the device.
    pub bdi: String,
    /// The name of the device.
    pub device: String,
    /// The kind of event.
    pub what: EventKind,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The device has a new limit.
    Limited {
        /// Limit of the device's dirty bytes.
        limit_bytes: u64,
        /// The limit as a fraction of the machine's dirty limit, in millionths.
        ratio_ppm: u32,
        /// The device's write speed, if known.
        bytes_per_second: Option<u64>,
        /// The device's budget.
        budget_ns: u64,
    },
    /// The device has its own values again, since it is fast enough.
    Released,
    /// The device has its own values again: at the end, or after a governor that died.
    PutBack,
    /// Another program has set these values; the governor leaves them.
    Foreign(Values),
    /// The device is not governed, for this reason.
    Alone(String),
    /// The device is gone.
    Gone,
    /// The limit could not be set; the device stays as it is.
    Refused(String),
}

/// The current state of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GovernorRow {
    /// The bdi of the device.
    pub bdi: String,
    /// The block device.
    pub disk: Disk,
    /// The write speed, if known.
    pub bytes_per_second: Option<u64>,
    /// Most device time that dirty pages may stand for.
    pub budget_ns: u64,
    /// The limit, if one is set.
    pub limit_bytes: Option<u64>,
    /// The prices to persist until the next start.
    pub remembered: Option<RememberedPrices>,
}

/// A device that can be governed.
struct Device {
    disk: Disk,
    /// The identity of its bdi: a drive's bdi outlives the medium, a loop device's the file.
    bdi_identity: Option<u64>,
    counters: Option<CounterFile>,
    speed: Speed,
    ownership: Ownership,
    budget_ns: u64,
    limit_bytes: Option<u64>,
}

/// A device that cannot be governed, or should not.
struct Ungoverned {
    why: String,
    sequence: Option<u64>,
}

/// Returns the prices of a disk from earlier runs.
pub type PriceLookup<'a> = &'a dyn Fn(&Disk) -> Option<RememberedPrices>;

/// Holds devices to their budgets.
pub struct Governor {
    host: Host,
    options: GovernorOptions,
    locked: Option<Locked>,
    backlogs: Backlogs,
    devices: BTreeMap<String, Device>,
    alone: BTreeMap<String, Ungoverned>,
    /// The values that a dry run would have set.
    imagined: BTreeMap<String, Values>,
    /// The current contents of the journal.
    noted: BTreeMap<String, JournalEntry>,
}

impl Governor {
    /// Starts a governor. It first puts back the values that a dead governor has set, and changes nothing else yet.
    ///
    /// # Errors
    /// When another governor runs, or limits may not be set here.
    pub fn start(
        host: Host,
        options: GovernorOptions,
        run: &Path,
    ) -> Result<(Self, Vec<GovernorEvent>, Option<String>), JournalError> {
        let (mut events, mut warning, mut locked) = (Vec::new(), None, None);
        if !options.dry_run {
            host.check_writable()?;
            let own = Locked::new(run)?;
            match restore_locked(&host, &own) {
                Ok(restored) => events.extend(restored.into_iter().map(GovernorEvent::from)),
                Err(error @ JournalError::Nonsense { .. }) => {
                    Journal::put_aside(own.directory());
                    warning = Some(error.to_string());
                }
                Err(error) => return Err(error),
            }
            locked = Some(own);
        }
        let governor = Self {
            backlogs: host.backlogs(),
            host,
            options,
            locked,
            devices: BTreeMap::new(),
            alone: BTreeMap::new(),
            imagined: BTreeMap::new(),
            noted: BTreeMap::new(),
        };
        Ok((governor, events, warning))
    }

    /// Reads the counters of all devices.
    pub fn sample(&mut self, now_ns: u64) {
        for (bdi, device) in &mut self.devices {
            if let Some(counters) = device.counters.as_ref().and_then(CounterFile::read) {
                device.speed.look_behind(now_ns, &counters, self.backlogs.of(bdi));
            }
        }
    }

    /// Searches for devices, reads their values, and sets the limits that have changed.
    ///
    /// # Errors
    /// When no limit can be set any more, or the journal cannot be written.
    pub fn look(&mut self, known: PriceLookup<'_>) -> Result<Vec<GovernorEvent>, FileUseError> {
        let mut events = Vec::new();
        self.meet(known, &mut events)?;
        let machine = self.host.machine()?;
        let mut writes = Vec::new();
        let names: Vec<String> = self.devices.keys().cloned().collect();
        for bdi in names {
            let before = self.imagined.get(&bdi).copied();
            match before.map_or_else(|| self.host.values(&bdi), |values| Ok(Some(values))) {
                Ok(Some(found)) => self.decide(&bdi, found, machine, &mut writes, &mut events),
                // The device went between two reads; the next look will not find it.
                Ok(None) => {}
                Err(error) => self.leave(&bdi, &error, &mut events),
            }
        }
        if !writes.is_empty() {
            self.carry_out(&writes, &mut events)?;
        } else if !events.is_empty() {
            self.note()?;
        }
        Ok(events)
    }

    /// Adds new devices and removes those that are gone.
    fn meet(&mut self, known: PriceLookup<'_>, events: &mut Vec<GovernorEvent>) -> Result<(), FileUseError> {
        let names = self.host.names()?;
        self.alone.retain(|bdi, _| names.contains(bdi));
        let host = &self.host;
        let stays =
            |bdi: &String, device: &Device| names.contains(bdi) && host.sequence(&device.disk) == device.disk.sequence;
        let gone: Vec<String> =
            self.devices.iter().filter(|(bdi, device)| !stays(bdi, device)).map(|(bdi, _)| bdi.clone()).collect();
        for bdi in gone {
            let Some(device) = self.devices.remove(&bdi) else { continue };
            self.imagined.remove(&bdi);
            self.release_device(bdi, &device, events)?;
        }
        for bdi in names {
            // A look must be cheap: of a device that is left alone it only checks the sequence number, which differs
            // for another device.
            let sequence = self.host.sequence_of(&bdi);
            let is_known = self.alone.get(&bdi).is_some_and(|alone| alone.sequence == sequence);
            if is_known || self.devices.contains_key(&bdi) {
                continue;
            }
            let why = match self.host.kind(&bdi) {
                Some(BdiKind::Disk(disk)) => match self.budget_of(&bdi, &disk) {
                    (Some(budget_ns), by_name) => {
                        match self.ownership(&bdi, by_name) {
                            Ok(Some(ownership)) => self.add(&bdi, disk, ownership, budget_ns, known, events),
                            Ok(None) => {}
                            Err(error) => self.report_ungoverned(&bdi, &disk.name, &error.to_string(), events),
                        }
                        continue;
                    }
                    (None, _) => (disk.name, "it has no budget"),
                },
                Some(BdiKind::Alone { name, why }) => (name, why),
                None => continue,
            };
            self.report_ungoverned(&bdi, &why.0, why.1, events);
        }
        Ok(())
    }

    /// A drive whose medium was taken out retains its bdi, with the limit that was set. The limit is put back, so that
    /// it does not hold the next medium.
    fn release_device(
        &self,
        bdi: String,
        device: &Device,
        events: &mut Vec<GovernorEvent>,
    ) -> Result<(), FileUseError> {
        let name = || device.disk.name.clone();
        let is_ours = device.ownership.ours().is_some() && device.ownership.foreign().is_none();
        if is_ours
            && self.locked.is_some()
            && self.host.bdi_identity(&bdi) == device.bdi_identity
            && self.host.values(&bdi).ok().flatten() == device.ownership.ours()
        {
            let what = match self.host.set(&bdi, device.ownership.original()) {
                Ok(()) => Some(EventKind::PutBack),
                Err(FileUseError::Gone { .. }) => None,
                Err(error) if error.is_general() => return Err(error),
                Err(error) => Some(EventKind::Refused(error.to_string())),
            };
            events.extend(what.map(|what| GovernorEvent { bdi: bdi.clone(), device: name(), what }));
        }
        events.push(GovernorEvent { device: name(), bdi, what: EventKind::Gone });
        Ok(())
    }

    fn ownership(&self, bdi: &str, by_name: bool) -> Result<Option<Ownership>, FileUseError> {
        Ok(self.host.values(bdi)?.map(|found| Ownership::new(found, by_name)))
    }

    fn add(
        &mut self,
        bdi: &str,
        disk: Disk,
        ownership: Ownership,
        budget_ns: u64,
        known: PriceLookup<'_>,
        events: &mut Vec<GovernorEvent>,
    ) {
        if let Some(found) = ownership.foreign() {
            events.push(GovernorEvent {
                bdi: bdi.to_owned(),
                device: disk.name.clone(),
                what: EventKind::Foreign(found),
            });
        }
        self.alone.remove(bdi);
        let (counters, speed) = (self.host.counters(&disk), Speed::new(known(&disk).as_ref()));
        let bdi_identity = self.host.bdi_identity(bdi);
        let device = Device { disk, bdi_identity, counters, speed, ownership, budget_ns, limit_bytes: None };
        self.devices.insert(bdi.to_owned(), device);
    }

    /// Reports why a device is left alone: once, and again if the reason changes. Drives without a medium are not
    /// reported.
    fn report_ungoverned(&mut self, bdi: &str, name: &str, why: &str, events: &mut Vec<GovernorEvent>) {
        let alone = Ungoverned { why: why.to_owned(), sequence: self.host.sequence_of(bdi) };
        let before = self.alone.insert(bdi.to_owned(), alone);
        if why != NO_MEDIUM && before.is_none_or(|before| before.why != why) {
            events.push(GovernorEvent {
                bdi: bdi.to_owned(),
                device: name.to_owned(),
                what: EventKind::Alone(why.to_owned()),
            });
        }
    }

    /// The budget of a device, and whether the user named the device.
    fn budget_of(&self, bdi: &str, disk: &Disk) -> (Option<u64>, bool) {
        let is_named = |name: &str| {
            name == bdi
                || name == disk.name
                || name == disk.number
                || self.host.whole(name).is_some_and(|it| it == disk.number)
        };
        let named = self.options.devices.iter().rev().find(|(name, _)| is_named(name));
        named.map_or((self.options.budget_ns, false), |(_, budget_ns)| (*budget_ns, true))
    }

    fn decide(
        &mut self,
        bdi: &str,
        found: Values,
        machine: MachineLimits,
        writes: &mut Vec<(String, Values)>,
        events: &mut Vec<GovernorEvent>,
    ) {
        let Some(device) = self.devices.get_mut(bdi) else { return };
        let (budget_ns, speed) = (device.budget_ns, device.speed.bytes_per_second());
        let wanted = LimitTarget {
            budget_ns,
            budget_bytes: device.speed.bytes_in(budget_ns),
            bytes_per_second: speed.unwrap_or(0),
        };
        let in_force = device.ownership.ours().map(|ours| ours.ratio_ppm);
        let choice = match speed {
            None if self.options.known_only => LimitChoice::FastEnough,
            _ => choose(&wanted, machine, in_force),
        };
        let (share, limit_bytes) = match choice {
            LimitChoice::FastEnough => (None, None),
            LimitChoice::Limit { bytes, ratio_ppm } => (Some(ratio_ppm), Some(bytes)),
        };
        let mut say = |what| events.push(GovernorEvent { bdi: bdi.to_owned(), device: device.disk.name.clone(), what });
        match device.ownership.step(found, share) {
            OwnershipStep::Keep if device.ownership.foreign().is_none() => device.limit_bytes = limit_bytes,
            OwnershipStep::Keep => {}
            OwnershipStep::Foreign(found) => {
                device.limit_bytes = None;
                say(EventKind::Foreign(found));
            }
            OwnershipStep::Write(values) => {
                device.limit_bytes = limit_bytes;
                writes.push((bdi.to_owned(), values));
                say(match limit_bytes {
                    Some(limit_bytes) => {
                        let ratio_ppm = values.ratio_ppm;
                        EventKind::Limited { limit_bytes, ratio_ppm, bytes_per_second: speed, budget_ns }
                    }
                    None => EventKind::Released,
                });
            }
        }
    }

    /// Writes the new values into the journal, then into the device.
    fn carry_out(&mut self, writes: &[(String, Values)], events: &mut Vec<GovernorEvent>) -> Result<(), FileUseError> {
        let Some(locked) = &self.locked else {
            self.imagined.extend(writes.iter().cloned());
            return Ok(());
        };
        let mut entries = self.entries();
        for (bdi, _) in writes {
            // Until the new fraction is written, the old one is in force, and must count as ours.
            let (Some(entry), Some(old)) = (entries.get_mut(bdi), self.noted.get(bdi)) else { continue };
            let known: Vec<u32> = old.ours_ppm.iter().copied().filter(|ppm| !entry.ours_ppm.contains(ppm)).collect();
            entry.ours_ppm.extend(known);
        }
        locked.write(&self.host, entries.clone())?;
        self.noted = entries;
        for (bdi, values) in writes {
            match self.host.set(bdi, *values) {
                Ok(()) | Err(FileUseError::Gone { .. }) => {}
                Err(error) if error.is_general() => return Err(error),
                Err(error) => {
                    // The first of the device's two files may have been written.
                    if let Some(device) = self.devices.get(bdi) {
                        let _ = self.host.set(bdi, device.ownership.original());
                    }
                    self.leave(bdi, &error, events);
                }
            }
        }
        self.note()
    }

    /// Gives up a device after an error that concerns only this device.
    fn leave(&mut self, bdi: &str, error: &FileUseError, events: &mut Vec<GovernorEvent>) {
        let Some(device) = self.devices.get_mut(bdi).filter(|device| device.ownership.foreign().is_none()) else {
            return;
        };
        device.limit_bytes = None;
        let found = self.host.values(bdi).ok().flatten().unwrap_or(device.ownership.original());
        device.ownership.refused(found);
        let what = EventKind::Refused(error.to_string());
        events.push(GovernorEvent { bdi: bdi.to_owned(), device: device.disk.name.clone(), what });
    }

    fn entries(&self) -> BTreeMap<String, JournalEntry> {
        let ours = |ownership: &Ownership| {
            ownership.ours().filter(|_| ownership.foreign().is_none()).map(|ours| ours.ratio_ppm)
        };
        let entry = |device: &Device| JournalEntry {
            name: device.disk.name.clone(),
            number: device.disk.number.clone(),
            sequence: device.disk.sequence,
            bdi_identity: device.bdi_identity,
            original: device.ownership.original(),
            ours_ppm: ours(&device.ownership).into_iter().collect(),
            foreign: device.ownership.foreign(),
            budget_ns: device.budget_ns,
            bytes_per_second: device.speed.bytes_per_second(),
            limit_bytes: device.limit_bytes,
        };
        self.devices.iter().map(|(bdi, device)| (bdi.clone(), entry(device))).collect()
    }

    /// The current state of all devices.
    pub fn rows(&self) -> Vec<GovernorRow> {
        let row = |(bdi, device): (&String, &Device)| GovernorRow {
            bdi: bdi.clone(),
            disk: device.disk.clone(),
            bytes_per_second: device.speed.bytes_per_second(),
            budget_ns: device.budget_ns,
            limit_bytes: device.limit_bytes,
            remembered: device.speed.remembered(),
        };
        self.devices.iter().map(row).collect()
    }

    /// Writes the devices' current state into the journal, for `--status`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn note(&mut self) -> Result<(), FileUseError> {
        let entries = self.entries();
        if let Some(locked) = self.locked.as_ref().filter(|_| entries != self.noted) {
            locked.write(&self.host, entries.clone())?;
            self.noted = entries;
        }
        Ok(())
    }

    /// Puts all values back that nobody else has changed.
    ///
    /// # Errors
    /// When values cannot be put back any more; they stay in the journal.
    pub fn end(self) -> Result<Vec<GovernorEvent>, JournalError> {
        let Some(locked) = &self.locked else { return Ok(Vec::new()) };
        Ok(restore_locked(&self.host, locked)?.into_iter().map(GovernorEvent::from).collect())
    }
}

impl From<Restored> for GovernorEvent {
    fn from(restored: Restored) -> Self {
        let what = restored.foreign.map_or(EventKind::PutBack, EventKind::Foreign);
        Self { bdi: restored.bdi, device: restored.name, what }
    }
}

#[cfg(test)]
mod tests;
