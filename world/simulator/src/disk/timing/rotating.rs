//! A rotating disk: one arm over rotating platters, a buffer, and an interface.
//!
//! Positions run from the outer edge inwards through zones, each with a rate. A zone's track is as long as the bytes
//! that pass under the head in a revolution. Tracks are skewed so that a stream crosses their ends without a pause; the
//! zone's rate is therefore the sustained one, including head switches. To serve a command the arm seeks, the disk
//! rotates until the first byte is under the head, and the bytes pass. A seek takes no time within a cylinder, and
//! `settle + sqrt * √d` over `d` cylinders up to a distance. Beyond that it is linear (the form of C. Ruemmler and J.
//! Wilkes, "An introduction to disk drive modeling", IEEE Computer 1994). A command that begins where the head is at
//! that moment neither seeks nor waits. The disk serves the command that can begin first, or the oldest if it has
//! waited too long.
//!
//! After a read the disk reads on into its buffer until the next command. A read that continues within
//! `lookahead_bytes` finds its bytes there. With a write cache, a write is done when its bytes have passed the
//! interface and the cache has free space. The disk destages cached bytes whenever no command waits, or alternates with
//! commands once the cache is nearly full. Destaging sweeps upwards and joins adjoining ranges. Each command also takes
//! an overhead and its time on the interface.
//!
//! Owns: the head's position, the buffer's contents.
//! Does not own: the host's queue (`elevator`), shingles (`shingles`), the numbers (`devices/`).
//! Invariants: the head does one thing at a time; the write cache never holds more than its size.

use std::collections::{BTreeMap, VecDeque};

use super::elevator::Command;
use super::finishing::Finishing;
use super::seam::Span;
use super::shingles::{ShingleParameters, Shingles};
use super::times::transfer_ns;

/// Most bytes destaged from the write cache before the waiting commands are checked again.
const DESTAGE_BYTES_MAX: u64 = 1 << 20;
/// Longest time that a command may be passed over inside the disk. Assumed.
const PASSED_OVER_NS_MAX: u64 = 1_000_000_000;

#[derive(Clone, Debug)]
pub(crate) struct RotatingParameters {
    pub(crate) capacity_bytes: u64,
    pub(crate) rotation_ns: u64,
    pub(crate) heads: u64,
    /// Share of the capacity in thousandths, and rate, from the outer edge.
    pub(crate) zones: Vec<(u64, u64)>,
    pub(crate) seek_settle_ns: u64,
    pub(crate) seek_sqrt_ns: u64,
    /// The distance in cylinders from which the curve is linear.
    pub(crate) seek_linear_from: u64,
    pub(crate) seek_linear_ns: u64,
    pub(crate) command_ns: u64,
    pub(crate) interface_bytes_per_second: u64,
    pub(crate) lookahead_bytes: u64,
    /// 0 for none.
    pub(crate) write_cache_bytes: u64,
    pub(crate) flush_ns: u64,
    /// Whether the disk holds the next command while it serves one.
    pub(crate) queued: bool,
    pub(crate) shingles: Option<ShingleParameters>,
}

struct Zone {
    start: u64,
    end: u64,
    bytes_per_second: u64,
    track_bytes: u64,
    first_cylinder: u64,
}

/// The platters' geometry and the arm's speed.
pub(super) struct Geometry {
    parameters: RotatingParameters,
    zones: Vec<Zone>,
}

impl Geometry {
    pub(super) fn new(parameters: RotatingParameters) -> Self {
        let reserved = parameters.shingles.as_ref().map_or(0, |shingles| shingles.cache_bytes);
        let capacity = parameters.capacity_bytes + reserved;
        let (mut start, mut first_cylinder, mut zones) = (0, 0, Vec::new());
        let mut share = 0;
        for (own_share, bytes_per_second) in parameters.zones.iter().copied() {
            share += own_share;
            let end = (u128::from(capacity) * u128::from(share) / 1000) as u64;
            let track_bytes = bytes_per_second * parameters.rotation_ns / 1_000_000_000;
            let track_bytes = track_bytes.max(1);
            zones.push(Zone { start, end, bytes_per_second, track_bytes, first_cylinder });
            first_cylinder += (end - start).div_ceil(track_bytes * parameters.heads);
            start = end;
        }
        Self { parameters, zones }
    }

