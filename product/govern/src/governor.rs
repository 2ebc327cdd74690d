//! A governor's steps: looking at counters, looking for devices, setting limits, putting all back.
//!
//! New devices are looked for in `/sys/class/bdi` at each look, once a second, and not told by uevents: a look has to be
//! taken anyway to notice what others change, a list of names costs 20 µs, and uevents are lost when a socket overflows
//! and never reach a container. A stick is not even mounted a second after it was plugged in.
//!
//! Owns: which devices there are, their seats and speeds, what has happened.
//! Does not own: clocks and sleep, which are the caller's; the decisions (`law`).
//! Invariants: what is to be written stands in the journal first. One device's trouble is not another's.

use std::collections::BTreeMap;
use std::path::Path;

use afflux_budget::RememberedPrices;

use crate::host::{Backlogs, CounterFile, Disk, Host, HostError, Kind, NO_MEDIUM};
use crate::journal::{Entry, Journal, JournalError, Locked, Restored, restore_locked};
use crate::law::{Choice, Machine, Seat, Speed, Step, Values, Wanted, choose};

/// What a governor is asked to do.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Budget of each device; nothing: only those named are governed.
    pub budget_ns: Option<u64>,
    /// Devices with a budget of their own, or none, by name.
    pub devices: Vec<(String, Option<u64>)>,
    /// Change nothing, only say what would be.
    pub dry_run: bool,
    /// Leave devices alone whose speed is not known yet: for one look only.
    pub known_only: bool,
}

/// Something that happened to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its bdi.
    pub bdi: String,
    /// What it is called.
    pub device: String,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Its limit is this now.
    Limited {
        /// Bytes that may be dirty of it.
        limit_bytes: u64,
        /// As a share of the machine's limit.
        ratio_ppm: u32,
        /// What it writes, if that is known.
        bytes_per_second: Option<u64>,
        /// Its budget.
        budget_ns: u64,
    },
    /// It has its own values again: it is fast enough.
    Released,
    /// It has its own values again, at the end or after a governor that died.
    PutBack,
    /// Others have set it, to this; it is left so.
    Foreign(Values),
    /// It is not governed.
    Alone(String),
    /// It has gone.
    Gone,
    /// Its limit could not be set; it is left as it is.
    Refused(String),
}

/// A device as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its bdi.
    pub bdi: String,
    /// Its disk.
    pub disk: Disk,
    /// What it writes.
    pub bytes_per_second: Option<u64>,
    /// Its budget.
    pub budget_ns: u64,
    /// Its limit.
    pub limit_bytes: Option<u64>,
    /// What to keep of it.
    pub remembered: Option<RememberedPrices>,
}

/// A device that can be governed.
struct Device {
    disk: Disk,
    /// Which bdi it has: a drive's outlives its medium, a loop device's its file.
    bdi_identity: Option<u64>,
    counters: Option<CounterFile>,
    speed: Speed,
    seat: Seat,
    budget_ns: u64,
    limit_bytes: Option<u64>,
}

/// A device that cannot be governed, or should not.
struct Alone {
    why: String,
    sequence: Option<u64>,
}

/// What is known of devices from before, by their disk.
pub type Known<'a> = &'a dyn Fn(&Disk) -> Option<RememberedPrices>;

/// Keeps devices to their budgets.
pub struct Governor {
    host: Host,
    options: Options,
    locked: Option<Locked>,
    backlogs: Backlogs,
    devices: BTreeMap<String, Device>,
    alone: BTreeMap<String, Alone>,
    /// What a dry run would have set.
    imagined: BTreeMap<String, Values>,
    /// What stands in the journal.
    noted: BTreeMap<String, Entry>,
}