    fn zone(&self, position: u64) -> &Zone {
        let at = self.zones.iter().position(|zone| position < zone.end);
        &self.zones[at.unwrap_or(self.zones.len() - 1)]
    }

    fn cylinder(&self, position: u64) -> u64 {
        let zone = self.zone(position);
        zone.first_cylinder + (position - zone.start) / (zone.track_bytes * self.parameters.heads)
    }

    /// The time within a revolution at which a position passes under the head.
    fn angle_ns(&self, position: u64) -> u64 {
        let zone = self.zone(position);
        (position - zone.start) % zone.track_bytes * self.parameters.rotation_ns / zone.track_bytes
    }

    fn target(&self, position: u64) -> Target {
        Target { position, cylinder: self.cylinder(position), angle_ns: self.angle_ns(position) }
    }

    fn seek_ns(&self, from_cylinder: u64, to_cylinder: u64) -> u64 {
        let cylinders = from_cylinder.abs_diff(to_cylinder);
        if cylinders == 0 {
            return 0;
        }
        let parameters = &self.parameters;
        let curved = cylinders.min(parameters.seek_linear_from);
        let root = (parameters.seek_sqrt_ns * parameters.seek_sqrt_ns).checked_mul(curved).map(u64::isqrt);
        let sqrt_ns = root.unwrap_or_else(|| parameters.seek_sqrt_ns * curved.isqrt());
        parameters.seek_settle_ns + sqrt_ns + (cylinders - curved) * parameters.seek_linear_ns
    }

    /// Time until the head, if it leaves its cylinder now, is at the start of `to`.
    fn positioning_ns(&self, now_ns: u64, from_cylinder: u64, to: &Target) -> u64 {
        let rotation_ns = self.parameters.rotation_ns;
        let seek_ns = self.seek_ns(from_cylinder, to.cylinder);
        let arrives_ns = (now_ns + seek_ns) % rotation_ns;
        seek_ns + (to.angle_ns + rotation_ns - arrives_ns) % rotation_ns
    }

    /// The time that bytes take to pass under the head.
    fn transfer_ns(&self, span: Span) -> u64 {
        let (mut at, end) = (span.position, span.position + span.len);
        let mut ns = 0;
        while at < end {
            let zone = self.zone(at);
            let until = if zone.end > at { end.min(zone.end) } else { end };
            ns += transfer_ns(until - at, zone.bytes_per_second);
            at = until;
        }
        ns
    }
}

/// Ranges that do not touch each other.
#[derive(Default)]
struct Ranges {
    /// From start to end.
    ranges: BTreeMap<u64, u64>,
    bytes: u64,
}

impl Ranges {
    fn insert(&mut self, span: Span) {
        let (mut start, mut end) = (span.position, span.position + span.len);
        while let Some((first, last)) = self.ranges.range(..=end).next_back().map(|(first, last)| (*first, *last)) {
            if last < start {
                break;
            }
            self.ranges.remove(&first);
            self.bytes -= last - first;
            (start, end) = (start.min(first), end.max(last));
        }
        self.ranges.insert(start, end);
        self.bytes += end - start;
    }

    /// Takes the first range at or after `from`, or the first of all; at most `len_max` of it.
    fn take_ahead(&mut self, from: u64, len_max: u64) -> Option<Span> {
        let (start, end) = self.ranges.range(from..).next().or(self.ranges.first_key_value())?;
        let (start, end) = (*start, *end);
        let cut = end.min(start + len_max);
        self.ranges.remove(&start);
        if cut < end {
            self.ranges.insert(cut, end);
        }
        self.bytes -= cut - start;
        Some(Span { position: start, len: cut - start })
    }
}

/// A target for the head.
#[derive(Clone, Copy)]
struct Target {
    position: u64,
    cylinder: u64,
    angle_ns: u64,
}

#[derive(Clone, Copy)]
struct Inside {
    command: Command,
    target: Target,
    since_ns: u64,
}

pub(super) struct Rotating {
    geometry: Geometry,
    shingles: Option<Shingles>,
    /// The head's last position, and the instant.
    head: u64,
    head_ns: u64,
    /// The end of the last read on the medium and its instant, if nothing has been done since.
    read_end: Option<(u64, u64)>,
    /// The head is busy until this instant.
    busy_until_ns: Option<u64>,
    /// Bytes that are being destaged.
    destaging_bytes: u64,
    queue: Vec<Inside>,
    /// Writes that wait for free space in the cache.
    blocked: VecDeque<Command>,
    /// Writes on the interface, with the instants at which they are in the cache.
    arriving: VecDeque<(u64, Span)>,
    arriving_bytes: u64,
    dirty: Ranges,
    /// Whether the head last served a command rather than the cache.
    served_command: bool,
    interface_free_ns: u64,
    pub(super) seeks: u64,
    pub(super) finishing: Finishing,
}