impl Governor {
    /// Begins; what one that died has left set is put back first. Nothing else is changed yet.
    ///
    /// # Errors
    /// When another governor runs, or limits may not be set here.
    pub fn start(host: Host, options: Options, run: &Path) -> Result<(Self, Vec<Event>, Option<String>), JournalError> {
        let (mut events, mut warning, mut locked) = (Vec::new(), None, None);
        if !options.dry_run {
            host.may_write()?;
            let own = Locked::new(run)?;
            match restore_locked(&host, &own) {
                Ok(restored) => events.extend(restored.into_iter().map(Event::from)),
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

    /// Looks at the counters of all devices.
    pub fn sample(&mut self, now_ns: u64) {
        for (bdi, device) in &mut self.devices {
            if let Some(counters) = device.counters.as_ref().and_then(CounterFile::read) {
                device.speed.look_behind(now_ns, &counters, self.backlogs.of(bdi));
            }
        }
    }

    /// Looks which devices there are, what they are set to, and sets what has to be.
    ///
    /// # Errors
    /// When nothing can be set any more, or written down.
    pub fn look(&mut self, known: Known<'_>) -> Result<Vec<Event>, HostError> {
        let mut events = Vec::new();
        self.meet(known, &mut events)?;
        let machine = self.host.machine()?;
        let mut writes = Vec::new();
        let names: Vec<String> = self.devices.keys().cloned().collect();
        for bdi in names {
            let before = self.imagined.get(&bdi).copied();
            match before.map_or_else(|| self.host.values(&bdi), |values| Ok(Some(values))) {
                Ok(Some(found)) => self.decide(&bdi, found, machine, &mut writes, &mut events),
                // It went between two reads; the next look will not find it.
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

    /// Which devices have come, and which gone.
    fn meet(&mut self, known: Known<'_>, events: &mut Vec<Event>) -> Result<(), HostError> {
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
            self.let_go(bdi, &device, events)?;
        }
        for bdi in names {
            // Of those that are left alone only whether there is another device now is looked at: a look has to be cheap.
            let sequence = self.host.sequence_of(&bdi);
            let is_known = self.alone.get(&bdi).is_some_and(|alone| alone.sequence == sequence);
            if is_known || self.devices.contains_key(&bdi) {
                continue;
            }
            let why = match self.host.kind(&bdi) {
                Some(Kind::Disk(disk)) => match self.budget_of(&bdi, &disk) {
                    (Some(budget_ns), by_name) => {
                        match self.seat(&bdi, by_name) {
                            Ok(Some(seat)) => self.add(&bdi, disk, seat, budget_ns, known, events),
                            Ok(None) => {}
                            Err(error) => self.say_alone(&bdi, &disk.name, &error.to_string(), events),
                        }
                        continue;
                    }
                    (None, _) => (disk.name, "no budget was asked for it"),
                },
                Some(Kind::Alone { name, why }) => (name, why),
                None => continue,
            };
            self.say_alone(&bdi, &why.0, why.1, events);
        }
        Ok(())
    }

    /// Of a medium that was taken out the drive is still there, and what was set of it: whatever is put in is not held to it.
    fn let_go(&self, bdi: String, device: &Device, events: &mut Vec<Event>) -> Result<(), HostError> {
        let name = || device.disk.name.clone();
        let is_ours = device.seat.ours().is_some() && device.seat.foreign().is_none();
        if is_ours
            && self.locked.is_some()
            && self.host.bdi_identity(&bdi) == device.bdi_identity
            && self.host.values(&bdi).ok().flatten() == device.seat.ours()
        {
            let what = match self.host.set(&bdi, device.seat.original()) {
                Ok(()) => Some(What::PutBack),
                Err(HostError::Gone { .. }) => None,
                Err(error) if error.is_general() => return Err(error),
                Err(error) => Some(What::Refused(error.to_string())),
            };
            events.extend(what.map(|what| Event { bdi: bdi.clone(), device: name(), what }));
        }
        events.push(Event { device: name(), bdi, what: What::Gone });
        Ok(())
    }

    fn seat(&self, bdi: &str, by_name: bool) -> Result<Option<Seat>, HostError> {
        Ok(self.host.values(bdi)?.map(|found| Seat::new(found, by_name)))
    }

    fn add(&mut self, bdi: &str, disk: Disk, seat: Seat, budget_ns: u64, known: Known<'_>, events: &mut Vec<Event>) {
        if let Some(found) = seat.foreign() {
            events.push(Event { bdi: bdi.to_owned(), device: disk.name.clone(), what: What::Foreign(found) });
        }
        self.alone.remove(bdi);
        let (counters, speed) = (self.host.counters(&disk), Speed::new(known(&disk).as_ref()));
        let bdi_identity = self.host.bdi_identity(bdi);
        let device = Device { disk, bdi_identity, counters, speed, seat, budget_ns, limit_bytes: None };
        self.devices.insert(bdi.to_owned(), device);
    }

    /// Said once, and again when the reason is another. Drives without anything in them are no news.
    fn say_alone(&mut self, bdi: &str, name: &str, why: &str, events: &mut Vec<Event>) {
        let alone = Alone { why: why.to_owned(), sequence: self.host.sequence_of(bdi) };
        let before = self.alone.insert(bdi.to_owned(), alone);
        if why != NO_MEDIUM && before.is_none_or(|before| before.why != why) {
            events.push(Event { bdi: bdi.to_owned(), device: name.to_owned(), what: What::Alone(why.to_owned()) });
        }
    }

    /// The budget of a device, and whether it was asked for by name.
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
        machine: Machine,
        writes: &mut Vec<(String, Values)>,
        events: &mut Vec<Event>,
    ) {
        let Some(device) = self.devices.get_mut(bdi) else { return };
        let (budget_ns, speed) = (device.budget_ns, device.speed.bytes_per_second());
        let wanted =
            Wanted { budget_ns, budget_bytes: device.speed.bytes_in(budget_ns), bytes_per_second: speed.unwrap_or(0) };
        let in_force = device.seat.ours().map(|ours| ours.ratio_ppm);
        let choice = match speed {
            None if self.options.known_only => Choice::FastEnough,
            _ => choose(&wanted, machine, in_force),
        };
        let (share, limit_bytes) = match choice {
            Choice::FastEnough => (None, None),
            Choice::Limit { bytes, ratio_ppm } => (Some(ratio_ppm), Some(bytes)),
        };
        let mut say = |what| events.push(Event { bdi: bdi.to_owned(), device: device.disk.name.clone(), what });
        match device.seat.step(found, share) {
            Step::Keep if device.seat.foreign().is_none() => device.limit_bytes = limit_bytes,
            Step::Keep => {}
            Step::Foreign(found) => {
                device.limit_bytes = None;
                say(What::Foreign(found));
            }
            Step::Write(values) => {
                device.limit_bytes = limit_bytes;
                writes.push((bdi.to_owned(), values));
                say(match limit_bytes {
                    Some(limit_bytes) => {
                        let ratio_ppm = values.ratio_ppm;
                        What::Limited { limit_bytes, ratio_ppm, bytes_per_second: speed, budget_ns }
                    }
                    None => What::Released,
                });
            }
        }
    }

    /// Writes down what is to be written, then writes it.
    fn carry_out(&mut self, writes: &[(String, Values)], events: &mut Vec<Event>) -> Result<(), HostError> {
        let Some(locked) = &self.locked else {
            self.imagined.extend(writes.iter().cloned());
            return Ok(());
        };
        let mut entries = self.entries();
        for (bdi, _) in writes {
            // What is in force until it is written is ours, too.
            let (Some(entry), Some(old)) = (entries.get_mut(bdi), self.noted.get(bdi)) else { continue };
            let known: Vec<u32> = old.ours_ppm.iter().copied().filter(|ppm| !entry.ours_ppm.contains(ppm)).collect();
            entry.ours_ppm.extend(known);
        }
        locked.write(&self.host, entries.clone())?;
        self.noted = entries;
        for (bdi, values) in writes {
            match self.host.set(bdi, *values) {
                Ok(()) | Err(HostError::Gone { .. }) => {}
                Err(error) if error.is_general() => return Err(error),
                Err(error) => {
                    // The first of its two files may have been written.
                    if let Some(device) = self.devices.get(bdi) {
                        let _ = self.host.set(bdi, device.seat.original());
                    }
                    self.leave(bdi, &error, events);
                }
            }
        }
        self.note()
    }

    /// A device with which something is wrong that is not the others' concern.
    fn leave(&mut self, bdi: &str, error: &HostError, events: &mut Vec<Event>) {
        let Some(device) = self.devices.get_mut(bdi).filter(|device| device.seat.foreign().is_none()) else { return };
        device.limit_bytes = None;
        let found = self.host.values(bdi).ok().flatten().unwrap_or(device.seat.original());
        device.seat.refused(found);
        let what = What::Refused(error.to_string());
        events.push(Event { bdi: bdi.to_owned(), device: device.disk.name.clone(), what });
    }

    fn entries(&self) -> BTreeMap<String, Entry> {
        let ours = |seat: &Seat| seat.ours().filter(|_| seat.foreign().is_none()).map(|ours| ours.ratio_ppm);
        let entry = |device: &Device| Entry {
            name: device.disk.name.clone(),
            number: device.disk.number.clone(),
            sequence: device.disk.sequence,
            bdi_identity: device.bdi_identity,
            original: device.seat.original(),
            ours_ppm: ours(&device.seat).into_iter().collect(),
            foreign: device.seat.foreign(),
            budget_ns: device.budget_ns,
            bytes_per_second: device.speed.bytes_per_second(),
            limit_bytes: device.limit_bytes,
        };
        self.devices.iter().map(|(bdi, device)| (bdi.clone(), entry(device))).collect()
    }

    /// The devices as they stand.
    pub fn rows(&self) -> Vec<Row> {
        let row = |(bdi, device): (&String, &Device)| Row {
            bdi: bdi.clone(),
            disk: device.disk.clone(),
            bytes_per_second: device.speed.bytes_per_second(),
            budget_ns: device.budget_ns,
            limit_bytes: device.limit_bytes,
            remembered: device.speed.remembered(),
        };
        self.devices.iter().map(row).collect()
    }

    /// Writes down what is known of devices now, for who asks.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn note(&mut self) -> Result<(), HostError> {
        let entries = self.entries();
        if let Some(locked) = self.locked.as_ref().filter(|_| entries != self.noted) {
            locked.write(&self.host, entries.clone())?;
            self.noted = entries;
        }
        Ok(())
    }

    /// Puts all back that is still as it was set.
    ///
    /// # Errors
    /// When that may not be done any more; what was set stays written down.
    pub fn end(self) -> Result<Vec<Event>, JournalError> {
        let Some(locked) = &self.locked else { return Ok(Vec::new()) };
        Ok(restore_locked(&self.host, locked)?.into_iter().map(Event::from).collect())
    }
}

impl From<Restored> for Event {
    fn from(restored: Restored) -> Self {
        let what = restored.foreign.map_or(What::PutBack, What::Foreign);
        Self { bdi: restored.bdi, device: restored.name, what }
    }
}

#[cfg(test)]
mod tests;