impl Rotating {
    pub(super) fn new(parameters: RotatingParameters) -> Self {
        Self {
            shingles: parameters.shingles.clone().map(Shingles::new),
            geometry: Geometry::new(parameters),
            head: 0,
            head_ns: 0,
            read_end: None,
            busy_until_ns: None,
            destaging_bytes: 0,
            queue: Vec::new(),
            blocked: VecDeque::new(),
            arriving: VecDeque::new(),
            arriving_bytes: 0,
            dirty: Ranges::default(),
            served_command: false,
            interface_free_ns: 0,
            seeks: 0,
            finishing: Finishing::default(),
        }
    }

    fn parameters(&self) -> &RotatingParameters {
        &self.geometry.parameters
    }

    /// Takes a command. The caller calls `step` afterwards.
    pub(super) fn take(&mut self, now_ns: u64, command: Command) {
        if command.write && self.parameters().write_cache_bytes > 0 {
            self.blocked.push_back(command);
            self.admit(now_ns);
        } else {
            let target = self.geometry.target(self.physical(command.span.position));
            self.queue.push(Inside { command, target, since_ns: now_ns });
        }
        self.start(now_ns);
    }

    /// Admits writes to the cache while there is free space. A write larger than the cache waits until the cache is
    /// empty.
    fn admit(&mut self, now_ns: u64) {
        while let Some(command) = self.blocked.front().copied() {
            let used = self.dirty.bytes + self.arriving_bytes + self.destaging_bytes;
            if used > 0 && used + command.span.len > self.parameters().write_cache_bytes {
                return;
            }
            self.blocked.pop_front();
            let end_ns = self.pass_interface(now_ns, command.span.len);
            self.arriving.push_back((end_ns, command.span));
            self.arriving_bytes += command.span.len;
            self.finishing.add(end_ns, command.token);
        }
    }

    /// The earliest instant at which a command's overhead and bytes have passed the interface.
    fn pass_interface(&mut self, now_ns: u64, bytes: u64) -> u64 {
        let from_ns = now_ns.max(self.interface_free_ns) + self.parameters().command_ns;
        self.interface_free_ns = from_ns + transfer_ns(bytes, self.parameters().interface_bytes_per_second);
        self.interface_free_ns
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        [self.busy_until_ns, self.arriving.front().map(|first| first.0)].into_iter().flatten().min()
    }

    pub(super) fn step(&mut self, now_ns: u64) {
        while self.arriving.front().is_some_and(|first| first.0 <= now_ns) {
            if let Some((_, span)) = self.arriving.pop_front() {
                self.arriving_bytes -= span.len;
                self.dirty.insert(span);
            }
        }
        if self.busy_until_ns.is_some_and(|until_ns| until_ns <= now_ns) {
            self.busy_until_ns = None;
            self.destaging_bytes = 0;
        }
        self.admit(now_ns);
        self.start(now_ns);
    }

    /// Whether there is nothing to do and nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.busy_until_ns.is_none() && self.queue.is_empty() && self.arriving.is_empty() && self.dirty.bytes == 0
    }

    pub(super) fn flush_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_add(self.parameters().flush_ns)
    }

    /// Gives the head work, if it is free.
    fn start(&mut self, now_ns: u64) {
        if self.busy_until_ns.is_some() {
            return;
        }
        let nearly_full = self.dirty.bytes > self.parameters().write_cache_bytes / 8 * 7;
        let cache_first = nearly_full && self.served_command && self.dirty.bytes > 0;
        if !self.queue.is_empty() && !cache_first {
            self.served_command = true;
            let inside = self.queue.swap_remove(self.first_to_serve(now_ns));
            self.serve(now_ns, inside.command);
        } else if let Some(span) = self.dirty.take_ahead(self.head, DESTAGE_BYTES_MAX) {
            self.served_command = false;
            self.destaging_bytes = span.len;
            let end_ns = self.write_medium(now_ns, span, 0);
            self.busy_until_ns = Some(end_ns);
        }
    }

    fn first_to_serve(&self, now_ns: u64) -> usize {
        let oldest = (0..self.queue.len()).min_by_key(|at| self.queue[*at].since_ns).unwrap_or(0);
        if self.queue.len() == 1 || now_ns.saturating_sub(self.queue[oldest].since_ns) > PASSED_OVER_NS_MAX {
            return oldest;
        }
        let head_cylinder = self.geometry.cylinder(self.head);
        let cost = |Inside { target, .. }: &Inside| {
            if self.follows(now_ns, target.position) {
                return 0;
            }
            self.geometry.positioning_ns(now_ns, head_cylinder, target)
        };
        (0..self.queue.len()).min_by_key(|at| (cost(&self.queue[*at]), self.queue[*at].command.token)).unwrap_or(oldest)
    }

    fn physical(&self, position: u64) -> u64 {
        self.shingles.as_ref().map_or(position, |shingles| shingles.behind_zone(position))
    }

    /// Whether the head is at a position just now, without a pause before.
    fn follows(&self, now_ns: u64, position: u64) -> bool {
        let ready = self.parameters().queued || self.parameters().command_ns == 0;
        ready && self.head == position && self.head_ns == now_ns
    }

    fn serve(&mut self, now_ns: u64, command: Command) {
        let Command { token, write, span, .. } = command;
        let passed_ns = self.pass_interface(now_ns, span.len);
        let medium_ns = if write {
            self.write_medium(now_ns, span, self.parameters().command_ns)
        } else {
            self.read_medium(now_ns, Span { position: self.physical(span.position), len: span.len })
        };
        self.busy_until_ns = Some(medium_ns);
        self.finishing.add(medium_ns.max(passed_ns), token);
    }

    /// Moves the head to the start of `span` and lets it pass, beginning `after_ns` from now at the earliest; returns
    /// the end.
    fn pass(&mut self, now_ns: u64, span: Span, after_ns: u64) -> u64 {
        let mut from_ns = now_ns;
        if !self.follows(now_ns, span.position) {
            self.seeks += u64::from(self.head != span.position);
            let (from, to) = (self.geometry.cylinder(self.head), self.geometry.target(span.position));
            let ready_ns = now_ns + after_ns.saturating_sub(self.geometry.seek_ns(from, to.cylinder));
            from_ns = ready_ns + self.geometry.positioning_ns(ready_ns, from, &to);
        }
        self.head = span.position + span.len;
        self.head_ns = from_ns + self.geometry.transfer_ns(span);
        self.head_ns
    }

    fn write_medium(&mut self, now_ns: u64, span: Span, after_ns: u64) -> u64 {
        self.read_end = None;
        let (idle_ns, bytes_per_second) =
            (now_ns.saturating_sub(self.head_ns), self.geometry.zone(self.head).bytes_per_second);
        let Some(shingles) = &mut self.shingles else { return self.pass(now_ns, span, after_ns) };
        shingles.idle(idle_ns, bytes_per_second);
        let placement = shingles.write(span);
        let placed = Span { position: placement.position, len: span.len };
        let end_ns = self.pass(now_ns, placed, after_ns);
        self.head_ns = end_ns + (placement.factor - 1) * self.geometry.transfer_ns(placed);
        self.head_ns
    }

    fn read_medium(&mut self, now_ns: u64, span: Span) -> u64 {
        let end = span.position + span.len;
        let mut rest = span;
        if let Some((from, from_ns)) = self.read_end
            && (from..=from + self.parameters().lookahead_bytes).contains(&span.position)
        {
            let buffered = self.parameters().lookahead_bytes + from;
            let reached_ns =
                |until: u64| from_ns + self.geometry.transfer_ns(Span { position: from, len: until - from });
            if end <= buffered || reached_ns(buffered) >= now_ns {
                // The head has not reached the first byte yet, or has passed it.
                let end_ns = reached_ns(end);
                self.read_end = Some((end, end_ns));
                (self.head, self.head_ns) = (end, end_ns);
                return end_ns.max(now_ns);
            }
            rest = Span { position: buffered.max(span.position), len: end - buffered.max(span.position) };
        }
        let after_ns = self.parameters().command_ns;
        let end_ns = self.pass(now_ns, rest, after_ns);
        self.read_end = Some((end, end_ns));
        end_ns
    }
}
